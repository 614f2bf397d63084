// SPDX-License-Identifier: Apache-2.0
// The PoolDirectory keeps the board's pools as the API and the fleet say they are: the API knows
// labels, taints, cordons and capacity, the fleet knows which hosts can be asked now and what their
// ledgers say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_map.h"
#include "fleet/fleet.h"
#include "meta/object.h"
#include "scheduler/core/board.h"
#include "scheduler/translate/translate.h"

namespace berth::scheduler {

struct PoolEntry {
  PoolIndex index{};
  TranslatedPool pool;
  std::vector<std::string> withdrawn;  // of its classes: WithdrawClass
};

class PoolDirectory {
 public:
  // The board outlives the directory.
  explicit PoolDirectory(Board& board) : board_(board) {}

  // A pool of any kind was made, changed or removed (null). True if it is new on the board: objects
  // that were placed there before must be settled again.
  bool OnObject(const meta::Object* before, const meta::Object* now);
  void OnFleet(const fleet::FleetEvent& event);
  // The whole truth about sessions, after events were lost.
  void Resync(const std::vector<fleet::PoolFacts>& pools);

  // The host says that its runtime's class of this name is another one (ADR 0042): nobody is sent
  // there for it until the pool changes, its host comes back, or a class changes.
  void WithdrawClass(PoolIndex index, const std::string& class_name);
  void RestoreClasses();

  // Null if there is none. Valid until the next On... call.
  const PoolEntry* Find(PoolIndex index) const;
  const PoolEntry* FindByUid(std::string_view uid) const;
  const PoolEntry* FindByName(PoolKind kind, std::string_view name) const;

 private:
  void Put(TranslatedPool pool);
  void Restore(PoolEntry& entry);
  void Remove(std::string_view uid);
  void ApplySession(const PoolEntry& entry);

  Board& board_;
  TextMap<PoolEntry> by_uid_;
  std::vector<const PoolEntry*> by_index_;  // null where there is none
  TextMap<fleet::PoolFacts> sessions_;      // by pool UID
};

// The core's form of what a ledger says.
LedgerVersion VersionOf(const fleet::LedgerVersion& version);

}  // namespace berth::scheduler
