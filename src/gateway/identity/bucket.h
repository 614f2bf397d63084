// SPDX-License-Identifier: Apache-2.0
// A Bucket limits how often something happens: it holds `burst` tokens and gets `per_second` back.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace berth::gateway {

class Bucket {
 public:
  Bucket(double burst, double per_second) : burst_(burst), rate_(per_second), tokens_(burst) {}

  // False if there are not `count` tokens; none is taken then.
  bool Take(Time now, double count = 1) {
    const double tokens = TokensAt(now);
    if (tokens < count) return false;
    tokens_ = tokens - count;
    last_ = std::max(last_, now);
    return true;
  }
  // Not one token is left.
  bool empty(Time now) const { return TokensAt(now) < 1; }
  bool full(Time now) const { return TokensAt(now) >= burst_; }

 private:
  double TokensAt(Time now) const {
    if (now <= last_) return tokens_;
    return std::min(burst_, tokens_ + (now - last_).to_seconds() * rate_);
  }

  double burst_;
  double rate_;
  double tokens_;
  Time last_;
};

}  // namespace berth::gateway
