// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/scheduling_queue.h"

#include <algorithm>

#include "base/check.h"

namespace berth::scheduler {

void SchedulingQueue::Add(const QueueEntry& entry) {
  auto [place, is_new] = entries_.try_emplace(entry.uid);
  Slot& slot = place->second;
  if (is_new) {
    slot.uid = &place->first;
    slot.sequence = ++last_sequence_;
  } else {
    TakeOut(slot);
  }
  slot.failures = 0;
  slot.tenant = entry.tenant;
  slot.priority = entry.priority;
  if (!is_new && slot.place == Place::kInWork) {
    slot.again = true;
  } else {
    Activate(slot);
  }
}

void SchedulingQueue::Remove(std::string_view uid) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  TakeOut(found->second);
  entries_.erase(found);
}

std::optional<std::string> SchedulingQueue::Pop() {
  if (levels_.empty()) return std::nullopt;
  Level& level = levels_.begin()->second;
  const std::string tenant = level.turn.front();
  Slot& slot = *level.tenants.find(tenant)->second.begin()->second;
  level.turn.splice(level.turn.end(), level.turn, level.turn.begin());
  LeaveLevel(slot);
  slot.place = Place::kInWork;
  return *slot.uid;
}

void SchedulingQueue::Done(std::string_view uid) {
  Slot* slot = InWork(uid);
  if (slot == nullptr) return;
  if (slot->again) return Activate(*slot);
  entries_.erase(entries_.find(uid));
}

void SchedulingQueue::Backoff(std::string_view uid, Time now) {
  Slot* slot = InWork(uid);
  if (slot == nullptr) return;
  if (slot->again) return Activate(*slot);
  Duration pause = options_.backoff_initial;
  for (int i = 0; i < slot->failures && pause < options_.backoff_max; ++i) pause = pause * 2;
  ++slot->failures;
  Pause(uid, now + std::min(pause, options_.backoff_max));
}

void SchedulingQueue::Pause(std::string_view uid, Time until) {
  Slot* slot = InWork(uid);
  if (slot == nullptr) return;
  if (slot->again) return Activate(*slot);
  slot->place = Place::kBackoff;
  slot->due = until;
  due_.emplace(DueKeyOf(*slot), slot);
}

void SchedulingQueue::Park(std::string_view uid, WaitGroup group, Time recheck) {
  Slot* slot = InWork(uid);
  if (slot == nullptr) return;
  if (slot->again) return Activate(*slot);
  slot->place = Place::kParked;
  slot->due = recheck;
  slot->group = group;
  due_.emplace(DueKeyOf(*slot), slot);
  parked_[group].emplace(ParkedKeyOf(*slot), slot);
  ++group_sizes_[group];
}

size_t SchedulingQueue::Wake(WaitGroup group, size_t count) {
  size_t woken = 0;
  while (woken < count) {
    const auto waiting = parked_.find(group);
    if (waiting == parked_.end()) break;
    Slot& slot = *waiting->second.begin()->second;
    TakeOut(slot);
    Activate(slot);
    ++woken;
  }
  return woken;
}

std::optional<Time> SchedulingQueue::Advance(Time now) {
  while (!due_.empty() && due_.begin()->first.first <= now) {
    Slot& slot = *due_.begin()->second;
    TakeOut(slot);
    Activate(slot);
  }
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first.first;
}

std::optional<SchedulingQueue::Place> SchedulingQueue::Find(std::string_view uid) const {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return std::nullopt;
  return found->second.place;
}

void SchedulingQueue::Activate(Slot& slot) {
  slot.again = false;
  slot.place = Place::kActive;
  Level& level = levels_[slot.priority];
  auto& waiting = level.tenants[slot.tenant];
  if (waiting.empty()) level.turn.push_back(slot.tenant);
  waiting.emplace(slot.sequence, &slot);
  ++active_;
}

// Out of whatever structure the slot's place says; the caller says where it goes.
void SchedulingQueue::TakeOut(Slot& slot) {
  switch (slot.place) {
    case Place::kActive: return LeaveLevel(slot);
    case Place::kInWork: return;
    case Place::kParked: {
      const auto group = parked_.find(slot.group);
      CHECK(group != parked_.end()) << *slot.uid;
      group->second.erase(ParkedKeyOf(slot));
      if (--group_sizes_[slot.group] == 0) {
        group_sizes_.erase(slot.group);
        parked_.erase(group);
      }
      [[fallthrough]];
    }
    case Place::kBackoff: due_.erase(DueKeyOf(slot)); return;
  }
}

void SchedulingQueue::LeaveLevel(const Slot& slot) {
  const auto level = levels_.find(slot.priority);
  CHECK(level != levels_.end()) << *slot.uid;
  const auto tenant = level->second.tenants.find(slot.tenant);
  tenant->second.erase(slot.sequence);
  --active_;
  if (!tenant->second.empty()) return;
  level->second.turn.remove(slot.tenant);
  level->second.tenants.erase(tenant);
  if (level->second.tenants.empty()) levels_.erase(level);
}

SchedulingQueue::Slot* SchedulingQueue::InWork(std::string_view uid) {
  const auto found = entries_.find(uid);
  if (found == entries_.end() || found->second.place != Place::kInWork) return nullptr;
  return &found->second;
}

}  // namespace berth::scheduler
