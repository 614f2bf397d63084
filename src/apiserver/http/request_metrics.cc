// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/request_metrics.h"

#include <algorithm>
#include <array>

namespace berth::apiserver {
namespace {

constexpr std::array<std::string_view, 8> kVerbs = {
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"};

}  // namespace

void RequestMetrics::Record(const RequestInfo& info, int status, Duration took) {
  const std::string verb =
      std::ranges::find(kVerbs, info.verb) != kVerbs.end() ? info.verb : std::string("other");
  const std::string_view resource =
      info.kind != nullptr ? info.kind->plural : std::string_view("none");
  Series& series = series_[{verb, resource, status}];
  if (series.requests == nullptr) {
    const metrics::Labels labels = {
        {"verb", verb}, {"resource", std::string(resource)}, {"code", std::to_string(status)}};
    series.requests =
        &registry_.GetCounter("berth_apiserver_requests_total", "Requests answered.", labels);
    series.seconds =
        &registry_.GetHistogram("berth_apiserver_request_duration_seconds",
                                "Time from the request to its answer, streams excluded.",
                                metrics::LatencyBounds(),
                                {{"verb", verb}, {"resource", std::string(resource)}});
  }
  series.requests->Add();
  if (verb != "watch") series.seconds->Observe(took.to_seconds());
}

}  // namespace berth::apiserver
