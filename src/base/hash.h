// SPDX-License-Identifier: Apache-2.0
// FNV-1a, the hash for telling things apart and noticing changes: the same in every process, on
// every machine and in every version. Not for what somebody may choose to collide.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

inline constexpr uint64_t kFnv1aStart = 0xcbf29ce484222325ULL;
inline constexpr uint64_t kFnv1aPrime = 0x100000001b3ULL;

// Goes on from `hash`, so that Fnv1a("b", Fnv1a("a")) == Fnv1a("ab").
constexpr uint64_t Fnv1a(std::string_view text, uint64_t hash = kFnv1aStart) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kFnv1aPrime;
  return hash;
}

// The hash of several parts, which do not run into each other.
class Fingerprint {
 public:
  constexpr Fingerprint& Add(std::string_view text) {
    value_ = Fnv1a("\xff", Fnv1a(text, value_));
    return *this;
  }
  Fingerprint& Add(int64_t number) { return Add(std::to_string(number)); }
  constexpr uint64_t value() const { return value_; }

 private:
  uint64_t value_ = kFnv1aStart;
};

}  // namespace berth
