// SPDX-License-Identifier: Apache-2.0
// A FitIndex knows for every pool how well one shape would go there: a level from 1 to 255, or 0 if
// it cannot. Pools are visited from the highest level down, so a decision looks at those pools only
// that are better than its answer but ruled out by other means.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "scheduler/core/internal/level_rows.h"
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

// A bit for each of 64 bytes that is this one.
inline uint64_t BytesEqual(const uint8_t* bytes, uint8_t wanted) {
  uint64_t mask = 0;
#ifdef __SSE2__
  const __m128i all = _mm_set1_epi8(static_cast<char>(wanted));
  for (int i = 0; i < 4; ++i) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
    const auto bits = static_cast<uint16_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(part, all)));
    mask |= static_cast<uint64_t>(bits) << (16 * i);
  }
#else
  for (size_t i = 0; i < kWordBits; ++i) mask |= static_cast<uint64_t>(bytes[i] == wanted) << i;
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
  // Whether two more of each kind can be added.
  bool has_space() const { return all_count_ + 2 < kMax && none_count_ + 2 < kMax; }

 private:
  static constexpr size_t kMax = 12;  // what does not fit is joined into one bitmap first
  std::array<const uint64_t*, kMax> all_;
  std::array<const uint64_t*, kMax> none_;
  size_t all_count_ = 0;
  size_t none_count_ = 0;
};

// Which pools Descend may skip unseen. Tainted pools stay empty, so where empty pools come first
// every request would have to pass all of them.
enum class TaintScope : uint8_t { kUntainted, kAll };

class FitIndex {
 public:
  // Builds the index: linear in pools.
  FitIndex(const PoolTable& pools, const CompiledShape& shape);

  // Looks again at the pools touched since the last time.
  void CatchUp(const PoolTable& pools);

  // ---- For a FitBank, which computes levels of several indexes together.
  float demand(size_t dimension) const { return demands_[dimension / kLane][dimension % kLane]; }
  // How much must be free; far below zero if nothing is asked for.
  int64_t least(size_t dimension) const { return least_[dimension / kLane][dimension % kLane]; }
  bool is_impossible() const { return is_impossible_; }
  // The pool's level, if there is room.
  void Set(size_t pool, uint8_t level, bool has_room) {
    // No branch: neither can be foretold. A row of level 0 is never looked at.
    const int fits = static_cast<int>(allowed_.Test(pool)) & static_cast<int>(has_room);
    const auto now = static_cast<uint8_t>(level & -fits);
    levels_[pool] = now;
    rows_[static_cast<size_t>(tainted_.Test(pool))].Add(now, pool / kWordBits);
  }
  void LookAgain(const PoolTable& pools, size_t pool);
  void SetSeen(uint64_t touches) { seen_ = touches; }
  bool is_awake = false;
  uint64_t used_at = 0;  // touches

  // Calls visit(pool, level) until it says false: the highest level first, pools of one level in
  // the order of their indexes from `start` on, around the end, by 64 and within the 64. Drops what
  // LevelRows has wrong on the way.
  template <class Visit>
  void Descend(size_t start, TaintScope scope, const Clauses& clauses, Visit visit);
  // Calls visit(pool, level) for every pool that fits, in the order that Descend has within a
  // level.
  template <class Visit>
  void ForEach(size_t start, const Clauses& clauses, Visit visit) const;

 private:
  void Resize(const PoolTable& pools);
  void Rebuild(const PoolTable& pools);
  void Allow(const PoolTable& pools, size_t pool);
  bool HasRoom(const PoolTable& pools, size_t pool) const;
  uint8_t Compute(const PoolTable& pools, size_t pool) const;
  void AddRows();

  // The order of one descent.
  struct Route {
    TaintScope scope;
    size_t rotation;  // within every chunk
    const Clauses& clauses;
  };
  size_t LevelBelow(TaintScope scope, size_t bound) const;
  size_t NextChunk(TaintScope scope, size_t level, size_t chunk) const;
  // Pools of the chunk with that level.
  uint64_t LevelBits(TaintScope scope, uint8_t level, size_t chunk);
  // Both say false if visit did.
  template <class Visit>
  bool VisitLevel(
      const Route& route, uint8_t level, size_t first_chunk, size_t end_chunk, Visit& visit);
  template <class Visit>
  static bool VisitBits(size_t chunk, uint64_t bits, size_t rotation, Visit visit);

