// SPDX-License-Identifier: Apache-2.0
// A FitIndex knows for every pool how well one shape would go there: a level from 1 to 255, or 0 if
// it cannot. It keeps the largest level of every 64 pools and of every 4,096, so that the best pool
// is found by looking at a few hundred bytes, also when most pools are ruled out by other means.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "scheduler/core/internal/pool_table.h"

namespace berth::scheduler {

// Everything that a level depends on besides the pool.
struct FitKey {
  PoolKind kind = PoolKind::kMachine;
  Policy policy = kDefaultPolicy;
  uint32_t class_id = 0;
  bool is_impossible = false;  // asks for what no vector pool has
  std::vector<std::pair<size_t, int64_t>> demands;
  auto operator<=>(const FitKey&) const = default;
};

// Demands as scoring wants them.
using DemandLanes = std::array<Lane, kDimensionsMax / kLane>;
DemandLanes LanesOf(const CompiledShape& shape);

// The policy's score of a pool, 1 to 255, whether there is room or not. Pure arithmetic on the
// pool's own numbers.
uint8_t LevelOf(const PoolTable& pools, size_t pool, Policy policy, const CompiledShape& shape);

// A bit for each of 64 bytes that is above the threshold.
inline uint64_t BytesAbove(const uint8_t* bytes, uint8_t threshold) {
  uint64_t mask = 0;
#ifdef __SSE2__
  const __m128i limit = _mm_set1_epi8(static_cast<char>(threshold));
  const __m128i zero = _mm_setzero_si128();
  for (int i = 0; i < 4; ++i) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
    const __m128i not_above = _mm_cmpeq_epi8(_mm_subs_epu8(part, limit), zero);
    const auto bits = static_cast<uint16_t>(~_mm_movemask_epi8(not_above));
    mask |= static_cast<uint64_t>(bits) << (16 * i);
  }
#else
  for (size_t i = 0; i < kWordBits; ++i) mask |= static_cast<uint64_t>(bytes[i] > threshold) << i;
#endif
  return mask;
}

// Which pools may be looked at, word by word: in all of `all`, in none of `none`.
class Clauses {
 public:
  void All(const Bitmap& set) { all_[all_count_++] = set.data(); }
  void None(const Bitmap& set) { none_[none_count_++] = set.data(); }
  uint64_t Word(size_t w) const {
    uint64_t word = ~uint64_t{0};
    for (size_t i = 0; i < all_count_; ++i) word &= all_[i][w];
    for (size_t i = 0; i < none_count_; ++i) word &= ~none_[i][w];
    return word;
  }
  // Whether most pools are ruled out.
  bool is_selective() const { return all_count_ > 0; }
  // Whether two more of each kind can be added.
  bool has_space() const { return all_count_ + 2 < kMax && none_count_ + 2 < kMax; }

 private:
  static constexpr size_t kMax = 12;  // what does not fit is joined into one bitmap first
  std::array<const uint64_t*, kMax> all_;
  std::array<const uint64_t*, kMax> none_;
  size_t all_count_ = 0;
  size_t none_count_ = 0;
};

class FitIndex {
 public:
  // Builds the index: linear in pools.
  FitIndex(const PoolTable& pools, const CompiledShape& shape);

  // Looks again at the pools touched since the last time.
  void CatchUp(const PoolTable& pools);

  // The largest level of all.
  uint8_t max() const;

  // Visits pools with a level above visitor.threshold(), which may rise during the visit, as
  // visitor.Visit(pool, level). Pools come in the order of their indexes from `start` on, around
  // the end, by 64 and within the 64.
  template <class Visitor>
  void Scan(size_t start, const Clauses& clauses, Visitor& visitor) const;

 private:
  void Resize(const PoolTable& pools);
  void Rebuild(const PoolTable& pools);
  void Allow(const PoolTable& pools, size_t pool);
  bool HasRoom(const PoolTable& pools, size_t pool) const;
  uint8_t Compute(const PoolTable& pools, size_t pool) const;
  template <Policy policy>
  void Replay(const PoolTable& pools);
  void Update(size_t pool, uint8_t level);

  template <class Visitor>
  void ScanBlock(size_t block,
                 uint64_t chunks,
                 size_t rotation,
                 const Clauses& clauses,
                 Visitor& visitor) const;

  PoolKind kind_;
  Policy policy_;
  CompiledShape shape_;  // only what demands need
  DemandLanes demands_{};
  std::array<std::array<int64_t, kLane>, kDimensionsMax / kLane> least_{};
  bool is_impossible_ = false;  // on pools with a vector
  uint64_t seen_ = 0;
  size_t slots_ = 0;
  Bitmap allowed_;                  // usable, and offers the class
  std::vector<uint8_t> levels_;     // padded to whole chunks
  std::vector<uint8_t> chunk_max_;  // padded to whole blocks
  std::vector<uint8_t> block_max_;
};

template <class Visitor>
void FitIndex::ScanBlock(size_t block,
                         uint64_t chunks,
                         size_t rotation,
                         const Clauses& clauses,
                         Visitor& visitor) const {
  for (; chunks != 0; chunks &= chunks - 1) {
    const size_t chunk = block * kWordBits + static_cast<size_t>(std::countr_zero(chunks));
    if (chunk_max_[chunk] <= visitor.threshold()) continue;
    uint64_t bits = clauses.Word(chunk);
    if (bits == 0) continue;
    // With a selector few bits are left, and each is looked at below anyway.
    if (!clauses.is_selective())
      bits &= BytesAbove(&levels_[chunk * kWordBits], visitor.threshold());
    for (bits = std::rotr(bits, static_cast<int>(rotation)); bits != 0; bits &= bits - 1) {
      const size_t bit = (static_cast<size_t>(std::countr_zero(bits)) + rotation) % kWordBits;
      const size_t pool = chunk * kWordBits + bit;
      if (levels_[pool] > visitor.threshold()) visitor.Visit(pool, levels_[pool]);
    }
  }
}

template <class Visitor>
void FitIndex::Scan(size_t start, const Clauses& clauses, Visitor& visitor) const {
  const size_t first_chunk = start / kWordBits;
  const size_t first_block = first_chunk / kWordBits;
  const size_t rotation = start % kWordBits;
  // The first block's chunks from the start on, the other blocks, the first block's other chunks.
  const uint64_t head = ~uint64_t{0} << (first_chunk % kWordBits);
  const size_t blocks = block_max_.size();
  for (size_t i = 0, block = first_block; i <= blocks; ++i, ++block) {
    if (block == blocks) block = 0;
    if (block_max_[block] <= visitor.threshold()) continue;
    uint64_t chunks = BytesAbove(&chunk_max_[block * kWordBits], visitor.threshold());
    if (i == 0) chunks &= head;
    if (i == blocks) chunks &= ~head;
    ScanBlock(block, chunks, rotation, clauses, visitor);
  }
}

}  // namespace berth::scheduler
