// SPDX-License-Identifier: Apache-2.0
// The figures of a poollet for Prometheus, on a plain port that is meant for the host itself.
#pragma once

#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "net/http.h"
#include "net/http_server.h"
#include "poollet/poollet.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::app {

class MetricsPage {
 public:
  // Serves GET /metrics and /livez at "ADDR:PORT". The poollet outlives the page.
  static Result<std::unique_ptr<MetricsPage>> Start(rt::AsioLoop& loop,
                                                    const std::string& listen,
                                                    poollet::Poollet& poollet);
  rt::Task<Status> Stop();

 private:
  explicit MetricsPage(poollet::Poollet& poollet) : poollet_(poollet) {}
  rt::Task<net::HttpResponse> Handle(net::HttpRequest request);
  void Measure();

  poollet::Poollet& poollet_;
  metrics::Registry registry_;
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace berth::app
