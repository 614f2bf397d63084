// SPDX-License-Identifier: Apache-2.0
// What the metrics of a server say about its condition.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/api/api.h"
#include "cli/commands/host_checks.h"
#include "cli/transport.h"

namespace berth::cli {

// The value of a series in Prometheus' text format: "process_open_fds",
// "berth_loop_lag_max_seconds{loop=\"main\"}".
std::optional<double> MetricIn(std::string_view text, std::string_view series);

// The values of a name by its one label: what is 3 in "keys{controller=\"quota\"} 3" is at "quota".
std::map<std::string, double> MetricsIn(std::string_view text,
                                        std::string_view name,
                                        std::string_view label);

// Loops that come late, controllers that do not keep up, files and memory that run out. Nothing of
// what the text does not tell.
std::vector<Finding> JudgeLoad(std::string_view metrics);
// Nothing if one may not look.
void CheckLoad(Api& api, std::vector<Finding>& out);
// Of one of several servers: its findings name it.
void CheckLoadOf(const std::string& url, Transport& transport, std::vector<Finding>& out);

}  // namespace berth::cli
