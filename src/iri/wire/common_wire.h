// SPDX-License-Identifier: Apache-2.0
// What the conversions of all kinds share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "base/time.h"
#include "iri/object.h"

namespace berth::iri {

template <class ProtoMap, class Map>
void CopyTo(const Map& from, ProtoMap* to) {
  for (const auto& [key, value] : from) (*to)[key] = value;
}
template <class Map, class ProtoMap>
void CopyFrom(const ProtoMap& from, Map& to) {
  for (const auto& [key, value] : from) to[key] = value;
}

// Both enumerations count from `shift` (0 for the old interfaces); other numbers are kUnknown.
template <class Enum>
Enum EnumFromNumber(int number, Enum last, int shift = 0) {
  const int index = number - shift;
  if (index < 0 || index > static_cast<int>(last)) return Enum::kUnknown;
  return static_cast<Enum>(index);
}
template <class Proto, class Enum>
Proto EnumToProto(Enum value, int shift = 0) {
  if (value == Enum::kUnknown) return static_cast<Proto>(0);
  return static_cast<Proto>(static_cast<int>(value) + shift);
}

inline int64_t ToNanos(WallTime time) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 1000;
  return std::min(time.micros(), kMost) * 1000;
}
inline WallTime FromNanos(int64_t nanos) { return WallTime::FromMicros(nanos / 1000); }

}  // namespace berth::iri
