// SPDX-License-Identifier: Apache-2.0
// An EventPace says when an event may be said, so that the server leaves none of them out
// (PROTOCOL 5.8): at most so many at once and in every second. Pure.
#pragma once

#include <cstddef>

#include "base/time.h"

namespace berth::poollet {

// Of a server that does not say how many it takes.
inline constexpr size_t kEventsPerSecondDefault = 10;

class EventPace {
 public:
  // A session begins, with what its server takes; 0: it does not say.
  void Begin(size_t per_second, Time now);

  // Whether one more may be said now; it is counted then.
  bool Take(Time now);
  // How long until the next one may be; zero: now.
  Duration Left(Time now) const;

 private:
  Duration gap_ = Duration::Seconds(1) / static_cast<int64_t>(kEventsPerSecondDefault);
  Time level_;  // each one that is said moves it on by a gap; never more than a second ahead
};

}  // namespace berth::poollet
