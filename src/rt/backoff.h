// SPDX-License-Identifier: Apache-2.0
// A Backoff gives growing, jittered pauses between attempts.
#pragma once

#include "base/random.h"
#include "base/time.h"

namespace berth::rt {

struct BackoffOptions {
  Duration initial = Duration::Millis(50);
  Duration max = Duration::Seconds(5);
  double factor = 2.0;
  double jitter = 0.2;  // each pause is within +-20 % of its nominal length, and never above `max`
};

class Backoff {
 public:
  explicit Backoff(BackoffOptions options = {}) : options_(options), next_(options.initial) {}
  // The pause before the next attempt.
  Duration Next(Random& random);
  // After a success: the next pause is the initial one again.
  void Reset() { next_ = options_.initial; }

 private:
  BackoffOptions options_;
  Duration next_;
};

}  // namespace berth::rt
