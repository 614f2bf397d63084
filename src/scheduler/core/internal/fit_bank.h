// SPDX-License-Identifier: Apache-2.0
// A FitBank keeps the indexes of all shapes, and brings those in use up to date together: a pool
// that was touched is read once, and its levels for four shapes are one vector operation. An index
// by itself would read every touched pool again, sixteen times over with sixteen shapes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/core/internal/fit_index.h"
#include "scheduler/core/internal/pool_table.h"
#include "scheduler/core/internal/slot_cache.h"

namespace berth::scheduler {

class FitBank {
 public:
  explicit FitBank(const PoolTable& pools) : pools_(pools) {}

  // The shape's index, up to date until the next touch. It ends when another shape needs its place.
  FitIndex& Get(CompiledShape& shape);

 private:
  static constexpr size_t kIndexesMax = 128;  // * 226 KB with 100,000 pools = 29 MB
  // An index that was not used for that many touches sleeps, and catches up alone when it wakes.
  static constexpr uint64_t kIdle = 4'096;
  static constexpr size_t kPolicies = 3;

  // Four shapes side by side: element k of every vector belongs to members[k].
  using Amounts = uint64_t __attribute__((vector_size(kLane * sizeof(uint64_t))));
  struct Four {
    std::array<Lane, kDimensionsMax> demands{};
    std::array<Amounts, kDimensionsMax> least{};  // as FitIndex::least
    Amounts impossible{};                         // bit 63
    std::array<FitIndex*, kLane> members{};
    size_t count = 0;
  };
  // The indexes of one policy that are awake; each has seen all touches below `seen`.
  struct Group {
    std::vector<FitIndex*> awake;
    std::vector<Four> fours;
    uint64_t seen = 0;
    uint64_t gathered_at = 0;
    size_t slots = 0;
  };

  void Dissolve(Group& group);
  void Gather(Group& group, Policy policy);
  void CatchUp(Group& group, Policy policy);
  template <Policy policy>
  void Replay(Group& group) const;
  template <Policy policy>
  void Look(const Four& four, size_t pool) const;

  const PoolTable& pools_;
  SlotCache<FitKey, FitIndex> indexes_{kIndexesMax};
  std::array<Group, kPolicies> groups_;
};

}  // namespace berth::scheduler
