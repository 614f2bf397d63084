// SPDX-License-Identifier: Apache-2.0
// What the metrics of a server say about its condition.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cli/api/api.h"
#include "cli/commands/host_checks.h"

namespace berth::cli {

// The value of a series in Prometheus' text format: "process_open_fds",
// "berth_loop_lag_max_seconds{loop=\"main\"}".
std::optional<double> MetricIn(std::string_view text, std::string_view series);

// Loops that come late, files and memory that run out. Nothing of what the text does not tell.
std::vector<Finding> JudgeLoad(std::string_view metrics);
// Nothing if one may not look.
void CheckLoad(Api& api, std::vector<Finding>& out);

}  // namespace berth::cli
