// SPDX-License-Identifier: Apache-2.0
// HashMap finds values by key in one probe or two. It cannot be iterated, so nothing can come to
// depend on the order of hashes: that is why it may be used where std::unordered_map may not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace berth {

// Open addressing with linear probing; erasing moves followers back, so there are no tombstones.
// Hash gives 64 bits for a key; the map mixes them itself. Pointers to values end with the next
// Insert or Erase.
template <class Key, class Value, class Hash>
class HashMap {
 public:
  size_t size() const { return size_; }

  Value* Find(const Key& key) {
    const size_t slot = SlotOf(key);
    return slot == kNone ? nullptr : &slots_[slot].value;
  }
  const Value* Find(const Key& key) const {
    const size_t slot = SlotOf(key);
    return slot == kNone ? nullptr : &slots_[slot].value;
  }

  // False: the key is there already, its value stays.
  bool Insert(const Key& key, Value value) {
    if (SlotOf(key) != kNone) return false;
    if ((size_ + 1) * 4 > slots_.size() * 3) Grow();
    Put(key, std::move(value));
    ++size_;
    return true;
  }

  bool Erase(const Key& key) {
    size_t hole = SlotOf(key);
    if (hole == kNone) return false;
    const size_t mask = slots_.size() - 1;
    // Whoever would be found sooner in the hole moves there, which makes the next hole.
    for (size_t next = (hole + 1) & mask; slots_[next].used; next = (next + 1) & mask) {
      const size_t home = HomeOf(slots_[next].key);
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      slots_[hole] = std::move(slots_[next]);
      hole = next;
    }
    slots_[hole] = Slot{};
    --size_;
    return true;
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Slot {
    Key key{};
    Value value{};
    bool used = false;
  };

  // Fibonacci hashing: the upper bits of the product are the well mixed ones.
  size_t HomeOf(const Key& key) const {
    return static_cast<size_t>((Hash{}(key) * 0x9e3779b97f4a7c15ULL) >> 20) & (slots_.size() - 1);
  }
  size_t SlotOf(const Key& key) const {
    if (slots_.empty()) return kNone;
    const size_t mask = slots_.size() - 1;
    for (size_t slot = HomeOf(key); slots_[slot].used; slot = (slot + 1) & mask)
      if (slots_[slot].key == key) return slot;
    return kNone;
  }
  void Put(const Key& key, Value value) {
    const size_t mask = slots_.size() - 1;
    size_t slot = HomeOf(key);
    while (slots_[slot].used) slot = (slot + 1) & mask;
    slots_[slot] = Slot{.key = key, .value = std::move(value), .used = true};
  }
  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
    std::swap(old, slots_);
    for (auto& slot : old)
      if (slot.used) Put(slot.key, std::move(slot.value));
  }

  std::vector<Slot> slots_;  // size is a power of two, at most three quarters used
  size_t size_ = 0;
};

}  // namespace berth
