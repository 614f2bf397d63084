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

#include "scheduler/core/answers.h"
#include "scheduler/core/internal/bitmap.h"

namespace berth::scheduler {

class LevelRows {
 public:
  static constexpr size_t kLevels = kLevelMax + 1;  // 0 stands for "cannot" and has no row
  static_assert(kLevels == kWordBits, "the levels in use are one word");

  // Forgets everything.
  void Reset(size_t chunks) {
    words_ = std::max<size_t>(1, (chunks + kWordBits - 1) / kWordBits);
    // A summary is one word, so that nobody has to look for its words.
    shift_ = static_cast<uint32_t>(std::bit_width((words_ - 1) / kWordBits));
    rows_.assign(kLevels * words_, 0);
    summaries_.fill(0);
    levels_ = 0;
  }

  // REQUIRES: level > 0.
  void Add(uint8_t level, size_t chunk) {
    uint64_t& word = rows_[level * words_ + chunk / kWordBits];
    if (word == 0) [[unlikely]] {
      summaries_[level] |= Bit(chunk / kWordBits >> shift_);
      levels_ |= Bit(level);
    }
    word |= Bit(chunk);
  }
  void Drop(uint8_t level, size_t chunk) {
    const size_t word = chunk / kWordBits;
    if ((rows_[level * words_ + word] &= ~Bit(chunk)) != 0) return;
    const size_t first = word >> shift_ << shift_;
    const size_t end = std::min(words_, first + span());
    for (size_t other = first; other < end; ++other)
      if (rows_[level * words_ + other] != 0) return;
    summaries_[level] &= ~Bit(word >> shift_);
    if (summaries_[level] == 0) levels_ &= ~Bit(level);
  }

  // A bit for each level that somebody may have.
  uint64_t levels() const { return levels_; }
  // A row is words() words: bit c of word w says that somebody in chunk 64 * w + c may have this
  // level. Bit s of its summary says that one of the span() words from s * span() on may not be
  // zero.
  size_t words() const { return words_; }
  size_t span() const { return size_t{1} << shift_; }
  uint64_t summary(size_t level) const { return summaries_[level]; }
  uint64_t word(size_t level, size_t word) const { return rows_[level * words_ + word]; }

 private:
  static uint64_t Bit(size_t i) { return uint64_t{1} << (i % kWordBits); }

  size_t words_ = 1;  // per row
  uint32_t shift_ = 0;
  uint64_t levels_ = 0;
  std::array<uint64_t, kLevels> summaries_{};
  std::vector<uint64_t> rows_;  // by level
};

}  // namespace berth::scheduler
