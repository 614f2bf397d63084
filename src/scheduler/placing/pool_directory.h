// SPDX-License-Identifier: Apache-2.0
// The PoolDirectory keeps the board's pools as the API and the fleet say they are: the API knows
// labels, taints, cordons and capacity, the fleet knows which hosts can be asked now and what their
// ledgers say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_map.h"
#include "client/cache/twins.h"
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

  // What became of a pool that was made, changed or removed.
  enum class Became : uint8_t {
    kNothing,    // that objects would have to be told
    kNew,        // on the board: objects that were placed there before must be settled again
    kElsewhere,  // other pools may be within its reach, or it within that of others
  };
  // A pool of any kind; null: it is removed. A pool whose UID another one has is passed over and
  // said in the log, and comes when the other one goes: kNew is then the UID of `before`.
  // REQUIRES: one UID, if both are there (an Informer shows a change of it as an end and a begin).
  Became OnObject(const meta::Object* before, const meta::Object* now);
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
  // All of the kind, by name. Linear in pools.
  std::vector<const PoolEntry*> OfKind(PoolKind kind) const;

 private:
  void Put(TranslatedPool pool);
  void Restore(PoolEntry& entry);
  // Whether another one has come in its place.
  bool Remove(const meta::Object& pool);
  void ApplySession(const PoolEntry& entry);

  Board& board_;
  TextMap<PoolEntry> by_uid_;  // each with an index of its own
  client::Twins<TranslatedPool> twins_{"scheduler"};
  std::vector<const PoolEntry*> by_index_;  // null where there is none
  TextMap<fleet::PoolFacts> sessions_;      // by pool UID
};

// The core's form of what a ledger says.
LedgerVersion VersionOf(const fleet::LedgerVersion& version);

}  // namespace berth::scheduler
