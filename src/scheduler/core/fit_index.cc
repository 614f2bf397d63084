// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/fit_index.h"

#include <algorithm>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace berth::scheduler {
namespace {

// What is left of a pool after a placement, as fractions of its capacity.
struct Leftover {
  double sum = 0;
  double largest = 0;
  double smallest = 1;
  double scarcest = 1;  // smallest of the dimensions that were asked for
};

double Score(Policy policy, const Leftover& left, double width) {
  const double mean = left.sum / width;
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

}  // namespace

uint64_t BytesAbove(const uint8_t* bytes, uint8_t threshold) {
#ifdef __SSE2__
  const __m128i limit = _mm_set1_epi8(static_cast<char>(threshold));
  const __m128i zero = _mm_setzero_si128();
  uint64_t mask = 0;
  for (int i = 0; i < 4; ++i) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
    const __m128i not_above = _mm_cmpeq_epi8(_mm_subs_epu8(part, limit), zero);
    const auto bits = static_cast<uint16_t>(~_mm_movemask_epi8(not_above));
    mask |= static_cast<uint64_t>(bits) << (16 * i);
  }
  return mask;
#else
  uint64_t mask = 0;
  for (size_t i = 0; i < kWordBits; ++i)
    if (bytes[i] > threshold) mask |= uint64_t{1} << i;
  return mask;
#endif
}

uint8_t LevelOf(const PoolTable& pools, size_t pool, Policy policy, const CompiledShape& shape) {
  const Cell* cells = pools.row(pool);
  const size_t dimensions = pools.dimensions();
  std::array<int64_t, kDimensionsMax> demands{};
  pools.ForEachDemand(
      shape, pool, [&](size_t dimension, int64_t amount) { demands[dimension] = amount; });
  Leftover left;
  for (size_t d = 0; d < dimensions; ++d) {
    if (cells[d].scale == 0) continue;
    const double rest = static_cast<double>(cells[d].free - demands[d]) * cells[d].scale;
    left.sum += rest;
    left.largest = std::max(left.largest, rest);
    left.smallest = std::min(left.smallest, rest);
    if (demands[d] > 0) left.scarcest = std::min(left.scarcest, rest);
  }
  return ToLevel(Score(policy, left, std::max(1U, pools.width(pool))));
}

FitIndex::FitIndex(const PoolTable& pools,
                   const Requirements& requirements,
                   const CompiledShape& shape)
    : shape_(Requirements{}) {
  key_.kind = requirements.kind;
  key_.policy = requirements.policy;
  shape_.class_id = shape.class_id;
  shape_.demands = shape.demands;
  shape_.unknown = shape.unknown;
  Rebuild(pools);
}

uint8_t FitIndex::max() const {
  uint8_t best = 0;
  for (const uint8_t level : block_max_) best = std::max(best, level);
  return best;
}

uint8_t FitIndex::Compute(const PoolTable& pools, size_t pool) const {
  if (!pools.usable(key_.kind).Test(pool)) return 0;
  if (!pools.Offers(pool, shape_.class_id)) return 0;
  if (!pools.HasRoom(shape_, pool)) return 0;
  return LevelOf(pools, pool, key_.policy, shape_);
}

void FitIndex::Resize(const PoolTable& pools) {
  slots_ = pools.slots();
  const size_t chunks = (slots_ + kWordBits - 1) / kWordBits;
  const size_t blocks = std::max<size_t>(1, (chunks + kWordBits - 1) / kWordBits);
  levels_.resize(chunks * kWordBits, 0);
  chunk_max_.resize(blocks * kWordBits, 0);
  block_max_.resize(blocks, 0);
}

void FitIndex::Rebuild(const PoolTable& pools) {
  Resize(pools);
  for (size_t pool = 0; pool < slots_; ++pool) levels_[pool] = Compute(pools, pool);
  for (size_t chunk = 0; chunk * kWordBits < levels_.size(); ++chunk)
    chunk_max_[chunk] =
        *std::max_element(&levels_[chunk * kWordBits], &levels_[chunk * kWordBits] + kWordBits);
  for (size_t block = 0; block < block_max_.size(); ++block)
    block_max_[block] = *std::max_element(&chunk_max_[block * kWordBits],
                                          &chunk_max_[block * kWordBits] + kWordBits);
  seen_ = pools.touches();
  pools.NoteRead(seen_);
}

void FitIndex::CatchUp(const PoolTable& pools) {
  const uint64_t behind = pools.touches() - seen_;
  if (behind == 0 && slots_ == pools.slots()) return;
  if (behind > PoolTable::kTouchLog || behind > pools.slots()) return Rebuild(pools);
  if (slots_ != pools.slots()) Resize(pools);
  for (; seen_ < pools.touches(); ++seen_) {
    const size_t pool = pools.touched(seen_);
    const uint8_t level = Compute(pools, pool);
    if (level != levels_[pool]) Update(pool, level);
  }
  pools.NoteRead(seen_);
}

void FitIndex::Update(size_t pool, uint8_t level) {
  const uint8_t old = levels_[pool];
  levels_[pool] = level;
  const size_t chunk = pool / kWordBits;
  const uint8_t old_max = chunk_max_[chunk];
  if (level > old_max) {
    chunk_max_[chunk] = level;
  } else if (old == old_max) {
    const uint8_t* first = &levels_[chunk * kWordBits];
    chunk_max_[chunk] = *std::max_element(first, first + kWordBits);
  }
  if (chunk_max_[chunk] == old_max) return;
  const size_t block = chunk / kWordBits;
  if (chunk_max_[chunk] > block_max_[block]) {
    block_max_[block] = chunk_max_[chunk];
  } else if (old_max == block_max_[block]) {
    const uint8_t* first = &chunk_max_[block * kWordBits];
    block_max_[block] = *std::max_element(first, first + kWordBits);
  }
}

}  // namespace berth::scheduler
