// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/fit_index.h"

#include <algorithm>

namespace berth::scheduler {
namespace {

// What is left of a pool after a placement, as fractions of its capacity.
struct Leftover {
  double sum = 0;
  double largest = 0;
  double smallest = 1;
  double scarcest = 1;  // smallest of the dimensions that were asked for
};

template <Policy policy>
double Score(const Leftover& left, double inverse_width) {
  const double mean = left.sum * inverse_width;
  switch (policy) {
    // Little left over in sum is best fit. The largest leftover is what gets stranded once the
    // pool is full in another dimension.
    case Policy::kBinpack: return 1 - (0.5 * mean + 0.5 * left.largest);
    case Policy::kSpread: return left.scarcest;
    case Policy::kBalanced: return 0.75 * (1 - (left.largest - left.smallest)) + 0.25 * mean;
  }
  return 0;
}

uint8_t ToLevel(double score) {
  return static_cast<uint8_t>(1 + static_cast<int>(254 * std::clamp(score, 0.0, 1.0)));
}

// The level of a pool that has room.
template <Policy policy>
uint8_t Level(const Cell* cells, size_t dimensions, const int64_t* demands, double inverse_width) {
  Leftover left;
  for (size_t d = 0; d < dimensions; ++d) {
    if (cells[d].scale == 0) continue;
    const double rest = static_cast<double>(cells[d].free - demands[d]) * cells[d].scale;
    if constexpr (policy == Policy::kSpread) {
      if (demands[d] > 0) left.scarcest = std::min(left.scarcest, rest);
    } else {
      left.sum += rest;
      left.largest = std::max(left.largest, rest);
      if constexpr (policy == Policy::kBalanced) left.smallest = std::min(left.smallest, rest);
    }
  }
  return ToLevel(Score<policy>(left, inverse_width));
}

template <Policy policy>
uint8_t LevelInPool(const PoolTable& pools,
                    size_t pool,
                    const CompiledShape& shape,
                    const int64_t* demands) {
  const Cell* cells = pools.row(pool);
  const double inverse_width = pools.inverse_width(pool);
  if (inverse_width < 0) [[unlikely]] {
    const int64_t share = pools.ShareOf(pool, shape.class_id);
    return Level<policy>(cells, 1, &share, 1);
  }
  return Level<policy>(cells, pools.dimensions(), demands, inverse_width);
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

uint8_t LevelOf(const PoolTable& pools, size_t pool, Policy policy, const CompiledShape& shape) {
  std::array<int64_t, kDimensionsMax> demands{};
  for (const Demand& demand : shape.demands) demands[demand.dimension] = demand.amount;
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
  for (const Demand& demand : shape.demands) demands_[demand.dimension] = demand.amount;
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
  if (!allowed_.Test(pool) || !pools.HasRoom(shape_, pool)) return 0;
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

template <Policy policy>
void FitIndex::Replay(const PoolTable& pools) {
  for (; seen_ < pools.touches(); ++seen_) {
    const uint32_t touch = pools.touched(seen_);
    const size_t pool = touch & ~PoolTable::kStructural;
    if ((touch & PoolTable::kStructural) != 0) [[unlikely]]
      Allow(pools, pool);
    uint8_t level = 0;
    if (allowed_.Test(pool) && pools.HasRoom(shape_, pool))
      level = LevelInPool<policy>(pools, pool, shape_, demands_.data());
    if (level != levels_[pool]) Update(pool, level);
  }
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
