// SPDX-License-Identifier: Apache-2.0
// Counts requests by verb, resource and answer, and how long they took.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "apiserver/identity.h"
#include "base/metrics.h"
#include "base/time.h"

namespace berth::apiserver {

class RequestMetrics {
 public:
  explicit RequestMetrics(metrics::Registry& registry) : registry_(registry) {}

  // Paths and unknown resources share one series each: a client must not be able to make series.
  void Record(const RequestInfo& info, int status, Duration took);

 private:
  struct Series {
    metrics::Counter* requests = nullptr;
    metrics::Histogram* seconds = nullptr;
  };
  metrics::Registry& registry_;
  // Verb, resource (a constant of its kind) and status: at most 8 x 40 x 20.
  std::map<std::tuple<std::string, std::string_view, int>, Series> series_;
};

}  // namespace berth::apiserver
