// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/server_load.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/strings.h"
#include "base/time.h"

namespace berth::cli {
namespace {

// Every answer waits as long. Hosts are told to be silent after several seconds of it.
constexpr double kLagWarn = 0.25;
constexpr double kLagFail = 2.0;
constexpr double kShareWarn = 0.8;
constexpr std::array<std::string_view, 2> kLoops = {"main", "hosts"};
// In seconds. What fails is tried again after at most half a minute: after two of these it is no
// passing trouble.
constexpr double kFailingWarn = 60;
constexpr double kWaitingWarn = 60;
constexpr double kLostWarn = 30;
// Whoever has not seen any change for this long decides on a world that is gone.
constexpr double kLostFail = 300;

std::string AgeText(double seconds) {
  return FormatAge(Duration::Seconds(static_cast<int64_t>(seconds)));
}

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

void JudgeFailing(std::string_view metrics, std::vector<Finding>& out) {
  const auto keys = MetricsIn(metrics, "berth_controller_failing_keys", "controller");
  for (const auto& [controller, seconds] :
       MetricsIn(metrics, "berth_controller_failing_seconds", "controller")) {
    if (seconds < kFailingWarn) continue;
    const auto count = keys.find(controller);
    out.push_back({Verdict::kWarn,
                   "controllers",
                   fmt::format("{}: {:.0f} keep failing, the first for {}",
                               controller,
                               count == keys.end() ? 1 : count->second,
                               AgeText(seconds)),
                   fmt::format("the server's log names them and the reason: look for \"{} \"",
                               Printable(controller))});
  }
}

void JudgeWaiting(std::string_view metrics, std::vector<Finding>& out) {
  const auto keys = MetricsIn(metrics, "berth_controller_queue_keys", "controller");
  for (const auto& [controller, seconds] :
       MetricsIn(metrics, "berth_controller_queue_oldest_seconds", "controller")) {
    if (seconds < kWaitingWarn) continue;
    const auto count = keys.find(controller);
    out.push_back({Verdict::kWarn,
                   "controllers",
                   fmt::format("{}: {:.0f} wait, the first for {}",
                               controller,
                               count == keys.end() ? 1 : count->second,
                               AgeText(seconds)),
                   "look at the load of the server, and at its log"});
  }
}

void JudgeFollowing(std::string_view metrics, std::vector<Finding>& out) {
  for (const auto& [controller, seconds] :
       MetricsIn(metrics, "berth_controller_follow_failing_seconds", "controller")) {
    if (seconds < kLostWarn) continue;
    out.push_back(
        {seconds < kLostFail ? Verdict::kWarn : Verdict::kFail,
         "controllers",
         fmt::format(
             "{}: has not been able to follow objects for {}", controller, AgeText(seconds)),
         "the server's log says which and why: look for \"following \""});
  }
}

// Nothing of a server that does not lead: it has none.
void JudgeControllers(std::string_view metrics, std::vector<Finding>& out) {
  const size_t before = out.size();
  JudgeFailing(metrics, out);
  JudgeWaiting(metrics, out);
  JudgeFollowing(metrics, out);
  const size_t all =
      MetricsIn(metrics, "berth_controller_follow_failing_seconds", "controller").size();
  if (all == 0 || out.size() > before) return;
  out.push_back({Verdict::kOk, "controllers", fmt::format("all {} keep up", all), ""});
}

// Said only if there are any: they are rare.
void JudgeUnreadable(std::string_view metrics, std::vector<Finding>& out) {
  const double count = MetricIn(metrics, "berth_unreadable_objects").value_or(0);
  if (count < 1) return;
  out.push_back({Verdict::kWarn,
                 "objects",
                 fmt::format("{:.0f} in the store cannot be read and are passed over", count),
                 "the server's log names them (\"is passed over\"); berth delete KIND NAME --force "
                 "removes one"});
}

// Said only if there are any. Those that say that all is well may be left out, and are not counted
// here.
void JudgeEvents(std::string_view metrics, std::vector<Finding>& out) {
  std::vector<std::string> parts;
  for (const auto& [component, count] :
       MetricsIn(metrics, "berth_events_dropped_total", "component")) {
    if (count >= 1) parts.push_back(fmt::format("{:.0f} of {}", count, component));
  }
  if (parts.empty()) return;
  out.push_back({Verdict::kWarn,
                 "events",
                 fmt::format("dropped since the server's start, because too many waited: {}",
                             Join(parts, ", ")),
                 "conditions of objects still say what happened (berth describe, berth why); look "
                 "at the load and the disk of the server"});
}

// Said only of a server that others lead: it needs two files for each.
void JudgePassing(std::string_view metrics, std::vector<Finding>& out) {
  const double count = MetricIn(metrics, "berth_passed_on_connections").value_or(0);
  if (count < 1) return;
  out.push_back(
      {Verdict::kOk,
       "passed on",
       fmt::format("{:.0f} connections of hosts go through it to the server that leads", count),
       ""});
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

std::map<std::string, double> MetricsIn(std::string_view text,
                                        std::string_view name,
                                        std::string_view label) {
  const std::string begin = fmt::format("{}{{{}=\"", name, label);
  constexpr std::string_view kEnd = "\"} ";
  std::map<std::string, double> values;
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(begin)) continue;
    const size_t end = line.find(kEnd, begin.size());
    if (end == std::string_view::npos) continue;
    const auto value = MetricIn(line, line.substr(0, end + kEnd.size() - 1));
    if (value) values.emplace(line.substr(begin.size(), end - begin.size()), *value);
  }
  return values;
}

std::vector<Finding> JudgeLoad(std::string_view metrics) {
  std::vector<Finding> out;
  JudgeLoops(metrics, out);
  JudgeControllers(metrics, out);
  JudgeUnreadable(metrics, out);
  JudgeEvents(metrics, out);
  JudgePassing(metrics, out);
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

void CheckLoadOf(const std::string& url, Transport& transport, std::vector<Finding>& out) {
  const auto response = transport.Send({.path = "/metrics"});
  if (!response.ok() || response->status != 200) return;
  for (Finding& finding : JudgeLoad(response->body)) {
    finding.text = fmt::format("{}: {}", url, finding.text);
    out.push_back(std::move(finding));
  }
}

}  // namespace berth::cli
