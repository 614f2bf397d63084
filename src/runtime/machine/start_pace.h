// SPDX-License-Identifier: Apache-2.0
// Guests start one after the other when there are many: after a power cut a host would otherwise
// boot all of them at once, each slower than the next one's patience.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/time.h"

namespace berth::runtime {

class StartPace {
 public:
  struct Options {
    size_t at_once = 4;                         // after a pause
    Duration interval = Duration::Millis(250);  // between those that follow
  };
  explicit StartPace(Options options) : options_(options) {}

  // Takes a turn. If it is too early: how long to wait before asking again.
  std::optional<Duration> Take(Time now) {
    full_at_ = std::max(full_at_, now);
    const Duration ahead = full_at_ - now;
    const Duration allowed = options_.interval * static_cast<int64_t>(options_.at_once - 1);
    if (ahead > allowed) return ahead - allowed;
    full_at_ = full_at_ + options_.interval;
    return std::nullopt;
  }

 private:
  const Options options_;
  Time full_at_;  // when all turns are there again
};

}  // namespace berth::runtime
