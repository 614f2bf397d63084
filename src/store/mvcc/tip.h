// SPDX-License-Identifier: Apache-2.0
// The Tip is the state that the next transaction is evaluated against: the durable index and, over
// it, the transactions that wait for the disk. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/mvcc/index.h"
#include "store/mvcc/record_log.h"

namespace berth::store {

class Tip {
 public:
  explicit Tip(const Index& index) : index_(index) {}

  // A key as the next transaction finds it.
  struct State {
    Revision mod_revision;  // zero: absent, and all below with it
    Revision create_revision;
    int64_t version = 0;
    LeaseId lease;
    Position at;
    const Bytes* value = nullptr;  // until the tip or the index changes
    bool pending = false;          // the key has a change that is not durable
  };
  State Look(std::string_view key) const;

  // A transaction was queued. REQUIRES: `write` outlives its stay here.
  void Add(const LogWrite& write);
  // The oldest queued transaction is now in the index.
  void Settle(const LogWrite& write);
  // Nothing queued will become durable.
  void Clear() { pending_.clear(); }

 private:
  const Index& index_;
  // The last change of each key, by the key in that change.
  std::unordered_map<std::string_view, const Record*> pending_;
};

struct Verdict {
  bool committed = false;
  bool saw_pending = false;         // the answer must wait until the tip is durable
  std::vector<KeyValue> conflicts;  // the keys whose conditions failed
  std::vector<Record> records;      // what to write; empty: no change
};
// What this transaction does if its revision is `revision`. REQUIRES: ValidateTxn(txn) is ok.
Verdict Evaluate(Txn txn, const Tip& tip, Revision revision);

}  // namespace berth::store
