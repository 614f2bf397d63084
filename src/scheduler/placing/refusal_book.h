// SPDX-License-Identifier: Apache-2.0
// A RefusalBook knows which pools refused an object, so that its next attempt goes on behind them.
//
//   attempt ──8 said no──► pause ──► attempt without these ──► ... ──► nobody is left: the pass is
//      ▲                                                               over, all are asked again
//      └───────────────────────────────────────────────────────────────┘
//
// Only objects that were refused have an entry. Who edits an object may have removed the reason:
// then everybody is asked again. Pure: time comes in as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_map.h"
#include "base/time.h"
#include "scheduler/core/words.h"
#include "scheduler/placing/object_directory.h"

namespace berth::scheduler {

class RefusalBook {
 public:
  // 1,024 * 12 B = 12 KiB per object. A decision looks for each pool among them: 1,024 * 1,024
  // comparisons are 0.3 ms.
  static constexpr size_t kOfOneMax = 1024;
  // 1,048,576 * 12 B = 12 MiB for all objects.
  static constexpr size_t kOfAllMax = 1 << 20;
  // Of one object: different reasons (more are "Refused"), and what hosts said besides.
  static constexpr size_t kReasonsMax = 16;
  static constexpr size_t kMessagesMax = 8;
  // A pass that nothing was added to for so long is over: hosts may have changed their minds.
  static constexpr Duration kKeptFor = Duration::Minutes(1);

  // One that said no. The host is that of `pool`, or of a pool for one of the object's volumes.
  struct Told {
    PoolIndex host{};
    std::string reason;
    std::string message;
  };

  explicit RefusalBook(size_t of_all_max = kOfAllMax) : of_all_max_(of_all_max) {}

  // An attempt begins: the pools that refused in this pass.
  std::vector<PoolIndex> Resume(const ObjectRecord& record, Time now);
  // The pool is out of question for the rest of the pass. False if that was so before, or there is
  // no room to remember it: the pass cannot go on.
  bool Add(const ObjectRecord& record, PoolIndex pool, Told told, Time now);
  // To be told like a refusal, but the pool may be asked again at once.
  void Note(const ObjectRecord& record, PoolIndex pool, Told told);
  // Everybody was asked. Those who refused are still told of.
  void EndPass(std::string_view uid);
  // It has a place, is gone, or found nobody to ask.
  void Forget(std::string_view uid);
  // Something happened to these pools: they may be asked again.
  void Reopen(std::span<const PoolIndex> pools);

  // Who refused, in the order of asking, since the last pass began.
  std::vector<PoolIndex> PoolsOf(const ObjectRecord& record) const;
  std::vector<Told> ToldOf(const ObjectRecord& record) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Refuser {
    PoolIndex pool{};
    PoolIndex host{};
    uint8_t reason = 0;       // in Entry::reasons
    bool is_of_pass = false;  // else of the one before
  };
  struct Entry {
    int64_t edition = 0;
    Time last;
    std::vector<Refuser> refusers;
    std::vector<std::string> reasons;
    std::vector<std::pair<PoolIndex, std::string>> messages;  // by pool
  };

  const Entry* Find(const ObjectRecord& record) const;
  Entry& Open(const ObjectRecord& record);
  // Null: there is no room.
  Refuser* Put(Entry& entry, PoolIndex pool, Told told);
  void Drop(Entry& entry, std::span<const PoolIndex> pools);

  const size_t of_all_max_;
  TextMap<Entry> entries_;
  size_t refusers_ = 0;  // of all
};

}  // namespace berth::scheduler
