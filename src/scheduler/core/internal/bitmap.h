// SPDX-License-Identifier: Apache-2.0
// Sets of pools: one bit per pool, or a short list while there are few.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth::scheduler {

inline constexpr size_t kWordBits = 64;

// A bit per pool. All bitmaps of a board have the same number of words.
class Bitmap {
 public:
  void Resize(size_t words) { words_.resize(words, 0); }
  void Fill(uint64_t word) { std::ranges::fill(words_, word); }
  bool Test(size_t i) const { return (words_[i / kWordBits] >> (i % kWordBits)) & 1; }
  void Set(size_t i) { words_[i / kWordBits] |= uint64_t{1} << (i % kWordBits); }
  void Reset(size_t i) { words_[i / kWordBits] &= ~(uint64_t{1} << (i % kWordBits)); }
  void Assign(size_t i, bool value) { value ? Set(i) : Reset(i); }
  size_t words() const { return words_.size(); }
  uint64_t& word(size_t w) { return words_[w]; }
  uint64_t word(size_t w) const { return words_[w]; }
  const uint64_t* data() const { return words_.data(); }
  bool Any() const {
    return std::ranges::any_of(words_, [](uint64_t word) { return word != 0; });
  }
  // Calls fn(index) for every bit, lowest first.
  template <class Fn>
  void ForEach(Fn fn) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t bits = words_[w]; bits != 0; bits &= bits - 1)
        fn(w * kWordBits + static_cast<size_t>(std::countr_zero(bits)));
  }

 private:
  std::vector<uint64_t> words_;
};

// The pools that have something in common. A label that only one pool has must not cost a bit for
// each of 100,000.
class PoolSet {
 public:
  bool empty() const { return count_ == 0; }
  bool Contains(size_t pool) const {
    if (!dense_) return std::ranges::binary_search(few_, static_cast<uint32_t>(pool));
    return pool / kWordBits < bits_.words() && bits_.Test(pool);
  }
  void Insert(size_t pool) {
    if (Contains(pool)) return;
    ++count_;
    if (!dense_ && few_.size() == kFewMax) {
      for (const uint32_t one : few_) SetBit(one);
      few_ = {};
      dense_ = true;
    }
    if (dense_)
      SetBit(pool);
    else
      few_.insert(std::ranges::upper_bound(few_, static_cast<uint32_t>(pool)),
                  static_cast<uint32_t>(pool));
  }
  void Erase(size_t pool) {
    if (!Contains(pool)) return;
    --count_;
    if (dense_)
      bits_.Reset(pool);
    else
      few_.erase(std::ranges::lower_bound(few_, static_cast<uint32_t>(pool)));
  }
  // Adds all members to a bitmap of the board.
  void OrInto(Bitmap& target) const {
    for (const uint32_t pool : few_) target.Set(pool);
    for (size_t w = 0; dense_ && w < bits_.words(); ++w) target.word(w) |= bits_.word(w);
  }

 private:
  static constexpr size_t kFewMax = 64;  // 64 * 4 bytes against 12,500 for 100,000 pools
  void SetBit(size_t pool) {
    if (bits_.words() <= pool / kWordBits) bits_.Resize(pool / kWordBits + 1);
    bits_.Set(pool);
  }
  std::vector<uint32_t> few_;  // sorted
  Bitmap bits_;                // grown as needed, never longer than the board's
  bool dense_ = false;
  size_t count_ = 0;
};

}  // namespace berth::scheduler
