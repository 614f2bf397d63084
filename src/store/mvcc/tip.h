// SPDX-License-Identifier: Apache-2.0
// The Tip is the state that the next transaction is evaluated against: the durable index and, over
// it, the transactions that wait for the disk. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/mvcc/index.h"
#include "store/mvcc/record_log.h"

namespace berth::store {

class Tip {
 public:
  explicit Tip(const Index& index) : index_(index) {}

  struct State {
    KeyValue kv;           // mod_revision zero: absent
    Position at;           // of kv, if it is there
    bool pending = false;  // the key has a change that is not durable
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
  std::map<std::string, const Record*, std::less<>> pending_;  // the last change of each key
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
