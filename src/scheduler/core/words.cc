// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/words.h"

#include <array>

#include "base/hash.h"

namespace berth::scheduler {
namespace {

constexpr std::array<std::string_view, kRules> kRuleNames = {"Pinned",
                                                             "NotReady",
                                                             "NoSession",
                                                             "Deleting",
                                                             "Cordoned",
                                                             "Taint",
                                                             "Selector",
                                                             "Class",
                                                             "Fence",
                                                             "Reservation",
                                                             "Room",
                                                             "HostRoom",
                                                             "VolumeReach",
                                                             "JointVolume",
                                                             "Affinity",
                                                             "AntiAffinity",
                                                             "Spread",
                                                             "Refused"};
static_assert(!kRuleNames.back().empty());

constexpr size_t kUuidLength = 36;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// FNV-1a with a start of its own and a final mix.
uint64_t HashText(std::string_view text, uint64_t start) {
  uint64_t hash = Fnv1a(text, start);
  hash ^= hash >> 32;
  return hash * 0xd6e8feb86659fd93;
}

ObjectKey HashedKey(std::string_view uid) {
  return {.high = HashText(uid, kFnv1aStart), .low = HashText(uid, 0x84222325cbf29ce4)};
}

}  // namespace

ObjectKey ObjectKey::FromUid(std::string_view uid) {
  if (uid.size() != kUuidLength) return HashedKey(uid);
  std::array<uint64_t, 2> halves{};
  int digits = 0;
  for (const char c : uid) {
    if (c == '-') continue;
    const int digit = HexDigit(c);
    if (digit < 0 || digits == 32) return HashedKey(uid);
    uint64_t& half = halves[digits++ / 16];
    half = (half << 4) | static_cast<uint64_t>(digit);
  }
  if (digits != 32) return HashedKey(uid);
  return {.high = halves[0], .low = halves[1]};
}

std::string_view RuleName(Rule rule) { return kRuleNames[static_cast<size_t>(rule)]; }

std::string_view PolicyName(Policy policy) {
  switch (policy) {
    case Policy::kBinpack: return "binpack";
    case Policy::kSpread: return "spread";
    case Policy::kBalanced: return "balanced";
  }
  return "unknown";
}

}  // namespace berth::scheduler
