// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/object_table.h"

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
  object.position = static_cast<uint32_t>(on_pool_[pool].size());
  on_pool_[pool].push_back(number);
  return object;
}

void ObjectTable::Remove(const ObjectKey& key) {
  const uint32_t number = *by_key_.Find(key);
  Placed& object = objects_[number];
  auto& numbers = on_pool_[object.pool];
  // The last one takes its place.
  numbers[object.position] = numbers.back();
  objects_[numbers.back()].position = object.position;
  numbers.pop_back();
  by_key_.Erase(key);
  object = Placed{};
  unused_.push_back(number);
}

}  // namespace berth::scheduler
