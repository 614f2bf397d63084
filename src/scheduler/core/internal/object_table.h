// SPDX-License-Identifier: Apache-2.0
// What is placed where.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/large_memory.h"
#include "scheduler/core/internal/shape.h"
#include "scheduler/core/request.h"

namespace berth::scheduler {

// One cache line: whoever asks about an object waits for memory once.
struct alignas(64) Placed {
  ObjectKey key;
  CompiledShape* shape = nullptr;
  uint64_t set = 0;
  uint32_t pool = 0;
  int32_t priority = 0;
  bool is_confirmed = false;
  bool is_preemptible = false;
  bool has_local_state = false;
  bool is_charged = true;        // false: lives inside the room of the reservation it consumes
  bool is_unseen = false;        // the host's report does not count it yet
  bool has_reservation = false;  // the key of the copy it lives in is kept by the table
  bool has_consumer = false;     // of a reservation's copy: somebody lives in it
};
static_assert(sizeof(Placed) == 64, "a million of them should stay small");

// An object that the host's report does not count, and since when the host holds it. Kept beside
// the pool: a report looks at these, not at the objects.
struct Unseen {
  uint32_t number = 0;
  bool is_held = false;
  LedgerVersion held_at;
};

// What the table knows of one pool: one cache line too.
struct alignas(64) PoolObjects {
  std::vector<uint32_t> all;   // numbers, in no particular but a reproducible order
  std::vector<Unseen> unseen;  // those of them that the host's report does not count
  LedgerVersion reported;      // as of when that report is
};

class ObjectTable {
 public:
  size_t size() const { return size_; }
  void GrowTo(size_t pools) { pools_.resize(pools); }
  const std::vector<uint32_t>& on_pool(size_t pool) const { return pools_[pool].all; }
  std::vector<Unseen>& unseen(size_t pool) { return pools_[pool].unseen; }
  LedgerVersion& reported(size_t pool) { return pools_[pool].reported; }
  // The object's entry there. REQUIRES: it is unseen.
  Unseen& unseen_entry(const Placed& object) {
    return *std::ranges::find(pools_[object.pool].unseen, NumberOf(object), &Unseen::number);
  }
  void EraseUnseen(const Placed& object) {
    std::erase_if(pools_[object.pool].unseen,
                  [number = NumberOf(object)](const Unseen& one) { return one.number == number; });
  }
  Placed& at(uint32_t number) { return objects_[number]; }
  const Placed& at(uint32_t number) const { return objects_[number]; }
  // Null: not known. The pointer ends with the next Add.
  Placed* Find(const ObjectKey& key) {
    const size_t slot = SlotOf(key);
    return slot == kNowhere ? nullptr : &objects_[slots_[slot].number];
  }
  const Placed* Find(const ObjectKey& key) const {
    const size_t slot = SlotOf(key);
    return slot == kNowhere ? nullptr : &objects_[slots_[slot].number];
  }
  // The key, or objects on the pool, will be asked for soon: memory may be fetched meanwhile.
  void Expect(const ObjectKey& key) const { __builtin_prefetch(&slots_[HomeOf(TagOf(key))]); }
  void ExpectObject(const ObjectKey& key) const {
    const Slot home = slots_[HomeOf(TagOf(key))];  // nearly always the right one
    if (home.number != kUnused) __builtin_prefetch(&objects_[home.number]);
  }
  void ExpectNumbers(size_t pool) const {
    __builtin_prefetch(pools_[pool].all.data());
    __builtin_prefetch(pools_[pool].unseen.data());
  }
  void ExpectAt(size_t pool) const { __builtin_prefetch(&pools_[pool]); }
  // REQUIRES: the key is not known.
  Placed& Add(const ObjectKey& key, size_t pool);
  // REQUIRES: the object is in the table, and not unseen.
  void Remove(Placed& object);
  uint32_t NumberOf(const Placed& object) const {
    return static_cast<uint32_t>(&object - objects_.data());
  }
  // The object's reservation or consumer; null: none.
  Placed* ReservationOf(const Placed& object) {
    return object.has_reservation ? Find(reservations_.at(object.key)) : nullptr;
  }
  Placed* ConsumerOf(const Placed& copy) {
    return copy.has_consumer ? Find(consumers_.at(copy.key)) : nullptr;
  }
  const Placed* ConsumerOf(const Placed& copy) const {
    return copy.has_consumer ? Find(consumers_.at(copy.key)) : nullptr;
  }
  void Join(Placed& object, Placed& copy);
  void Part(Placed& object, Placed& copy);

  template <class Fn>
  void ForEach(Fn fn) {
    for (const auto& pool : pools_)
      for (const uint32_t number : pool.all) fn(objects_[number]);
  }

 private:
  static constexpr uint32_t kUnused = UINT32_MAX;
  static constexpr size_t kNowhere = SIZE_MAX;

  // A hash map from keys to numbers in 8 bytes per slot: open addressing with linear probing. The
  // key itself is in the object. The tag tells nearly all others apart, so a find waits for one
  // slot and one object, and a key that is not there for one slot only.
  struct Slot {
    uint32_t tag = 0;
    uint32_t number = kUnused;
  };
  // Fibonacci hashing: the upper bits of the product are the well mixed ones.
  static uint32_t TagOf(const ObjectKey& key) {
    return static_cast<uint32_t>(((key.high ^ (key.low * 0x9e3779b1)) * 0x9e3779b97f4a7c15) >> 32);
  }
  size_t HomeOf(uint32_t tag) const { return tag >> shift_; }
  size_t After(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  size_t SlotOf(const ObjectKey& key) const {
    const uint32_t tag = TagOf(key);
    for (size_t slot = HomeOf(tag); slots_[slot].number != kUnused; slot = After(slot))
      if (slots_[slot].tag == tag && objects_[slots_[slot].number].key == key) return slot;
    return kNowhere;
  }
  void Put(Slot entry);
  void EraseSlot(size_t hole);
  void Widen();

  LargeVector<Placed> objects_;
  LargeVector<uint32_t> unused_;
  size_t size_ = 0;
  LargeVector<Slot> slots_ = LargeVector<Slot>(2);  // a power of two, at most three quarters used
  int shift_ = 31;                                  // 32 - log2 of the number of slots
  LargeVector<PoolObjects> pools_;
  std::map<ObjectKey, ObjectKey> reservations_;  // few: only between Assume and Confirm
  std::map<ObjectKey, ObjectKey> consumers_;
};

}  // namespace berth::scheduler
