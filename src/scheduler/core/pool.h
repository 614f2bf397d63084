// SPDX-License-Identifier: Apache-2.0
// What the board knows of a pool.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/core/words.h"

namespace berth::scheduler {

// A report says of a pool by counts (PoolSpec) how much of it is free under this name, in so many
// parts of the whole: the counts may have changed since.
inline constexpr std::string_view kShareResource = "berth.dev/share";
inline constexpr int64_t kReportedWhole = 1'000'000'000'000;

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  bool is_restricted = false;  // tolerated by its key only, not by whoever tolerates every key
  auto operator<=>(const Taint&) const = default;
};

// What changes often and alone. A pool is asked only if it is ready, has a session and is neither
// cordoned nor deleting.
struct PoolState {
  bool is_ready = true;
  bool has_session = true;  // also true for pools without sessions (API mode)
  bool is_cordoned = false;
  bool is_deleting = false;
  bool is_fence_ready = false;
  bool operator==(const PoolState&) const = default;
};

struct PoolSpec {
  PoolKind kind = PoolKind::kMachine;
  std::string name;  // unique among the pools of its kind
  std::string uid;
  std::string host;  // pools of one host share it; empty: a host of its own
  Labels labels;
  std::vector<Taint> taints;
  PoolState state;
  Reach reach = Reach::kAny;  // of a volume pool

  // Capacity comes in one of two forms.
  // Vector: capacity is counted in every dimension, and `classes` says what is offered.
  Resources capacity;
  std::vector<std::string> classes;
  // Counts: the pool only says how many copies of each class it could hold were it empty. Classes
  // share the pool by fractions: one machine of class c uses 1/count of it, exactly, never above 1.
  // Used if not empty; capacity and classes are then ignored.
  std::map<std::string, int64_t> class_counts;

  bool operator==(const PoolSpec&) const = default;
};

}  // namespace berth::scheduler
