// SPDX-License-Identifier: Apache-2.0
// The SchedulingQueue says what is placed next. It is pure: time comes in as a value.
//
//   Add ──► active ──Pop──► in work ──Done──► gone
//             ▲               │  │
//             │    ┌─ Backoff ┘  └─ Park ─┐
//             │    ▼                      ▼
//             └─ backoff              parked, by group
//             └──────────── Wake ─────────┘
//
// Active entries leave by priority; within one priority the namespaces take turns, so that a tenant
// with ten thousand pending machines delays another's single one by one placement, not by ten
// thousand. Within one namespace the oldest is first. Parked entries cost nothing until something
// happens that could help their group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_map.h"
#include "base/time.h"

namespace berth::scheduler {

// Entries that wait for the same thing: of one shape, as the caller numbers them.
using WaitGroup = uint64_t;

struct QueueEntry {
  std::string uid;
  std::string tenant;  // the namespace
  int32_t priority = 0;
};

struct QueueOptions {
  Duration backoff_initial = Duration::Millis(100);
  Duration backoff_max = Duration::Seconds(10);
};

class SchedulingQueue {
 public:
  enum class Place : uint8_t { kActive, kInWork, kBackoff, kParked };

  explicit SchedulingQueue(QueueOptions options = {}) : options_(options) {}

  // A new entry, or one that changed: it is active, and its failures are forgotten. While it is in
  // work, it becomes active again when that ends (by any of Done, Backoff, Park).
  void Add(const QueueEntry& entry);
  // Forgets the entry. No effect if there is none.
  void Remove(std::string_view uid);

  // The entry that is next; it is in work from here on.
  std::optional<std::string> Pop();
  // The work ended well: the entry is gone, unless it was added again meanwhile.
  void Done(std::string_view uid);
  // The work failed for a passing reason: active again after a pause that grows.
  void Backoff(std::string_view uid, Time now);
  // The same until a given time.
  void Pause(std::string_view uid, Time until);
  // Nothing would take it: waits for Wake of its group, and at the latest for `recheck`.
  void Park(std::string_view uid, WaitGroup group, Time recheck);

  // Makes up to `count` parked entries of the group active, the most important and oldest first;
  // how many there were.
  size_t Wake(WaitGroup group, size_t count);
  // The groups that somebody waits in, and how many.
  const std::map<WaitGroup, size_t>& waiting_groups() const { return group_sizes_; }

  // Makes everything active whose time has come; when the next one's comes.
  std::optional<Time> Advance(Time now);

  std::optional<Place> Find(std::string_view uid) const;
  size_t size() const { return entries_.size(); }
  size_t active() const { return active_; }

 private:
  // One for every object that waits: small. What orders them refers to them.
  struct Slot {
    const std::string* uid = nullptr;  // its key in entries_
    std::string tenant;
    int32_t priority = 0;
    uint64_t sequence = 0;  // of its first Add: its age
    Place place = Place::kActive;
    bool again = false;  // added while in work
    int failures = 0;
    Time due;  // kBackoff, kParked
    WaitGroup group = 0;
  };
  // Those of one priority: who has something waiting, in turn.
  struct Level {
    std::map<std::string, std::map<uint64_t, Slot*>> tenants;  // by sequence
    std::list<std::string> turn;                               // tenants, the next one first
  };
  // The more important first, then the older.
  using ParkedKey = std::pair<int64_t, uint64_t>;
  static ParkedKey ParkedKeyOf(const Slot& slot) {
    return {-int64_t{slot.priority}, slot.sequence};
  }
  // The sooner first, then the older.
  using DueKey = std::pair<Time, uint64_t>;
  static DueKey DueKeyOf(const Slot& slot) { return {slot.due, slot.sequence}; }

  void Activate(Slot& slot);
  void TakeOut(Slot& slot);
  void LeaveLevel(const Slot& slot);
  Slot* InWork(std::string_view uid);

  const QueueOptions options_;
  TextMap<Slot> entries_;
  std::map<int32_t, Level, std::greater<>> levels_;
  std::map<WaitGroup, std::map<ParkedKey, Slot*>> parked_;
  std::map<WaitGroup, size_t> group_sizes_;
  std::map<DueKey, Slot*> due_;
  uint64_t last_sequence_ = 0;
  size_t active_ = 0;
};

}  // namespace berth::scheduler
