// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/server_load.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/strings.h"

namespace berth::cli {
namespace {

// Every answer waits as long. Hosts are told to be silent after several seconds of it.
constexpr double kLagWarn = 0.25;
constexpr double kLagFail = 2.0;
constexpr double kShareWarn = 0.8;
constexpr std::array<std::string_view, 2> kLoops = {"main", "hosts"};

void JudgeLoops(std::string_view metrics, std::vector<Finding>& out) {
  std::vector<std::string> parts;
  double greatest = 0;
  for (const std::string_view loop : kLoops) {
    const auto lag =
        MetricIn(metrics, fmt::format("berth_loop_lag_max_seconds{{loop=\"{}\"}}", loop));
    if (!lag.has_value()) continue;
    parts.push_back(fmt::format("{} {:.0f} ms", loop, *lag * 1000));
    greatest = std::max(greatest, *lag);
  }
  if (parts.empty()) return;
  const Verdict verdict = greatest >= kLagFail   ? Verdict::kFail
                          : greatest >= kLagWarn ? Verdict::kWarn
                                                 : Verdict::kOk;
  out.push_back({verdict,
                 "loops",
                 fmt::format("late by at most {} in the last minute", Join(parts, ", ")),
                 verdict == Verdict::kOk
                     ? ""
                     : "give the server more processor time, or look who asks it for too much: "
                       "berth_apiserver_requests_total"});
}

void JudgeShare(std::string_view title,
                std::optional<double> used,
                std::optional<double> limit,
                std::string text,
                std::string_view next_step,
                std::vector<Finding>& out) {
  if (!used.has_value() || !limit.has_value() || *limit <= 0) return;
  const bool is_much = *used > kShareWarn * *limit;
  out.push_back({is_much ? Verdict::kWarn : Verdict::kOk,
                 title,
                 std::move(text),
                 std::string(is_much ? next_step : "")});
}

}  // namespace

std::optional<double> MetricIn(std::string_view text, std::string_view series) {
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(series) || line.size() <= series.size() || line[series.size()] != ' ') {
      continue;
    }
    const std::string_view number = Trim(line.substr(series.size()));
    double value = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
    if (parsed.ec == std::errc()) return value;
  }
  return std::nullopt;
}

std::vector<Finding> JudgeLoad(std::string_view metrics) {
  std::vector<Finding> out;
  JudgeLoops(metrics, out);
  const auto files = MetricIn(metrics, "process_open_fds");
  const auto files_max = MetricIn(metrics, "process_max_fds");
  JudgeShare("server's files",
             files,
             files_max,
             fmt::format("{:.0f} open, {:.0f} allowed", files.value_or(0), files_max.value_or(0)),
             "raise its limit (LimitNOFILE=), or look who holds connections",
             out);
  const auto memory = MetricIn(metrics, "process_resident_memory_bytes");
  const auto memory_max = MetricIn(metrics, "process_memory_limit_bytes");
  JudgeShare("server's memory",
             memory,
             memory_max,
             fmt::format("{:.0f} MiB used, {:.0f} MiB allowed",
                         memory.value_or(0) / (1 << 20),
                         memory_max.value_or(0) / (1 << 20)),
             "give it more memory (MemoryMax=): a process without is killed",
             out);
  return out;
}

void CheckLoad(Api& api, std::vector<Finding>& out) {
  const auto response = api.Exchange({.path = "/metrics"});
  if (!response.ok() || response->status != 200) return;
  for (Finding& finding : JudgeLoad(response->body)) out.push_back(std::move(finding));
}

}  // namespace berth::cli
