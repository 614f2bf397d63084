// SPDX-License-Identifier: Apache-2.0
// LevelRows says in which chunks (64 pools each) a pool of some level may be, so that the best pool
// is found by going down from the highest level instead of looking at every chunk.
//
// "May be": whoever changes a pool's level only adds the new level. A bit that turns out to stand
// for nobody is dropped by the one who looks there. Every change adds at most one bit and every
// wrong look takes one away, so looking costs no more than changing did.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/core/internal/bitmap.h"

namespace berth::scheduler {

class LevelRows {
 public:
  static constexpr size_t kLevels = 256;  // 0 stands for "cannot" and has no row
  static constexpr size_t kNone = SIZE_MAX;

  // Forgets everything.
  void Reset(size_t chunks) {
    words_ = std::max<size_t>(1, (chunks + kWordBits - 1) / kWordBits);
    tops_ = (words_ + kWordBits - 1) / kWordBits;
    rows_.assign(kLevels * words_, 0);
    summary_.assign(kLevels * tops_, 0);
    levels_.fill(0);
  }

  void Add(uint8_t level, size_t chunk) {
    uint64_t& word = rows_[level * words_ + chunk / kWordBits];
    if (word == 0) [[unlikely]] {
      summary_[level * tops_ + chunk / kWordBits / kWordBits] |= Bit(chunk / kWordBits);
      levels_[level / kWordBits] |= Bit(level);
    }
    word |= Bit(chunk);
  }
  void Drop(uint8_t level, size_t chunk) {
    const size_t word = chunk / kWordBits;
    if ((rows_[level * words_ + word] &= ~Bit(chunk)) != 0) return;
    summary_[level * tops_ + word / kWordBits] &= ~Bit(word);
    for (size_t top = 0; top < tops_; ++top)
      if (summary_[level * tops_ + top] != 0) return;
    levels_[level / kWordBits] &= ~Bit(level);
  }

  // The highest level below `bound` that somebody may have; 0: none.
  size_t Below(size_t bound) const {
    for (size_t word = (bound + kWordBits - 1) / kWordBits; word-- > 0;) {
      uint64_t bits = levels_[word];
      if (bound < (word + 1) * kWordBits) bits &= Bit(bound) - 1;
      if (bits != 0)
        return word * kWordBits + kWordBits - 1 - static_cast<size_t>(std::countl_zero(bits));
    }
    return 0;
  }
  // The first chunk from `chunk` on where somebody may have this level; kNone.
  size_t Next(size_t level, size_t chunk) const {
    const size_t word = chunk / kWordBits;
    if (word >= words_) return kNone;
    const uint64_t* row = &rows_[level * words_];
    const uint64_t rest = row[word] & (~uint64_t{0} << (chunk % kWordBits));
    if (rest != 0) return At(word, rest);
    for (size_t from = word + 1; from < words_; from = (from / kWordBits + 1) * kWordBits) {
      const size_t top = from / kWordBits;
      const uint64_t used = summary_[level * tops_ + top] & (~uint64_t{0} << (from % kWordBits));
      if (used == 0) continue;
      const size_t found = At(top, used);
      return At(found, row[found]);
    }
    return kNone;
  }

 private:
  static uint64_t Bit(size_t i) { return uint64_t{1} << (i % kWordBits); }
  static size_t At(size_t word, uint64_t bits) {
    return word * kWordBits + static_cast<size_t>(std::countr_zero(bits));
  }

  size_t words_ = 1;               // per row
  size_t tops_ = 1;                // words per row's summary: which words are not zero
  std::vector<uint64_t> rows_;     // by level
  std::vector<uint64_t> summary_;  // by level
  std::array<uint64_t, kLevels / kWordBits> levels_{};  // whose summary is not zero
};

}  // namespace berth::scheduler
