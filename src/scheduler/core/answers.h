// SPDX-License-Identifier: Apache-2.0
// What the board answers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/core/words.h"

namespace berth::scheduler {

// How gladly a pool that passes every rule is used. The first thing that candidates are ranked by.
enum class Tier : uint8_t {
  kWilling,
  kPreferNot,  // has a PreferNoSchedule taint that is not tolerated
  kAvoided,    // kept failing what it accepted (Board::Avoid)
};

// A policy's score is a number from 1 to this. Finer steps would not pack better (`core_quality`),
// and every step costs: a pool's level changes more often, and a decision has more of them to pass.
inline constexpr int kLevelMax = 63;

// One pool that may take the request. Ranked by tier, points (more first), level (more first),
// then by an order of pools that depends on the board's seed, the policy and the request's key.
struct Candidate {
  PoolIndex pool{};
  Tier tier = Tier::kWilling;
  uint8_t level = 0;             // the policy's score, 1 to kLevelMax
  int32_t points = 0;            // preferences met
  std::vector<PoolIndex> joint;  // the pool of each of the request's joint volumes
  ObjectKey reservation;         // the copy that would be consumed; zero: none
};

struct Decision {
  std::vector<Candidate> ranked;  // best first; empty: unschedulable, ask Explain why
};

enum class AssumeVerdict : uint8_t {
  kAssumed,
  kAlreadyPlaced,  // the key has a place already; nothing changed
  kNoRoom,         // somebody was faster (or the pool is gone); nothing changed
};

// Of a pool by counts nothing is missing that has an amount, only room for one more of the class:
// "class small", 1. No resource has a blank in its name.
inline constexpr std::string_view kClassPrefix = "class ";

// How far one pool is from taking the request.
struct NearMiss {
  PoolIndex pool{};
  Rule rule = Rule::kRoom;  // the first that it fails
  Resources missing;        // for kRoom and kHostRoom: how much more would be needed
};

struct Explanation {
  int64_t pools = 0;                     // of the request's kind
  std::array<int64_t, kRules> failed{};  // by the first rule failed; with passed they sum to pools
  int64_t passed = 0;
  std::map<std::string, int64_t>
      scarce;                       // pools failing kRoom or kHostRoom, by resource that lacks
  std::optional<NearMiss> nearest;  // none if every pool passed, or there is none
  std::vector<Candidate> ranked;    // the best, as Decide gives them
  // If a pool fails kJointVolume: each joint volume as if it were placed alone, in the order of the
  // request. Reach, and what they take from each other, is not in it.
  std::vector<Explanation> joint;
};

// "0/5 pools: 3 Room (2 cpu, 1 memory), 2 Taint; nearest pool-a lacks cpu 1500m ..." is made of an
// Explanation by the shell; the core only counts.

// What happened to a pool or to the objects, as far as it can help someone to a place. A set of
// bits. Room, company and reservations change all the time, the rest seldom.
enum class Event : uint16_t {
  kRoom = 1,          // more free capacity, promised or reported
  kUsable = 2,        // became ready, got a session, was uncordoned, was added
  kTaints = 4,        // taints changed
  kLabels = 8,        // labels, host or reach changed
  kClasses = 16,      // offers other classes
  kFence = 32,        // the fencer works again
  kReservation = 64,  // a reservation was placed there, or has its room again
  kCompany = 128,     // an object was placed or left: affinity, spread
  kLost = 256,        // cannot be used any more, or was removed: spread
  kVolumes = 512,     // only waited for: any of these, of a pool of volumes
};
using Events = uint16_t;
constexpr Events ToEvents(Event event) { return static_cast<Events>(event); }

struct Change {
  PoolIndex pool{};
  Events events = 0;
};

// Victims on one pool that make room for a request.
struct Preemption {
  PoolIndex pool{};
  std::vector<ObjectKey> victims;  // by priority, lowest first
};

// Placing a copy may look at every pool: what can be asked at once stays within milliseconds.
inline constexpr int64_t kCarefulCopiesMax = 256;

struct Fitting {
  int64_t copies = 0;       // how many would fit, at most the limit that was asked for
  bool is_limited = false;  // the limit was reached: there may be more
};

// What the board knows of one pool's room, for people and for tests.
struct PoolRoom {
  Resources capacity;
  Resources promised;  // sum of what is placed or assumed there
  Resources free;      // what the board believes can still be placed
  int64_t objects = 0;
};

}  // namespace berth::scheduler
