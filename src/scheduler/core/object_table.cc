// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/object_table.h"

#include <algorithm>

#include "base/check.h"

namespace berth::scheduler {

void ObjectTable::Put(Slot entry) {
  size_t slot = HomeOf(entry.tag);
  while (slots_[slot].number != kUnused) slot = After(slot);
  slots_[slot] = entry;
}

// Whoever would be found sooner in the hole moves there, which makes the next hole.
void ObjectTable::EraseSlot(size_t hole) {
  const size_t mask = slots_.size() - 1;
  for (size_t next = After(hole); slots_[next].number != kUnused; next = After(next)) {
    const size_t home = HomeOf(slots_[next].tag);
    if (((next - home) & mask) < ((next - hole) & mask)) continue;
    slots_[hole] = slots_[next];
    hole = next;
  }
  slots_[hole] = Slot{};
}

void ObjectTable::Widen() {
  LargeVector<Slot> old(2 * slots_.size());
  std::swap(old, slots_);
  --shift_;
  for (const Slot& entry : old)
    if (entry.number != kUnused) Put(entry);
}

Placed& ObjectTable::Add(const ObjectKey& key, size_t pool) {
  CHECK(SlotOf(key) == kNowhere) << "an object is placed twice";
  if ((size_ + 1) * 4 > slots_.size() * 3) Widen();
  auto number = static_cast<uint32_t>(objects_.size());
  if (!unused_.empty()) {
    number = unused_.back();
    unused_.pop_back();
  } else {
    objects_.emplace_back();
  }
  Placed& object = objects_[number];
  object.key = key;
  object.pool = static_cast<uint32_t>(pool);
  Put({.tag = TagOf(key), .number = number});
  pools_[pool].all.push_back(number);
  ++size_;
  return object;
}

void ObjectTable::Remove(Placed& object) {
  const uint32_t number = NumberOf(object);
  // The last one takes its place. Looking for it in a few numbers is cheaper than a position kept
  // in every object: that would touch the other object too.
  auto& numbers = pools_[object.pool].all;
  *std::ranges::find(numbers, number) = numbers.back();
  numbers.pop_back();
  EraseSlot(SlotOf(object.key));
  object = Placed{};
  unused_.push_back(number);
  --size_;
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