  PoolKind kind_;
  Policy policy_;
  CompiledShape shape_;  // only what demands need
  DemandLanes demands_{};
  std::array<std::array<int64_t, kLane>, kDimensionsMax / kLane> least_{};
  bool is_impossible_ = false;  // on pools with a vector
  uint64_t seen_ = 0;
  size_t slots_ = 0;
  Bitmap allowed_;  // usable, and offers the class
  Bitmap tainted_;
  std::vector<uint8_t> levels_;    // by pool, padded to whole chunks
  std::array<LevelRows, 2> rows_;  // of untainted pools, of tainted ones
};

inline size_t FitIndex::LevelBelow(TaintScope scope, size_t bound) const {
  const size_t level = rows_[0].Below(bound);
  return scope == TaintScope::kAll ? std::max(level, rows_[1].Below(bound)) : level;
}

inline size_t FitIndex::NextChunk(TaintScope scope, size_t level, size_t chunk) const {
  const size_t next = rows_[0].Next(level, chunk);
  return scope == TaintScope::kAll ? std::min(next, rows_[1].Next(level, chunk)) : next;
}

inline uint64_t FitIndex::LevelBits(TaintScope scope, uint8_t level, size_t chunk) {
  const uint64_t bits = BytesEqual(&levels_[chunk * kWordBits], level);
  const uint64_t untainted = bits & ~tainted_.word(chunk);
  if (untainted == 0) rows_[0].Drop(level, chunk);
  if (scope == TaintScope::kUntainted) return untainted;
  if (untainted == bits) rows_[1].Drop(level, chunk);
  return bits;
}

template <class Visit>
bool FitIndex::VisitBits(size_t chunk, uint64_t bits, size_t rotation, Visit visit) {
  for (bits = std::rotr(bits, static_cast<int>(rotation)); bits != 0; bits &= bits - 1) {
    const size_t bit = (static_cast<size_t>(std::countr_zero(bits)) + rotation) % kWordBits;
    if (!visit(chunk * kWordBits + bit)) return false;
  }
  return true;
}

template <class Visit>
bool FitIndex::VisitLevel(
    const Route& route, uint8_t level, size_t first_chunk, size_t end_chunk, Visit& visit) {
  for (size_t chunk = NextChunk(route.scope, level, first_chunk); chunk < end_chunk;
       chunk = NextChunk(route.scope, level, chunk + 1)) {
    const uint64_t bits = LevelBits(route.scope, level, chunk) & route.clauses.Word(chunk);
    if (!VisitBits(chunk, bits, route.rotation, [&](size_t pool) { return visit(pool, level); }))
      return false;
  }
  return true;
}

template <class Visit>
void FitIndex::Descend(size_t start, TaintScope scope, const Clauses& clauses, Visit visit) {
  const size_t first = start / kWordBits;
  const size_t chunks = levels_.size() / kWordBits;
  const Route route{.scope = scope, .rotation = start % kWordBits, .clauses = clauses};
  for (size_t bound = LevelBelow(scope, LevelRows::kLevels); bound > 0;
       bound = LevelBelow(scope, bound)) {
    const auto level = static_cast<uint8_t>(bound);
    if (!VisitLevel(route, level, first, chunks, visit)) return;
    if (!VisitLevel(route, level, 0, first, visit)) return;
  }
}

template <class Visit>
void FitIndex::ForEach(size_t start, const Clauses& clauses, Visit visit) const {
  const size_t chunks = levels_.size() / kWordBits;
  for (size_t i = 0; i < chunks; ++i) {
    const size_t chunk = (start / kWordBits + i) % chunks;
    const uint64_t bits = clauses.Word(chunk) & ~BytesEqual(&levels_[chunk * kWordBits], 0);
    VisitBits(chunk, bits, start % kWordBits, [&](size_t pool) {
      visit(pool, levels_[pool]);
      return true;
    });
  }
}

}  // namespace berth::scheduler
