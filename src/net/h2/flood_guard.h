// SPDX-License-Identifier: Apache-2.0
// A FloodGuard counts what a peer does for nothing. It starts with `burst` tokens, gains
// `per_second` of them as time passes and more for real work, and never holds more than `burst`.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace berth::net {

class FloodGuard {
 public:
  FloodGuard(uint32_t burst, uint32_t per_second, Time now)
      : burst_(burst), per_second_(per_second), tokens_(burst), last_(now) {}

  // False once the peer has overdone it.
  bool Spend(Time now, double tokens = 1) {
    const double passed = (now - last_).to_seconds();
    last_ = now;
    tokens_ = std::min(burst_, tokens_ + passed * per_second_);
    tokens_ -= tokens;
    return tokens_ >= 0;
  }
  void Earn(double tokens) { tokens_ = std::min(burst_, tokens_ + tokens); }

 private:
  double burst_;
  double per_second_;
  double tokens_;
  Time last_;
};

}  // namespace berth::net
