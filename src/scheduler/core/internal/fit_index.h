// SPDX-License-Identifier: Apache-2.0
// A FitIndex knows for every pool how well one shape would go there: a level from 1 to kLevelMax,
// or 0 if it cannot. Pools are visited from the highest level down, so a decision looks at those
// pools only that are better than its answer but ruled out by other means.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
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

inline constexpr float kLevelSteps = kLevelMax - 1;
// The policy's score of a pool, 1 to kLevelMax, whether there is room or not. Pure arithmetic on
// the pool's own numbers.
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

// Which pools may be looked at, word by word: those in all of some sets and in none of others.
class Clauses {
 public:
  void All(const Bitmap& set) { clauses_[count_++] = {.words = set.data(), .flip = 0}; }
  void None(const Bitmap& set) { clauses_[count_++] = {.words = set.data(), .flip = ~uint64_t{0}}; }
  uint64_t Word(size_t w) const {
    uint64_t word = ~uint64_t{0};
    for (const Clause* clause = clauses_.data(); clause != clauses_.data() + count_; ++clause)
      word &= clause->words[w] ^ clause->flip;
    return word;
  }
  // Whether four more can be added.
  bool has_space() const { return count_ + 4 < clauses_.size(); }

 private:
  struct Clause {
    const uint64_t* words;
    uint64_t flip;  // all ones: none of the set
  };
  std::array<Clause, 16> clauses_;  // what does not fit is joined into one bitmap first
  size_t count_ = 0;
};

// Which pools Descend may skip unseen. Tainted pools stay empty, so where empty pools come first
// every request would have to pass all of them.
enum class TaintScope : uint8_t { kUntainted, kAll };

class FitIndex {
 public:
  // Builds the index: linear in pools.
  FitIndex(const PoolTable& pools, const CompiledShape& shape);

  // Looks again at the pools touched since the last time.
  void CatchUp();

  // ---- For a FitBank, which computes the levels of several indexes together.
  float demand(size_t dimension) const { return demands_[dimension / kLane][dimension % kLane]; }
  // How much must be free; far below zero if nothing is asked for.
  int64_t least(size_t dimension) const { return least_[dimension / kLane][dimension % kLane]; }
  bool is_impossible() const { return is_impossible_; }
  Policy policy() const { return policy_; }
  uint8_t level(size_t pool) const { return levels_[pool]; }
  // Whether the pool is usable and offers the class.
  bool Allows(size_t pool) const { return allowed_.Test(pool); }
  void Set(size_t pool, uint8_t level) {
    levels_[pool] = level;
    if (level != 0) rows_[static_cast<size_t>(tainted_.Test(pool))].Add(level, pool / kWordBits);
  }
  void LookAgain(size_t pool);
  // There are more pools than before; whoever says so looks at the new ones.
  void Grow();
  void SetSeen(uint64_t touches) { seen_ = touches; }
  uint64_t used_at = 0;  // touches
  // Its place in the bank while that keeps it up to date.
  struct Seat {
    size_t eight;
    size_t lane;
  };
  std::optional<Seat> seat;

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
  void Rebuild();
  void Allow(size_t pool);
  bool HasRoom(size_t pool) const;
  uint8_t Compute(size_t pool) const;
  void AddRows();

  // The order of one descent.
  struct Route {
    size_t start;
    const Clauses& clauses;
  };
  template <TaintScope scope, class Visit>
  void Descend(const Route& route, Visit& visit);
  // The same for the pools of one level in the chunks from `first` on, up to `end`. False: visit
  // said so.
  template <TaintScope scope, class Visit>
  bool VisitLevel(const Route& route, uint8_t level, size_t first, size_t end, Visit& visit);
  template <class Visit>
  static bool VisitBits(size_t chunk, uint64_t bits, size_t rotation, Visit visit);
  // Pools of the chunk with that level.
  template <TaintScope scope>
  uint64_t LevelBits(uint8_t level, size_t chunk);

