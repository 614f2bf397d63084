// SPDX-License-Identifier: Apache-2.0
// Pools and requests for the tests of the board: a pool has room for eight small machines.
#pragma once

#include <string>

#include "scheduler/core/board.h"

namespace berth::scheduler {

inline PoolSpec Pool(const std::string& name) {
  PoolSpec spec{.name = name, .host = "host-of-" + name};
  spec.capacity = {{"cpu", 8'000}, {"memory", 8'000}};
  spec.classes = {"small", "large"};
  return spec;
}

inline PoolSpec VolumePool(const std::string& name, Reach reach) {
  PoolSpec spec{.kind = PoolKind::kVolume, .name = name, .host = "host-of-" + name};
  spec.capacity = {{"storage", 100}};
  spec.classes = {"fast"};
  spec.reach = reach;
  return spec;
}

inline Requirements Small() {
  Requirements requirements{.class_name = "small"};
  requirements.resources = {{"cpu", 1'000}, {"memory", 1'000}};
  requirements.namespace_name = "default";
  return requirements;
}

inline Requirements Volume(int64_t storage) {
  Requirements requirements{.kind = PoolKind::kVolume, .class_name = "fast"};
  requirements.resources = {{"storage", storage}};
  return requirements;
}

// A request of its own each time.
inline Request Ask(Board& board, const Requirements& requirements) {
  static uint64_t last = 0;
  return {.key = {.high = 1, .low = ++last}, .shape = board.Intern(requirements)};
}

// Decides and settles.
inline PoolIndex PlaceOne(Board& board, const Requirements& requirements) {
  const Request request = Ask(board, requirements);
  const Decision decision = board.Decide(request, 1);
  EXPECT_EQ(decision.ranked.size(), 1u);
  if (decision.ranked.empty()) return PoolIndex{UINT32_MAX};
  EXPECT_EQ(board.Assume(request, decision.ranked[0]), AssumeVerdict::kAssumed);
  board.Confirm(request.key);
  return decision.ranked[0].pool;
}

}  // namespace berth::scheduler
