// SPDX-License-Identifier: Apache-2.0
// A FitBank keeps the indexes of all shapes, and brings those in use up to date together: a pool
// that was touched is read once, its levels for eight shapes are one vector operation, and only the
// indexes for which its level is another one than before are told.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/large_memory.h"
#include "scheduler/core/internal/fit_index.h"
#include "scheduler/core/internal/pool_table.h"
#include "scheduler/core/internal/slot_cache.h"

namespace berth::scheduler {

class FitBank {
 public:
  explicit FitBank(const PoolTable& pools) : pools_(pools) {}

  // The shape's index, up to date until the next touch. It ends when another shape needs its place.
  FitIndex& Get(CompiledShape& shape);
  // The pool will be touched soon: memory may be fetched meanwhile.
  void Expect(size_t pool) const {
    for (const Group& group : groups_)
      if (pool < group.slots) __builtin_prefetch(group.marks.data() + pool * group.eights.size());
  }

  // Eight shapes side by side: element k of every vector belongs to members[k].
  static constexpr size_t kEight = 8;
  using Scores = float __attribute__((vector_size(kEight * sizeof(float))));
  using Amounts = uint64_t __attribute__((vector_size(kEight * sizeof(uint64_t))));
  struct Eight {
    std::array<Scores, kDimensionsMax> demands{};
    std::array<Amounts, kDimensionsMax> least{};  // as FitIndex::least
    Amounts impossible{};                         // bit 63: whatever is free
    std::array<FitIndex*, kEight> members{};      // null: nobody, and impossible
  };
  // What the members of an eight know of one pool; byte k belongs to members[k].
  struct Mark {
    uint64_t levels = 0;
    uint64_t allowed = 0;  // 0 or 255
  };
  // The indexes of one policy that are awake; each has seen all touches below `seen`.
  struct Group {
    std::vector<Eight> eights;
    LargeVector<Mark> marks;  // by pool, then by eight
    uint64_t seen = 0;
    uint64_t rested_at = 0;
    size_t slots = 0;  // pools in marks
  };

 private:
  static constexpr size_t kIndexesMax = 128;  // * 230 KB with 100,000 pools = 29 MB
  // An index that was not used for that many touches sleeps, and catches up alone when it wakes.
  static constexpr uint64_t kIdle = 4'096;
  static constexpr size_t kPolicies = 3;

  FitIndex& Find(CompiledShape& shape);
  Group& GroupOf(const FitIndex& index) { return groups_[static_cast<size_t>(index.policy())]; }
  void CatchUp(Group& group, Policy policy);
  void Seat(Group& group, FitIndex& index);
  void Unseat(FitIndex& index);
  void LetIdleOnesSleep(Group& group);
  // Tells the marks what the index knows.
  void Mirror(Group& group, const FitIndex& index) const;

  const PoolTable& pools_;
  SlotCache<FitKey, FitIndex> indexes_{kIndexesMax};
  std::array<Group, kPolicies> groups_;
};

}  // namespace berth::scheduler
