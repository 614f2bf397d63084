// SPDX-License-Identifier: Apache-2.0
// A KeyLeaf keeps a few keys and what belongs to them sorted, made for many insertions of long keys
// that begin alike. Pure.
//
// Items stay where they arrived; what is sorted, and moves when a key is inserted, is a byte and a
// head per key: the eight bytes behind what all keys have in common. A search compares heads, and
// whole keys only where heads are equal.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace berth::store {

template <class Entry>
class KeyLeaf {
 public:
  // An insertion moves half of 128 * 9 bytes.
  static constexpr size_t kKeysMax = 128;
  struct Item {
    std::string key;
    Entry entry;
  };

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  bool is_full() const { return size() >= kKeysMax; }
  // In the order of keys.
  Item& operator[](size_t number) { return items_[order_[number]]; }
  const Item& operator[](size_t number) const { return items_[order_[number]]; }
  const Item& front() const { return (*this)[0]; }
  const Item& back() const { return (*this)[size() - 1]; }

  // How many keys are less.
  size_t LowerBound(std::string_view key) const;
  bool HasAt(size_t number, std::string_view key) const {
    return number < size() && (*this)[number].key == key;
  }
  // REQUIRES: LowerBound(item.key) is `number`, the key is not there, the leaf is not full.
  Item& Insert(size_t number, Item item);
  // Takes the items from `number` on away.
  KeyLeaf TakeFrom(size_t number);
  // Calls `is_gone` for each item in the order of keys and erases those for which it is true.
  template <class Fn>
  void EraseIf(Fn is_gone);

 private:
  static uint64_t HeadOf(std::string_view key, size_t common);
  static size_t CommonOf(std::string_view a, std::string_view b);
  // REQUIRES: items_ are sorted.
  void Arrange();
  void SetHeads();
  std::string_view KeyOf(uint8_t place) const { return items_[place].key; }

  std::vector<Item> items_;                 // in the order of arrival
  size_t common_ = 0;                       // all keys begin with the same so many bytes
  std::array<uint64_t, kKeysMax> heads_{};  // in the order of keys
  std::array<uint8_t, kKeysMax> order_{};   // in the order of keys: places in items_
};

template <class Entry>
uint64_t KeyLeaf<Entry>::HeadOf(std::string_view key, size_t common) {
  uint64_t head = 0;
  const std::string_view rest = key.substr(common, sizeof(head));
  std::memcpy(&head, rest.data(), rest.size());
  static_assert(std::endian::native == std::endian::little);
  return std::byteswap(head);
}

template <class Entry>
size_t KeyLeaf<Entry>::CommonOf(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

template <class Entry>
size_t KeyLeaf<Entry>::LowerBound(std::string_view key) const {
  if (empty()) return 0;
  const std::string_view common = KeyOf(0).substr(0, common_);
  if (const int order = key.substr(0, common_).compare(common); order != 0) {
    return order < 0 ? 0 : size();
  }
  const std::span heads(heads_.begin(), size());
  const auto alike = std::ranges::equal_range(heads, HeadOf(key, common_));
  const auto first = static_cast<size_t>(alike.begin() - heads.begin());
  const std::span places = std::span(order_).subspan(first, alike.size());
  const auto found =
      std::ranges::lower_bound(places, key, {}, [this](uint8_t place) { return KeyOf(place); });
  return first + static_cast<size_t>(found - places.begin());
}

template <class Entry>
KeyLeaf<Entry>::Item& KeyLeaf<Entry>::Insert(size_t number, Item item) {
  DCHECK(!is_full());
  const size_t count = size();
  const auto place = static_cast<uint8_t>(count);
  const size_t common =
      empty() ? item.key.size() : std::min(common_, CommonOf(item.key, items_.front().key));
  std::copy_backward(order_.begin() + number, order_.begin() + count, order_.begin() + count + 1);
  order_[number] = place;
  items_.push_back(std::move(item));
  if (common != common_) {
    common_ = common;
    SetHeads();
  } else {
    std::copy_backward(heads_.begin() + number, heads_.begin() + count, heads_.begin() + count + 1);
    heads_[number] = HeadOf(items_.back().key, common_);
  }
  return items_.back();
}

template <class Entry>
KeyLeaf<Entry> KeyLeaf<Entry>::TakeFrom(size_t number) {
  KeyLeaf low;
  KeyLeaf high;
  low.items_.reserve(kKeysMax);
  high.items_.reserve(kKeysMax);
  for (size_t i = 0; i < size(); ++i) {
    (i < number ? low : high).items_.push_back(std::move((*this)[i]));
  }
  low.Arrange();
  high.Arrange();
  *this = std::move(low);
  return high;
}

template <class Entry>
template <class Fn>
void KeyLeaf<Entry>::EraseIf(Fn is_gone) {
  std::bitset<kKeysMax> gone;
  for (size_t i = 0; i < size(); ++i) gone[i] = is_gone(std::as_const((*this)[i]));
  if (gone.none()) return;
  KeyLeaf kept;
  kept.items_.reserve(size() - gone.count());
  for (size_t i = 0; i < size(); ++i) {
    if (!gone[i]) kept.items_.push_back(std::move((*this)[i]));
  }
  kept.Arrange();
  *this = std::move(kept);
}

template <class Entry>
void KeyLeaf<Entry>::Arrange() {
  for (size_t i = 0; i < size(); ++i) order_[i] = static_cast<uint8_t>(i);
  common_ = empty() ? 0 : CommonOf(items_.front().key, items_.back().key);
  SetHeads();
}

template <class Entry>
void KeyLeaf<Entry>::SetHeads() {
  for (size_t i = 0; i < size(); ++i) heads_[i] = HeadOf(KeyOf(order_[i]), common_);
}

}  // namespace berth::store
