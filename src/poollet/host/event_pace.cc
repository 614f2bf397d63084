// SPDX-License-Identifier: Apache-2.0
#include "poollet/host/event_pace.h"

#include <algorithm>

namespace berth::poollet {
namespace {

// A server takes two seconds' worth at once. We say half of that: what the network holds back for
// up to a second may come together with what follows, and is still within it.
constexpr Duration kAtOnce = Duration::Seconds(1);

}  // namespace

void EventPace::Begin(size_t per_second, Time now) {
  const size_t count = per_second == 0 ? kEventsPerSecondDefault : per_second;
  gap_ = Duration::Seconds(1) / static_cast<int64_t>(count);
  level_ = now;
}

bool EventPace::Take(Time now) {
  if (Left(now) > Duration()) return false;
  level_ = std::max(level_, now) + gap_;
  return true;
}

Duration EventPace::Left(Time now) const {
  return std::max(level_ + gap_ - (now + kAtOnce), Duration());
}

}  // namespace berth::poollet
