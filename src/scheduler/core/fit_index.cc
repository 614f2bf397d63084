// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/fit_index.h"

#include <algorithm>

namespace berth::scheduler {
namespace {

// Products and sums are not to be fused: levels must be the same on every machine.
#pragma STDC FP_CONTRACT OFF

float SumOf(Lane lane) { return (lane[0] + lane[2]) + (lane[1] + lane[3]); }
float MinOf(Lane lane) { return std::min(std::min(lane[0], lane[2]), std::min(lane[1], lane[3])); }
float MaxOf(Lane lane) { return std::max(std::max(lane[0], lane[2]), std::max(lane[1], lane[3])); }

// Below every free amount, and far enough from the limits that the difference to one has its sign.
constexpr int64_t kAsksNothing = -(int64_t{1} << 62);

uint8_t ToLevel(float score) {
  return static_cast<uint8_t>(1 + static_cast<int>(kLevelSteps * std::clamp(score, 0.0F, 1.0F)));
}

// The policies. `rest` is what is left of a pool after the placement, as fractions of its capacity;
// in dimensions that the pool does not have it is 0.
template <Policy policy>
uint8_t Level(const ScoreLine* lines, size_t count, const Lane* demands, float inverse_width) {
  constexpr Lane kOnes = {1, 1, 1, 1};
  Lane sum{};
  Lane largest{};
  Lane smallest = kOnes;
  Lane scarcest = kOnes;  // of the dimensions that are asked for
  for (size_t i = 0; i < count; ++i) {
    const Lane rest = lines[i].fraction - demands[i] * lines[i].scale;
    if constexpr (policy == Policy::kSpread) {
      // Inside a reservation even a pool that has nothing of what is asked for may do.
      const Lane asked = lines[i].scale > 0.0F ? rest : kOnes;
      scarcest = Min(scarcest, demands[i] > 0.0F ? asked : kOnes);
    } else {
      sum += rest;
      largest = Max(largest, rest);
    }
    if constexpr (policy == Policy::kBalanced)
      smallest = Min(smallest, lines[i].scale > 0.0F ? rest : kOnes);
  }
  // Little left over in sum is best fit. The largest leftover is what gets stranded once the pool
  // is full in another dimension.
  if constexpr (policy == Policy::kBinpack)
    return ToLevel(1 - (0.5F * (SumOf(sum) * inverse_width) + 0.5F * MaxOf(largest)));
  if constexpr (policy == Policy::kSpread) return ToLevel(MinOf(scarcest));
  if constexpr (policy == Policy::kBalanced)
    return ToLevel(0.75F * (1 - (MaxOf(largest) - MinOf(smallest))) +
                   0.25F * (SumOf(sum) * inverse_width));
}

template <Policy policy>
uint8_t LevelInPool(const PoolTable& pools,
                    size_t pool,
                    const CompiledShape& shape,
                    const Lane* demands) {
  const float inverse_width = pools.inverse_width(pool);
  if (inverse_width < 0) [[unlikely]] {
    const Lane share = {static_cast<float>(pools.ShareOf(pool, shape.class_id)), 0, 0, 0};
    return Level<policy>(pools.score(pool), 1, &share, 1);
  }
  return Level<policy>(pools.score(pool), pools.lines(), demands, inverse_width);
}

}  // namespace

DemandLanes LanesOf(const CompiledShape& shape) {
  DemandLanes lanes{};
  for (const Demand& demand : shape.demands)
    lanes[demand.dimension / kLane][demand.dimension % kLane] = static_cast<float>(demand.amount);
  return lanes;
}

uint8_t LevelOf(const PoolTable& pools, size_t pool, Policy policy, const CompiledShape& shape) {
  const DemandLanes demands = LanesOf(shape);
  switch (policy) {
    case Policy::kBinpack: return LevelInPool<Policy::kBinpack>(pools, pool, shape, demands.data());
    case Policy::kSpread: return LevelInPool<Policy::kSpread>(pools, pool, shape, demands.data());
    case Policy::kBalanced:
      return LevelInPool<Policy::kBalanced>(pools, pool, shape, demands.data());
  }
  return 0;
}

FitIndex::FitIndex(const PoolTable& pools, const CompiledShape& shape)
    : pools_(pools),
      kind_(shape.requirements.kind),
      policy_(shape.requirements.policy),
      shape_(Requirements{}) {
  shape_.class_id = shape.class_id;
  shape_.demands = shape.demands;
  shape_.unknown = shape.unknown;
  demands_ = LanesOf(shape);
  is_impossible_ = !shape.unknown.empty();
  // Nothing asked for is never too little, even on a pool that has promised too much of it.
  for (auto& line : least_) line.fill(kAsksNothing);
  for (const Demand& demand : shape.demands)
    least_[demand.dimension / kLane][demand.dimension % kLane] = demand.amount;
  Rebuild();
}

void FitIndex::Allow(size_t pool) {
  allowed_.Assign(pool, pools_.usable(kind_).Test(pool) && pools_.Offers(pool, shape_.class_id));
}

uint8_t FitIndex::Compute(size_t pool) const {
  if (!allowed_.Test(pool) || !HasRoom(pool)) return 0;
  return LevelOf(pools_, pool, policy_, shape_);
}

void FitIndex::Grow() {
  slots_ = pools_.slots();
  const size_t padded = (slots_ + kWordBits - 1) / kWordBits * kWordBits;
  if (padded == levels_.size()) return;
  allowed_.Resize(pools_.words());
  tainted_.Resize(pools_.words());
  levels_.resize(padded, 0);
  AddRows();
}

void FitIndex::AddRows() {
  for (auto& rows : rows_) rows.Reset(levels_.size() / kWordBits);
  for (size_t pool = 0; pool < slots_; ++pool)
    if (levels_[pool] != 0)
      rows_[static_cast<size_t>(tainted_.Test(pool))].Add(levels_[pool], pool / kWordBits);
}

void FitIndex::Rebuild() {
  Grow();
  for (size_t pool = 0; pool < slots_; ++pool) {
    Allow(pool);
    tainted_.Assign(pool, pools_.tainted().Test(pool));
    levels_[pool] = Compute(pool);
  }
  AddRows();
  seen_ = pools_.touches();
  pools_.NoteRead(seen_);
}

void FitIndex::CatchUp() {
  const uint64_t behind = pools_.touches() - seen_;
  if (behind == 0 && slots_ == pools_.slots()) return;
  if (behind > PoolTable::kTouchLog || behind > pools_.slots()) return Rebuild();
  Grow();
  for (; seen_ < pools_.touches(); ++seen_)
    LookAgain(pools_.touched(seen_) & ~PoolTable::kStructural);
  pools_.NoteRead(seen_);
}

void FitIndex::LookAgain(size_t pool) {
  Allow(pool);
  tainted_.Assign(pool, pools_.tainted().Test(pool));
  Set(pool, Compute(pool));
}

bool FitIndex::HasRoom(size_t pool) const {
  if (pools_.is_counted(pool)) [[unlikely]]
    return pools_.HasRoom(shape_, pool);
  const ScoreLine* lines = pools_.score(pool);
  // No branch: which dimension is short cannot be foretold. A difference below zero has bit 63.
  uint64_t lacks = static_cast<uint64_t>(is_impossible_) << 63;
  for (size_t i = 0; i < pools_.lines(); ++i)
    for (size_t d = 0; d < kLane; ++d)
      lacks |= static_cast<uint64_t>(lines[i].free[d]) - static_cast<uint64_t>(least_[i][d]);
  return (lacks >> 63) == 0;
}

}  // namespace berth::scheduler
