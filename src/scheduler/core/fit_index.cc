// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/fit_index.h"

#include <algorithm>

namespace berth::scheduler {
namespace {

// Products and sums are not to be fused: levels must be the same on every machine.
#pragma STDC FP_CONTRACT OFF

Lane Min(Lane a, Lane b) { return a < b ? a : b; }
Lane Max(Lane a, Lane b) { return a > b ? a : b; }
float SumOf(Lane lane) { return (lane[0] + lane[2]) + (lane[1] + lane[3]); }
float MinOf(Lane lane) { return std::min(std::min(lane[0], lane[2]), std::min(lane[1], lane[3])); }
float MaxOf(Lane lane) { return std::max(std::max(lane[0], lane[2]), std::max(lane[1], lane[3])); }

uint8_t ToLevel(float score) {
  return static_cast<uint8_t>(1 + static_cast<int>(254 * std::clamp(score, 0.0F, 1.0F)));
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
      scarcest = Min(scarcest, demands[i] > 0.0F ? rest : kOnes);
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

uint8_t MaxOf64(const uint8_t* bytes) {
#ifdef __SSE2__
  const auto* parts = reinterpret_cast<const __m128i*>(bytes);
  __m128i best = _mm_max_epu8(_mm_max_epu8(_mm_loadu_si128(parts), _mm_loadu_si128(parts + 1)),
                              _mm_max_epu8(_mm_loadu_si128(parts + 2), _mm_loadu_si128(parts + 3)));
  best = _mm_max_epu8(best, _mm_srli_si128(best, 8));
  best = _mm_max_epu8(best, _mm_srli_si128(best, 4));
  best = _mm_max_epu8(best, _mm_srli_si128(best, 2));
  best = _mm_max_epu8(best, _mm_srli_si128(best, 1));
  return static_cast<uint8_t>(_mm_cvtsi128_si32(best));
#else
  return *std::max_element(bytes, bytes + kWordBits);
#endif
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
    : kind_(shape.requirements.kind), policy_(shape.requirements.policy), shape_(Requirements{}) {
  shape_.class_id = shape.class_id;
  shape_.demands = shape.demands;
  shape_.unknown = shape.unknown;
  demands_ = LanesOf(shape);
  is_impossible_ = !shape.unknown.empty();
  // Nothing asked for is never too little, even on a pool that has promised too much of it.
  for (auto& line : least_) line.fill(INT64_MIN);
  for (const Demand& demand : shape.demands)
    least_[demand.dimension / kLane][demand.dimension % kLane] = demand.amount;
  Rebuild(pools);
}

uint8_t FitIndex::max() const {
  uint8_t best = 0;
  for (const uint8_t level : block_max_) best = std::max(best, level);
  return best;
}

void FitIndex::Allow(const PoolTable& pools, size_t pool) {
  allowed_.Assign(pool, pools.usable(kind_).Test(pool) && pools.Offers(pool, shape_.class_id));
}

uint8_t FitIndex::Compute(const PoolTable& pools, size_t pool) const {
  if (!allowed_.Test(pool) || !HasRoom(pools, pool)) return 0;
  return LevelOf(pools, pool, policy_, shape_);
}

void FitIndex::Resize(const PoolTable& pools) {
  slots_ = pools.slots();
  const size_t chunks = (slots_ + kWordBits - 1) / kWordBits;
  const size_t blocks = std::max<size_t>(1, (chunks + kWordBits - 1) / kWordBits);
  allowed_.Resize(pools.words());
  levels_.resize(chunks * kWordBits, 0);
  chunk_max_.resize(blocks * kWordBits, 0);
  block_max_.resize(blocks, 0);
}

void FitIndex::Rebuild(const PoolTable& pools) {
  Resize(pools);
  for (size_t pool = 0; pool < slots_; ++pool) {
    Allow(pools, pool);
    levels_[pool] = Compute(pools, pool);
  }
  for (size_t chunk = 0; chunk * kWordBits < levels_.size(); ++chunk)
    chunk_max_[chunk] = MaxOf64(&levels_[chunk * kWordBits]);
  for (size_t block = 0; block < block_max_.size(); ++block)
    block_max_[block] = MaxOf64(&chunk_max_[block * kWordBits]);
  seen_ = pools.touches();
  pools.NoteRead(seen_);
}

void FitIndex::CatchUp(const PoolTable& pools) {
  const uint64_t behind = pools.touches() - seen_;
  if (behind == 0 && slots_ == pools.slots()) return;
  if (behind > PoolTable::kTouchLog || behind > pools.slots()) return Rebuild(pools);
  if (slots_ != pools.slots()) Resize(pools);
  switch (policy_) {
    case Policy::kBinpack: Replay<Policy::kBinpack>(pools); break;
    case Policy::kSpread: Replay<Policy::kSpread>(pools); break;
    case Policy::kBalanced: Replay<Policy::kBalanced>(pools); break;
  }
  pools.NoteRead(seen_);
}

bool FitIndex::HasRoom(const PoolTable& pools, size_t pool) const {
  if (pools.is_counted(pool)) [[unlikely]]
    return pools.HasRoom(shape_, pool);
  const ScoreLine* lines = pools.score(pool);
  bool lacks = is_impossible_;
  for (size_t i = 0; i < pools.lines(); ++i) {
    // No branch: which dimension is short cannot be foretold.
    for (size_t d = 0; d < kLane; ++d) lacks |= lines[i].free[d] < least_[i][d];
  }
  return !lacks;
}

template <Policy policy>
void FitIndex::Replay(const PoolTable& pools) {
  const uint64_t end = pools.touches();
  uint8_t* const levels = levels_.data();
  for (uint64_t i = seen_; i < end; ++i) {
    const uint32_t touch = pools.touched(i);
    const size_t pool = touch & ~PoolTable::kStructural;
    if ((touch & PoolTable::kStructural) != 0) [[unlikely]]
      Allow(pools, pool);
    uint8_t level = 0;
    if (allowed_.Test(pool) && HasRoom(pools, pool))
      level = LevelInPool<policy>(pools, pool, shape_, demands_.data());
    if (level != levels[pool]) Update(pool, level);
  }
  seen_ = end;
}

void FitIndex::Update(size_t pool, uint8_t level) {
  const uint8_t old = levels_[pool];
  levels_[pool] = level;
  const size_t chunk = pool / kWordBits;
  const uint8_t old_max = chunk_max_[chunk];
  if (level > old_max)
    chunk_max_[chunk] = level;
  else if (old == old_max)
    chunk_max_[chunk] = MaxOf64(&levels_[chunk * kWordBits]);
  if (chunk_max_[chunk] == old_max) return;
  const size_t block = chunk / kWordBits;
  if (chunk_max_[chunk] > block_max_[block])
    block_max_[block] = chunk_max_[chunk];
  else if (old_max == block_max_[block])
    block_max_[block] = MaxOf64(&chunk_max_[block * kWordBits]);
}

}  // namespace berth::scheduler
