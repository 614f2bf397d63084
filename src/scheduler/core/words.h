// SPDX-License-Identifier: Apache-2.0
// The words of placement: indexes, keys, policies, the rules that a pool can fail. No word of the
// API is here: whoever reads objects translates them into these.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace berth::scheduler {

// Amounts by resource name in their smallest unit: cpu in thousandths, memory and storage in bytes,
// anything else in pieces.
using Resources = std::map<std::string, int64_t>;
using Labels = std::map<std::string, std::string>;

// A pool's place on its board: dense, used again after the pool was removed. Ask the board for the
// name; keep no index across RemovePool.
enum class PoolIndex : uint32_t {};
constexpr size_t ToSize(PoolIndex pool) { return static_cast<size_t>(pool); }

// The identity of what is placed: the 128 bits of its UID.
struct ObjectKey {
  uint64_t high = 0;
  uint64_t low = 0;

  // A UUID's own bits; any other text is hashed.
  static ObjectKey FromUid(std::string_view uid);
  auto operator<=>(const ObjectKey&) const = default;
};

enum class PoolKind : uint8_t { kMachine, kVolume, kBucket };
inline constexpr size_t kPoolKinds = 3;

// From which machine pools a volume pool can be used.
enum class Reach : uint8_t { kHost, kZone, kRegion, kAny };

enum class TaintEffect : uint8_t { kNoSchedule, kPreferNoSchedule, kNoExecute };

// How pools that pass every rule are ranked.
//   kBinpack   fills pools up: least left over after the placement, and what is left over must be
//              of use (a pool that would be full in one dimension and empty in another ranks low).
//   kSpread    the pool with most room left in its scarcest dimension.
//   kBalanced  keeps the dimensions of every pool equally used, among equals the emptier pool.
enum class Policy : uint8_t { kBinpack, kSpread, kBalanced };
// Chosen by measurement: `berth bench scheduler` prints core_utilisation of all three.
inline constexpr Policy kDefaultPolicy = Policy::kBinpack;

// Why a pool is not considered, in the order in which the rules are asked. A pool is counted for
// the first rule that it fails.
enum class Rule : uint8_t {
  kPinned,        // the object names another pool
  kNotReady,      // the pool's Ready condition is not True
  kNoSession,     // no live session to ask the host through
  kDeleting,      // the pool is going away
  kCordoned,      // an operator keeps new placements away
  kTaint,         // a NoSchedule or NoExecute taint is not tolerated
  kSelector,      // the pool's labels do not match
  kClass,         // the class is not offered there
  kFence,         // Move needs a working fencer
  kReservation,   // the named reservation holds no room there
  kRoom,          // what is promised leaves too little, in at least one dimension
  kHostRoom,      // the host's own ledger leaves too little
  kVolumeReach,   // a bound volume cannot be used from there
  kJointVolume,   // no volume pool within reach has room for a volume that comes with the machine
  kAffinity,      // the company that is required is not there
  kAntiAffinity,  // company that is refused is there, or refuses this one
  kSpread,        // the topology domain already has its share
  kRefused,       // the host said no in this round
};
inline constexpr size_t kRules = 18;

// "NotReady", "Taint" ...: what conditions, events and `berth why` show.
std::string_view RuleName(Rule rule);
std::string_view PolicyName(Policy policy);

// As of when a host's capacity figure is true: which start of the poollet, and its counter.
struct LedgerVersion {
  uint64_t boot = 0;
  uint64_t counter = 0;
  bool operator==(const LedgerVersion&) const = default;
};

// Most dimensions that one board tells apart: 16 * 16 bytes = 256 bytes per pool at worst. What
// pools announce beyond that does not count, and who asks for it finds no room.
inline constexpr size_t kDimensionsMax = 16;

}  // namespace berth::scheduler
