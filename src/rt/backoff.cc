// SPDX-License-Identifier: Apache-2.0
#include "rt/backoff.h"

#include <algorithm>

namespace berth::rt {

Duration Backoff::Next(Random& random) {
  const Duration pause = std::min(random.Jitter(next_, options_.jitter), options_.max);
  // In floating point: a large factor saturates instead of overflowing.
  const double grown = static_cast<double>(next_.nanos()) * options_.factor;
  const auto max = static_cast<double>(options_.max.nanos());
  next_ = grown >= max ? options_.max : Duration::Nanos(static_cast<int64_t>(grown));
  return pause;
}

}  // namespace berth::rt
