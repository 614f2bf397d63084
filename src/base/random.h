// SPDX-License-Identifier: Apache-2.0
// Random is a seeded generator (xoshiro256**). The same seed gives the same sequence on every
// machine. It is for jitter, names and simulation, never for secrets: those come from
// pki/entropy.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/time.h"

namespace berth {

class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t Next();
  // Uniform in [0, bound). REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound);
  // Uniform in [low, high]. REQUIRES: low <= high.
  int64_t Between(int64_t low, int64_t high);
  double Unit();  // [0, 1)
  bool Chance(double probability) { return Unit() < probability; }
  // A duration in [base * (1 - fraction), base * (1 + fraction)].
  Duration Jitter(Duration base, double fraction);
  // `length` characters of Kubernetes' name alphabet (no vowels, nothing that reads like another
  // character).
  std::string NameSuffix(int length);

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace berth
