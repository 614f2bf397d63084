// SPDX-License-Identifier: Apache-2.0
// A ReignStore is what one leader writes through, below its fence: it tells a witness of each
// commit that the store took, so that a checker can say whether that leader still led.
#pragma once

#include <utility>

#include "rt/task.h"
#include "store/passing_store.h"
#include "store/store.h"

namespace berth::sim {

class ReignWitness {
 public:
  virtual ~ReignWitness() = default;
  // The leader that raised the guard at `reign` has changed the store at `revision`.
  virtual void LeaderWrote(store::Revision reign, store::Revision revision) = 0;
};

class ReignStore final : public store::PassingStore {
 public:
  // Both outlive this.
  ReignStore(store::Store& inner, ReignWitness& witness, store::Revision reign)
      : PassingStore(inner), witness_(witness), reign_(reign) {}

  rt::Task<Result<store::TxnResult>> Commit(store::Txn txn) override {
    CO_TRY(store::TxnResult result, co_await inner().Commit(std::move(txn)));
    if (result.committed) witness_.LeaderWrote(reign_, result.revision);
    co_return result;
  }

 private:
  ReignWitness& witness_;
  const store::Revision reign_;
};

}  // namespace berth::sim
