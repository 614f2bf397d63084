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
  // Serves GET /metrics and /livez at "ADDR:PORT": what is in `registry`, and the poollet's own
  // figures. Both outlive the page.
  static Result<std::unique_ptr<MetricsPage>> Start(rt::AsioLoop& loop,
                                                    const std::string& listen,
                                                    poollet::Poollet& poollet,
                                                    metrics::Registry& registry);
  rt::Task<Status> Stop();

 private:
  MetricsPage(poollet::Poollet& poollet, metrics::Registry& registry)
      : poollet_(poollet), registry_(registry) {}
  rt::Task<net::HttpResponse> Handle(net::HttpRequest request);
  void Measure();

  poollet::Poollet& poollet_;
  metrics::Registry& registry_;
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace berth::app
