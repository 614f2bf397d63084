// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <bit>
#include <string_view>

#include "base/check.h"

namespace berth {

Random::Random(uint64_t seed) {
  for (auto& word : state_) {  // splitmix64: spreads a small seed over the whole state
    seed += 0x9e3779b97f4a7c15ULL;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  CHECK(bound > 0);
  // Reject the uneven tail, so that every value is equally likely.
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t value = Next();
  while (value >= limit) value = Next();
  return value % bound;
}

int64_t Random::Between(int64_t low, int64_t high) {
  CHECK(low <= high) << low << " > " << high;
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (span == UINT64_MAX) return static_cast<int64_t>(Next());
  return static_cast<int64_t>(static_cast<uint64_t>(low) + Below(span + 1));
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

Duration Random::Jitter(Duration base, double fraction) {
  const double factor = 1.0 - fraction + 2.0 * fraction * Unit();
  return Duration::Nanos(static_cast<int64_t>(static_cast<double>(base.nanos()) * factor));
}

std::string Random::NameSuffix(int length) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string text;
  for (int i = 0; i < length; ++i) text += kAlphabet[Below(kAlphabet.size())];
  return text;
}

}  // namespace berth
