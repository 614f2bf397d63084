// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/object_table.h"

#include <algorithm>

#include "base/check.h"

namespace berth::scheduler {

Placed& ObjectTable::Add(const ObjectKey& key, size_t pool) {
  auto number = static_cast<uint32_t>(objects_.size());
  if (!unused_.empty()) {
    number = unused_.back();
    unused_.pop_back();
  } else {
    objects_.emplace_back();
  }
  CHECK(by_key_.Insert(key, number)) << "an object is placed twice";
  Placed& object = objects_[number];
  object.key = key;
  object.pool = static_cast<uint32_t>(pool);
  on_pool_[pool].push_back(number);
  return object;
}

void ObjectTable::Remove(const ObjectKey& key) {
  const uint32_t number = *by_key_.Find(key);
  Placed& object = objects_[number];
  auto& numbers = on_pool_[object.pool];
  // The last one takes its place. Looking for it in a few numbers is cheaper than a position kept
  // in every object: that would touch the other object too.
  *std::ranges::find(numbers, number) = numbers.back();
  numbers.pop_back();
  by_key_.Erase(key);
  object = Placed{};
  unused_.push_back(number);
}

void ObjectTable::Join(Placed& object, Placed& copy) {
  object.has_reservation = true;
  copy.has_consumer = true;
  reservations_[object.key] = copy.key;
  consumers_[copy.key] = object.key;
}

void ObjectTable::Part(Placed& object, Placed& copy) {
  object.has_reservation = false;
  copy.has_consumer = false;
  reservations_.erase(object.key);
  consumers_.erase(copy.key);
}

}  // namespace berth::scheduler
