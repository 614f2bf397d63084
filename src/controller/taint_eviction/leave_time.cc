// SPDX-License-Identifier: Apache-2.0
#include "controller/taint_eviction/leave_time.h"

#include <algorithm>
#include <cstdint>

namespace berth::controller {
namespace {

// Longer than this is for ever: sums of times must not overflow.
constexpr int64_t kSecondsMax = 100LL * 365 * 24 * 3600;

std::string Describe(const apis::core::Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ':' + taint.effect;
}

}  // namespace

std::optional<LeaveTime> FindLeaveTime(std::span<const apis::core::Taint> taints,
                                       std::span<const apis::core::Toleration> tolerations,
                                       WallTime bound) {
  std::optional<LeaveTime> earliest;
  for (const apis::core::Taint& taint : taints) {
    if (taint.effect != apis::core::kNoExecute) continue;
    bool is_tolerated = false;
    std::optional<int64_t> seconds;
    for (const apis::core::Toleration& toleration : tolerations) {
      if (!apis::core::Tolerates(toleration, taint)) continue;
      is_tolerated = true;
      if (!toleration.toleration_seconds) continue;
      const int64_t given = std::clamp<int64_t>(*toleration.toleration_seconds, 0, kSecondsMax);
      seconds = std::min(seconds.value_or(given), given);
    }
    if (is_tolerated && !seconds) continue;
    const WallTime since = std::max(taint.time_added, bound);
    const WallTime at = since + Duration::Seconds(seconds.value_or(0));
    if (!earliest || at < earliest->at) earliest = LeaveTime{.at = at, .taint = Describe(taint)};
  }
  return earliest;
}

}  // namespace berth::controller
