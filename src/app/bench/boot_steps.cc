// SPDX-License-Identifier: Apache-2.0
#include "app/bench/boot_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "meta/json.h"

namespace berth::app {
namespace {

constexpr std::string_view kLibvirt = "libvirt.";
constexpr std::string_view kQemuImg = "qemu-img.";
constexpr std::string_view kImage = "image.";
constexpr std::string_view kPace = "pace.";

// The first moment of this name from `begin` to `end`.
Result<WallTime> MomentOf(const std::vector<TraceSpan>& spans,
                          std::string_view name,
                          WallTime begin,
                          WallTime end) {
  const TraceSpan* first = nullptr;
  for (const TraceSpan& span : spans) {
    if (span.name != name || span.begin < begin || span.begin > end) continue;
    if (first == nullptr || span.begin < first->begin) first = &span;
  }
  if (first != nullptr) return first->begin;
  return NotFound("the trace has no " + std::string(name) + " between create and running");
}

BootStep StepOf(const std::vector<TraceSpan>& spans, WallTime begin, WallTime end) {
  BootStep step;
  step.took = end - begin;
  const Duration foreign = Covered(spans, {kLibvirt, kQemuImg}, begin, end);
  step.libvirt = Covered(spans, {kLibvirt}, begin, end);
  step.qemu_img = foreign - step.libvirt;
  step.own = step.took - foreign;
  step.image = Covered(spans, {kImage, kLibvirt, kQemuImg}, begin, end) - foreign;
  step.paced = Covered(spans, {kPace, kLibvirt, kQemuImg}, begin, end) - foreign;
  return step;
}

Status CheckTotal(std::string_view what, Duration sum, Duration whole) {
  if (sum == whole) return OkStatus();
  return Internal(fmt::format(
      "{}: the parts are {}, the whole is {}", what, FormatDuration(sum), FormatDuration(whole)));
}

}  // namespace

std::vector<TraceSpan> ParseSpans(std::string_view lines) {
  std::vector<TraceSpan> spans;
  for (const std::string_view line : Split(lines, '\n')) {
    const Result<meta::Value> value = meta::ParseJson(line);
    if (!value.ok()) continue;
    const meta::Value* const begin = value->Find("begin");
    const meta::Value* const end = value->Find("end");
    if (begin == nullptr || end == nullptr || !begin->is_int() || !end->is_int()) continue;
    spans.push_back({.name = std::string(value->GetString({"span"})),
                     .begin = WallTime::FromMicros(begin->as_int()),
                     .end = WallTime::FromMicros(end->as_int()),
                     .of = std::string(value->GetString({"of"}))});
  }
  return spans;
}

std::vector<TraceSpan> SpansOf(const std::vector<TraceSpan>& spans,
                               std::initializer_list<std::string_view> names) {
  std::vector<TraceSpan> own;
  for (const TraceSpan& span : spans) {
    if (!span.of.empty() && std::ranges::find(names, span.of) != names.end()) own.push_back(span);
  }
  return own;
}

Duration Covered(const std::vector<TraceSpan>& spans,
                 std::initializer_list<std::string_view> prefixes,
                 WallTime begin,
                 WallTime end) {
  std::vector<std::pair<WallTime, WallTime>> parts;
  for (const TraceSpan& span : spans) {
    const auto fits = [&span](std::string_view prefix) { return span.name.starts_with(prefix); };
    if (std::ranges::none_of(prefixes, fits)) continue;
    const WallTime from = std::max(span.begin, begin);
    const WallTime to = std::min(span.end, end);
    if (from < to) parts.emplace_back(from, to);
  }
  std::ranges::sort(parts);
  Duration covered;
  WallTime reached = begin;
  for (const auto& [from, to] : parts) {
    const WallTime next = std::max(from, reached);
    if (to <= next) continue;
    covered = covered + (to - next);
    reached = to;
  }
  return covered;
}

Result<std::vector<BootStep>> StepsOf(const BootTimes& times, const std::vector<TraceSpan>& spans) {
  TRY(const WallTime assigned, MomentOf(spans, "poollet.assigned", times.sent, times.running));
  TRY(const WallTime create, MomentOf(spans, "poollet.create", times.sent, times.running));
  TRY(const WallTime reported, MomentOf(spans, "poollet.running", times.sent, times.running));
  // The host and the client's watch hear of a binding side by side, and so do whoever waits for an
  // answer and the scheduler: the first who hears shows that it was there.
  const WallTime bound = std::min(times.bound, assigned);
  const WallTime acknowledged = std::min(times.acknowledged, bound);
  struct Stop {
    std::string_view step;
    std::string_view what;
    WallTime until;
  };
  const Stop stops[] = {
      {"api", "create sent to acknowledged", acknowledged},
      {"scheduler", "to bound", bound},
      {"gateway", "to assigned at the poollet", assigned},
      {"poollet", "to recorded, and the runtime called", create},
      {"runtime", "to disk made, guest started, and seen by the poollet", reported},
      {"report", "to seen running by the client", times.running},
  };
  std::vector<BootStep> steps;
  WallTime at = times.sent;
  for (const Stop& stop : stops) {
    if (stop.until < at) {
      return Internal("step " + std::string(stop.step) +
                      " ends before it begins: was the clock set?");
    }
    BootStep& step = steps.emplace_back(StepOf(spans, at, stop.until));
    step.name = stop.step;
    step.what = stop.what;
    at = stop.until;
  }
  BootStep& guest = steps.emplace_back();
  guest.name = "guest";
  guest.what = "to its first program's word";
  guest.took = std::max(times.userspace, at) - at;
  guest.guest = guest.took;
  return steps;
}

Status CheckSum(const BootTimes& times, const std::vector<BootStep>& steps) {
  Duration all;
  Duration before_guest;
  for (const BootStep& step : steps) {
    TRY_STATUS(CheckTotal(
        "step " + step.name, step.own + step.libvirt + step.qemu_img + step.guest, step.took));
    all = all + step.took;
    before_guest = before_guest + step.took - step.guest;
  }
  TRY_STATUS(CheckTotal("create to running", before_guest, times.running - times.sent));
  return CheckTotal("create to userspace", all, times.userspace - times.sent);
}

Duration SumOf(const std::vector<BootStep>& steps, Duration BootStep::* what) {
  Duration sum;
  for (const BootStep& step : steps) sum = sum + step.*what;
  return sum;
}

}  // namespace berth::app