  const PoolTable& pools_;
  PoolKind kind_;
  Policy policy_;
  CompiledShape shape_;  // only what demands need
  DemandLanes demands_{};
  std::array<std::array<int64_t, kLane>, kDimensionsMax / kLane> least_{};
  bool is_impossible_ = false;  // on pools with a vector
  uint64_t seen_ = 0;
  size_t slots_ = 0;
  Bitmap allowed_;                 // usable, and offers the class
  Bitmap tainted_;                 // as of the last look
  std::vector<uint8_t> levels_;    // by pool, padded to whole chunks
  std::array<LevelRows, 2> rows_;  // of untainted pools, of tainted ones
};

template <TaintScope scope>
uint64_t FitIndex::LevelBits(uint8_t level, size_t chunk) {
  const uint64_t bits = BytesEqual(&levels_[chunk * kWordBits], level);
  const uint64_t untainted = bits & ~tainted_.word(chunk);
  if (untainted == 0) rows_[0].Drop(level, chunk);
  if constexpr (scope == TaintScope::kUntainted) return untainted;
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

template <TaintScope scope, class Visit>
bool FitIndex::VisitLevel(
    const Route& route, uint8_t level, size_t first, size_t end, Visit& visit) {
  const LevelRows& plain = rows_[0];
  const LevelRows& other = rows_[1];  // of tainted pools
  const auto join = [](uint64_t a, uint64_t b) { return scope == TaintScope::kAll ? a | b : a; };
  const auto lowest = [](uint64_t bits) { return static_cast<size_t>(std::countr_zero(bits)); };
  const size_t span = plain.span();
  uint64_t spans = join(plain.summary(level), other.summary(level));
  for (spans &= ~uint64_t{0} << (first / kWordBits / span); spans != 0; spans &= spans - 1) {
    const size_t begin = std::max(lowest(spans) * span, first / kWordBits);
    const size_t stop = std::min(plain.words(), (lowest(spans) + 1) * span);
    for (size_t word = begin; word < stop; ++word) {
      uint64_t chunks = join(plain.word(level, word), other.word(level, word));
      if (word == first / kWordBits) chunks &= ~uint64_t{0} << (first % kWordBits);
      while (chunks != 0) {
        const size_t chunk = word * kWordBits + lowest(chunks);
        if (chunk >= end) return true;
        chunks &= chunks - 1;
        // Most chunks have nobody to offer: the next one is on its way meanwhile.
        if (chunks != 0)
          __builtin_prefetch(&levels_[(word * kWordBits + lowest(chunks)) * kWordBits]);
        uint64_t bits = LevelBits<scope>(level, chunk);
        if (bits == 0 || (bits &= route.clauses.Word(chunk)) == 0) continue;
        if (!VisitBits(chunk, bits, route.start % kWordBits, [&](size_t pool) {
              return visit(pool, level);
            }))
          return false;
      }
    }
  }
  return true;
}

template <TaintScope scope, class Visit>
void FitIndex::Descend(const Route& route, Visit& visit) {
  const size_t first = route.start / kWordBits;
  const size_t chunks = levels_.size() / kWordBits;
  uint64_t levels = rows_[0].levels();
  if constexpr (scope == TaintScope::kAll) levels |= rows_[1].levels();
  while (levels != 0) {
    const auto level = static_cast<uint8_t>(std::bit_width(levels) - 1);
    levels ^= uint64_t{1} << level;
    if (!VisitLevel<scope>(route, level, first, chunks, visit)) return;
    if (first > 0 && !VisitLevel<scope>(route, level, 0, first, visit)) return;
  }
}

template <class Visit>
void FitIndex::Descend(size_t start, TaintScope scope, const Clauses& clauses, Visit visit) {
  const Route route{.start = start, .clauses = clauses};
  if (scope == TaintScope::kAll)
    Descend<TaintScope::kAll>(route, visit);
  else
    Descend<TaintScope::kUntainted>(route, visit);
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
