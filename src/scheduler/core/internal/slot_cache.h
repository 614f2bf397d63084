// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace berth::scheduler {

// Where something was the last time; only a hint.
struct SlotHint {
  uint32_t slot = 0;
  uint64_t serial = 0;
};

// A SlotCache keeps the values of the `capacity` keys used last. A hint finds a value again without
// looking for its key.
template <class Key, class Value>
class SlotCache {
 public:
  explicit SlotCache(size_t capacity) : capacity_(capacity) {}

  // The value for the key, made with make() if it is not there. It stays where it is until another
  // key drives it out.
  template <class Make>
  Value& Get(SlotHint& hint, const Key& key, Make make) {
    if (Value* value = FindByHint(hint)) return *value;
    return Find(hint, key, make);
  }
  // Null: the hint is out of date.
  Value* FindByHint(const SlotHint& hint) {
    if (hint.slot >= slots_.size() || slots_[hint.slot].serial != hint.serial) return nullptr;
    slots_[hint.slot].used = ++clock_;
    return slots_[hint.slot].value.get();
  }

  // Whom a new key would drive out; null: nobody.
  Value* Oldest() { return slots_.size() < capacity_ ? nullptr : slots_[OldestSlot()].value.get(); }

  template <class Fn>
  void ForEach(Fn fn) {
    for (auto& slot : slots_) fn(slot.key, *slot.value);
  }

 private:
  struct Slot {
    Key key;
    std::unique_ptr<Value> value;
    uint64_t serial = 0;
    uint64_t used = 0;
  };

  uint32_t OldestSlot() const {
    return static_cast<uint32_t>(std::ranges::min_element(slots_, {}, &Slot::used) -
                                 slots_.begin());
  }
  template <class Make>
  Value& Find(SlotHint& hint, const Key& key, Make make) {
    auto found = by_key_.find(key);
    if (found == by_key_.end()) {
      uint32_t index = static_cast<uint32_t>(slots_.size());
      if (slots_.size() < capacity_) {
        slots_.emplace_back();
      } else {
        index = OldestSlot();
        by_key_.erase(slots_[index].key);
      }
      slots_[index].key = key;
      slots_[index].value = make();
      slots_[index].serial = ++serial_;
      found = by_key_.emplace(key, index).first;
    }
    Slot& slot = slots_[found->second];
    slot.used = ++clock_;
    hint = {.slot = found->second, .serial = slot.serial};
    return *slot.value;
  }

  size_t capacity_;
  std::vector<Slot> slots_;
  std::map<Key, uint32_t> by_key_;
  uint64_t serial_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace berth::scheduler
