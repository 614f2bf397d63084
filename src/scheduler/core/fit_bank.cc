// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/fit_bank.h"

namespace berth::scheduler {
namespace {

// Levels must be the same here, in fit_index.cc and on every machine.
#pragma STDC FP_CONTRACT OFF

constexpr Lane kOnes = {1, 1, 1, 1};
using Numbers = int32_t __attribute__((vector_size(kLane * sizeof(int32_t))));

FitKey KeyOf(const CompiledShape& shape) {
  FitKey key{.kind = shape.requirements.kind,
             .policy = shape.requirements.policy,
             .class_id = shape.class_id,
             .is_impossible = !shape.unknown.empty()};
  for (const Demand& demand : shape.demands)
    key.demands.emplace_back(demand.dimension, demand.amount);
  return key;
}

}  // namespace

FitIndex& FitBank::Get(CompiledShape& shape) {
  const Policy policy = shape.requirements.policy;
  Group& group = groups_[static_cast<size_t>(policy)];
  FitIndex* index = indexes_.FindByHint(shape.fit_index);
  if (index == nullptr) {
    // One of them may have to go.
    for (Group& other : groups_) Dissolve(other);
    index = &indexes_.Get(
        shape.fit_index, KeyOf(shape), [&] { return std::make_unique<FitIndex>(pools_, shape); });
  }
  index->used_at = pools_.touches();
  if (index->is_awake && pools_.touches() - group.gathered_at < 4 * kIdle)
    CatchUp(group, policy);
  else
    Gather(group, policy);
  return *index;
}

void FitBank::Dissolve(Group& group) {
  for (FitIndex* index : group.awake) {
    index->is_awake = false;
    index->SetSeen(group.seen);
  }
  group = {};
}

// Everybody who was used of late, each brought up to date alone.
void FitBank::Gather(Group& group, Policy policy) {
  Dissolve(group);
  indexes_.ForEach([&](const FitKey& key, FitIndex& index) {
    if (key.policy != policy || pools_.touches() - index.used_at > kIdle) return;
    index.CatchUp(pools_);
    index.is_awake = true;
    group.awake.push_back(&index);
    if (group.fours.empty() || group.fours.back().count == kLane) group.fours.emplace_back();
    Four& four = group.fours.back();
    const size_t place = four.count++;
    four.members[place] = &index;
    four.impossible[place] = static_cast<uint64_t>(index.is_impossible()) << 63;
    for (size_t d = 0; d < kDimensionsMax; ++d) {
      four.demands[d][place] = index.demand(d);
      four.least[d][place] = static_cast<uint64_t>(index.least(d));
    }
  });
  group.seen = pools_.touches();
  group.gathered_at = group.seen;
  group.slots = pools_.slots();
}

void FitBank::CatchUp(Group& group, Policy policy) {
  const uint64_t behind = pools_.touches() - group.seen;
  if (group.slots != pools_.slots() || behind > PoolTable::kTouchLog || behind > pools_.slots())
    return Gather(group, policy);
  if (behind == 0) return;
  switch (policy) {
    case Policy::kBinpack: Replay<Policy::kBinpack>(group); break;
    case Policy::kSpread: Replay<Policy::kSpread>(group); break;
    case Policy::kBalanced: Replay<Policy::kBalanced>(group); break;
  }
  pools_.NoteRead(group.seen);
}

template <Policy policy>
void FitBank::Replay(Group& group) const {
  const uint64_t end = pools_.touches();
  for (; group.seen < end; ++group.seen) {
    const uint32_t touch = pools_.touched(group.seen);
    const size_t pool = touch & ~PoolTable::kStructural;
    if ((touch & PoolTable::kStructural) != 0 || pools_.is_counted(pool)) [[unlikely]] {
      for (FitIndex* index : group.awake) index->LookAgain(pools_, pool);
    } else {
      for (const Four& four : group.fours) Look<policy>(four, pool);
    }
  }
}

// The policies of fit_index.cc, over four shapes instead of four dimensions: the same operations in
// the same order. Where there is no room the score does not matter.
template <Policy policy>
void FitBank::Look(const Four& four, size_t pool) const {
  const ScoreLine* lines = pools_.score(pool);
  std::array<Lane, kLane> sums{};
  Lane largest{};
  Lane smallest = kOnes;
  Lane scarcest = kOnes;
  Amounts lacks = four.impossible;
  for (size_t i = 0; i < pools_.lines(); ++i) {
    const ScoreLine& line = lines[i];
    for (size_t d = 0; d < kLane; ++d) {
      const Lane demand = four.demands[i * kLane + d];
      const Lane rest = line.fraction[d] - demand * line.scale[d];
      lacks |= static_cast<uint64_t>(line.free[d]) - four.least[i * kLane + d];
      if constexpr (policy == Policy::kSpread) {
        scarcest = Min(scarcest, demand > 0.0F ? rest : kOnes);
      } else {
        sums[d] += rest;
        largest = Max(largest, rest);
      }
      if constexpr (policy == Policy::kBalanced)
        smallest = Min(smallest, line.scale[d] > 0.0F ? rest : kOnes);
    }
  }
  const Lane mean = ((sums[0] + sums[2]) + (sums[1] + sums[3])) * pools_.inverse_width(pool);
  Lane score = scarcest;
  if constexpr (policy == Policy::kBinpack) score = 1.0F - (0.5F * mean + 0.5F * largest);
  if constexpr (policy == Policy::kBalanced)
    score = 0.75F * (1.0F - (largest - smallest)) + 0.25F * mean;
  const Lane scaled = 254.0F * Min(Max(score, Lane{}), kOnes);
  const Numbers levels = __builtin_convertvector(scaled, Numbers) + 1;
  for (size_t k = 0; k < four.count; ++k)
    four.members[k]->Set(pool, static_cast<uint8_t>(levels[k]), (lacks[k] >> 63) == 0);
}

}  // namespace berth::scheduler
