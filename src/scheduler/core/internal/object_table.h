// SPDX-License-Identifier: Apache-2.0
// What is placed where.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/hash_map.h"
#include "scheduler/core/request.h"

namespace berth::scheduler {

struct Placed {
  ObjectKey key;
  Shape shape;
  uint32_t pool = 0;
  int32_t priority = 0;
  uint64_t set = 0;
  bool is_confirmed : 1 = false;
  bool is_preemptible : 1 = false;
  bool has_local_state : 1 = false;
  bool is_charged : 1 = true;        // false: lives inside the room of the reservation it consumes
  bool is_unseen : 1 = false;        // the host's report does not count it yet
  bool has_reservation : 1 = false;  // the key of the copy it lives in is kept by the table
  bool has_consumer : 1 = false;     // of a reservation's copy: somebody lives in it
};
static_assert(sizeof(Placed) <= 56, "a million of them should stay small");

// An object that the host's report does not count, and since when the host holds it.
struct Unseen {
  uint32_t number = 0;
  bool is_held = false;
  LedgerVersion held_at;
};

struct ObjectKeyHash {
  uint64_t operator()(const ObjectKey& key) const { return key.high ^ (key.low * 0x9e3779b1); }
};

class ObjectTable {
 public:
  size_t size() const { return by_key_.size(); }
  void GrowTo(size_t pools) {
    on_pool_.resize(pools);
    unseen_.resize(pools);
  }
  // Numbers of the objects on a pool, in no particular but a reproducible order.
  const std::vector<uint32_t>& on_pool(size_t pool) const { return on_pool_[pool]; }
  // Those of them that the host's report does not count.
  std::vector<Unseen>& unseen(size_t pool) { return unseen_[pool]; }
  Placed& at(uint32_t number) { return objects_[number]; }
  const Placed& at(uint32_t number) const { return objects_[number]; }
  // Null: not known. The pointer ends with the next Add.
  Placed* Find(const ObjectKey& key) {
    const uint32_t* number = by_key_.Find(key);
    return number == nullptr ? nullptr : &objects_[*number];
  }
  const Placed* Find(const ObjectKey& key) const {
    const uint32_t* number = by_key_.Find(key);
    return number == nullptr ? nullptr : &objects_[*number];
  }
  // REQUIRES: the key is not known.
  Placed& Add(const ObjectKey& key, size_t pool);
  // REQUIRES: the key is known, and the object is not unseen.
  void Remove(const ObjectKey& key);
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
    for (const auto& numbers : on_pool_)
      for (const uint32_t number : numbers) fn(objects_[number]);
  }

 private:
  std::vector<Placed> objects_;
  std::vector<uint32_t> unused_;
  HashMap<ObjectKey, uint32_t, ObjectKeyHash> by_key_;
  std::vector<std::vector<uint32_t>> on_pool_;
  std::vector<std::vector<Unseen>> unseen_;
  std::map<ObjectKey, ObjectKey> reservations_;  // few: only between Assume and Confirm
  std::map<ObjectKey, ObjectKey> consumers_;
};

}  // namespace berth::scheduler
