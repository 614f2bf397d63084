// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/fit_bank.h"

#include <bit>

namespace berth::scheduler {
namespace {

// Levels must be the same here, in fit_index.cc and on every machine.
#pragma STDC FP_CONTRACT OFF

using Group = FitBank::Group;
using Eight = FitBank::Eight;
using Mark = FitBank::Mark;
using Scores = FitBank::Scores;
constexpr size_t kEight = FitBank::kEight;
using Numbers = int32_t __attribute__((vector_size(kEight * sizeof(int32_t))));
using Bytes = uint8_t __attribute__((vector_size(kEight)));

constexpr uint64_t ByteAt(size_t lane) { return uint64_t{0xff} << (8 * lane); }

FitKey KeyOf(const CompiledShape& shape) {
  FitKey key{.kind = shape.requirements.kind,
             .policy = shape.requirements.policy,
             .class_id = shape.class_id,
             .is_impossible = !shape.unknown.empty()};
  for (const Demand& demand : shape.demands)
    key.demands.emplace_back(demand.dimension, demand.amount);
  return key;
}

// The policies of fit_index.cc, over eight shapes instead of four dimensions: the same operations
// in the same order. A byte per shape; 0: no room. Vectors stay inside the function: passing them
// on would depend on the processor.
template <Policy policy>
[[gnu::always_inline]] inline uint64_t LevelsOf(const PoolTable& pools,
                                                size_t pool,
                                                const Eight& eight) {
  constexpr Scores kOnes = {1, 1, 1, 1, 1, 1, 1, 1};
  const ScoreLine* lines = pools.score(pool);
  std::array<Scores, kLane> sums{};
  Scores largest{};
  Scores smallest = kOnes;
  Scores scarcest = kOnes;
  FitBank::Amounts lacks = eight.impossible;
  for (size_t i = 0; i < pools.lines(); ++i) {
    const ScoreLine& line = lines[i];
    for (size_t d = 0; d < kLane; ++d) {
      const Scores demand = eight.demands[i * kLane + d];
      const Scores rest = line.fraction[d] - demand * line.scale[d];
      lacks |= static_cast<uint64_t>(line.free[d]) - eight.least[i * kLane + d];
      if constexpr (policy == Policy::kSpread) {
        const Scores asked = demand > 0.0F ? rest : kOnes;
        scarcest = scarcest < asked ? scarcest : asked;
      } else {
        sums[d] += rest;
        largest = largest > rest ? largest : rest;
      }
      if constexpr (policy == Policy::kBalanced) {
        const Scores had = line.scale[d] > 0.0F ? rest : kOnes;
        smallest = smallest < had ? smallest : had;
      }
    }
  }
  const Scores mean = ((sums[0] + sums[2]) + (sums[1] + sums[3])) * pools.inverse_width(pool);
  Scores score = scarcest;
  if constexpr (policy == Policy::kBinpack) score = 1.0F - (0.5F * mean + 0.5F * largest);
  if constexpr (policy == Policy::kBalanced)
    score = 0.75F * (1.0F - (largest - smallest)) + 0.25F * mean;
  score = score > 0.0F ? score : Scores{};
  score = score < 1.0F ? score : kOnes;
  const Numbers levels = __builtin_convertvector(kLevelSteps * score, Numbers) + 1;
  const uint64_t short_of = std::bit_cast<uint64_t>(__builtin_convertvector(lacks >> 63, Bytes));
  return std::bit_cast<uint64_t>(__builtin_convertvector(levels, Bytes)) & ~(short_of * 0xff);
}

// Each index looks for itself.
void LookAgain(Group& group, size_t pool) {
  for (size_t e = 0; e < group.eights.size(); ++e) {
    Mark mark;
    for (size_t lane = 0; lane < kEight; ++lane) {
      FitIndex* index = group.eights[e].members[lane];
      if (index == nullptr) continue;
      index->LookAgain(pool);
      mark.levels |= uint64_t{index->level(pool)} << (8 * lane);
      if (index->Allows(pool)) mark.allowed |= ByteAt(lane);
    }
    group.marks[pool * group.eights.size() + e] = mark;
  }
}

template <Policy policy>
[[gnu::always_inline]] inline void Look(const PoolTable& pools, Group& group, size_t pool) {
  Mark* mark = &group.marks[pool * group.eights.size()];
  for (const Eight& eight : group.eights) {
    const uint64_t levels = LevelsOf<policy>(pools, pool, eight) & mark->allowed;
    uint64_t changed = levels ^ mark->levels;
    mark->levels = levels;
    while (changed != 0) {
      const auto lane = static_cast<size_t>(std::countr_zero(changed)) / 8;
      changed &= ~ByteAt(lane);
      if (FitIndex* index = eight.members[lane])
        index->Set(pool, static_cast<uint8_t>(levels >> (8 * lane)));
    }
    ++mark;
  }
}

template <Policy policy>
[[gnu::always_inline]] inline void Replay(const PoolTable& pools, Group& group) {
  const uint64_t end = pools.touches();
  for (; group.seen < end; ++group.seen) {
    const uint32_t touch = pools.touched(group.seen);
    const size_t pool = touch & ~PoolTable::kStructural;
    if ((touch & PoolTable::kStructural) != 0 || pools.is_counted(pool)) [[unlikely]]
      LookAgain(group, pool);
    else
      Look<policy>(pools, group, pool);
  }
}

[[gnu::always_inline]] inline void ReplayAny(const PoolTable& pools, Group& group, Policy policy) {
  switch (policy) {
    case Policy::kBinpack: return Replay<Policy::kBinpack>(pools, group);
    case Policy::kSpread: return Replay<Policy::kSpread>(pools, group);
    case Policy::kBalanced: return Replay<Policy::kBalanced>(pools, group);
  }
}

// The same code twice: where the processor has vectors of eight they are used. Numbers do not
// depend on it.
void ReplayPlain(const PoolTable& pools, Group& group, Policy policy) {
  ReplayAny(pools, group, policy);
}
#ifdef __x86_64__
[[gnu::target("avx2")]] void ReplayWide(const PoolTable& pools, Group& group, Policy policy) {
  ReplayAny(pools, group, policy);
}
const auto kReplay = __builtin_cpu_supports("avx2") ? ReplayWide : ReplayPlain;
#else
const auto kReplay = ReplayPlain;
#endif

}  // namespace

FitIndex& FitBank::Get(CompiledShape& shape) {
  FitIndex& index = Find(shape);
  Group& group = GroupOf(index);
  index.used_at = pools_.touches();
  CatchUp(group, index.policy());
  if (!index.seat) [[unlikely]]
    Seat(group, index);
  if (pools_.touches() - group.rested_at > 4 * kIdle) [[unlikely]]
    LetIdleOnesSleep(group);
  return index;
}

FitIndex& FitBank::Find(CompiledShape& shape) {
  if (FitIndex* index = indexes_.FindByHint(shape.fit_index)) return *index;
  if (FitIndex* oldest = indexes_.Oldest()) Unseat(*oldest);
  return indexes_.Get(
      shape.fit_index, KeyOf(shape), [&] { return std::make_unique<FitIndex>(pools_, shape); });
}

void FitBank::CatchUp(Group& group, Policy policy) {
  const uint64_t behind = pools_.touches() - group.seen;
  if (behind == 0) return;
  if (group.slots != pools_.slots()) {
    group.slots = pools_.slots();
    group.marks.resize(group.slots * group.eights.size());
    for (const Eight& eight : group.eights)
      for (FitIndex* index : eight.members)
        if (index != nullptr) index->Grow();
  }
  if (behind <= PoolTable::kTouchLog && behind <= pools_.slots()) {
    kReplay(pools_, group, policy);
  } else {
    for (const Eight& eight : group.eights) {
      for (FitIndex* index : eight.members) {
        if (index == nullptr) continue;
        index->SetSeen(group.seen);
        index->CatchUp();
        Mirror(group, *index);
      }
    }
    group.seen = pools_.touches();
  }
  pools_.NoteRead(group.seen);
}

// REQUIRES: the group has caught up.
void FitBank::Seat(Group& group, FitIndex& index) {
  index.CatchUp();
  const size_t lanes = group.eights.size() * kEight;
  size_t place = 0;
  while (place < lanes && group.eights[place / kEight].members[place % kEight] != nullptr) ++place;
  if (place == lanes) {
    LargeVector<Mark> marks(group.slots * (group.eights.size() + 1));
    for (size_t pool = 0; pool < group.slots; ++pool)
      std::copy_n(group.marks.begin() + static_cast<ptrdiff_t>(pool * group.eights.size()),
                  group.eights.size(),
                  marks.begin() + static_cast<ptrdiff_t>(pool * (group.eights.size() + 1)));
    group.marks = std::move(marks);
    group.eights.emplace_back();
    for (size_t lane = 0; lane < kEight; ++lane)
      group.eights.back().impossible[lane] = uint64_t{1} << 63;
  }
  index.seat = {.eight = place / kEight, .lane = place % kEight};
  Eight& eight = group.eights[index.seat->eight];
  const size_t lane = index.seat->lane;
  eight.members[lane] = &index;
  eight.impossible[lane] = static_cast<uint64_t>(index.is_impossible()) << 63;
  for (size_t d = 0; d < kDimensionsMax; ++d) {
    eight.demands[d][lane] = index.demand(d);
    eight.least[d][lane] = static_cast<uint64_t>(index.least(d));
  }
  Mirror(group, index);
}

void FitBank::Unseat(FitIndex& index) {
  if (!index.seat) return;
  Group& group = GroupOf(index);
  Eight& eight = group.eights[index.seat->eight];
  eight.members[index.seat->lane] = nullptr;
  eight.impossible[index.seat->lane] = uint64_t{1} << 63;
  index.seat.reset();
  index.SetSeen(group.seen);
}

void FitBank::LetIdleOnesSleep(Group& group) {
  for (const Eight& eight : group.eights)
    for (FitIndex* index : eight.members)
      if (index != nullptr && pools_.touches() - index->used_at > kIdle) Unseat(*index);
  group.rested_at = pools_.touches();
}

void FitBank::Mirror(Group& group, const FitIndex& index) const {
  const uint64_t byte = ByteAt(index.seat->lane);
  for (size_t pool = 0; pool < group.slots; ++pool) {
    Mark& mark = group.marks[pool * group.eights.size() + index.seat->eight];
    const uint64_t level = uint64_t{index.level(pool)} << (8 * index.seat->lane);
    mark.levels = (mark.levels & ~byte) | level;
    mark.allowed = (mark.allowed & ~byte) | (index.Allows(pool) ? byte : 0);
  }
}

}  // namespace berth::scheduler
