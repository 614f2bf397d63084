// SPDX-License-Identifier: Apache-2.0
// A ReignStore is what one leader writes through, below its fence: it tells a witness of each
// commit that the store took, so that a checker can say whether that leader still led.
#pragma once

#include <memory>
#include <utility>

#include "rt/task.h"
#include "store/store.h"

namespace berth::sim {

class ReignWitness {
 public:
  virtual ~ReignWitness() = default;
  // The leader that raised the guard at `reign` has changed the store at `revision`.
  virtual void LeaderWrote(store::Revision reign, store::Revision revision) = 0;
};

class ReignStore final : public store::Store {
 public:
  // Both outlive this.
  ReignStore(store::Store& inner, ReignWitness& witness, store::Revision reign)
      : inner_(inner), witness_(witness), reign_(reign) {}

  rt::Task<Result<store::TxnResult>> Commit(store::Txn txn) override {
    CO_TRY(store::TxnResult result, co_await inner_.Commit(std::move(txn)));
    if (result.committed) witness_.LeaderWrote(reign_, result.revision);
    co_return result;
  }
  rt::Task<Result<store::RangeResult>> Range(store::RangeRequest request) override {
    return inner_.Range(std::move(request));
  }
  rt::Task<Result<std::unique_ptr<store::Watch>>> StartWatch(store::WatchRequest request) override {
    return inner_.StartWatch(std::move(request));
  }
  rt::Task<Status> Compact(store::Revision revision) override { return inner_.Compact(revision); }
  rt::Task<Result<store::Revision>> CurrentRevision() override { return inner_.CurrentRevision(); }
  rt::Task<Result<store::Revision>> CompactedRevision() override {
    return inner_.CompactedRevision();
  }
  rt::Task<Result<store::LeaseId>> GrantLease(Duration ttl) override {
    return inner_.GrantLease(ttl);
  }
  rt::Task<Status> RenewLease(store::LeaseId lease) override { return inner_.RenewLease(lease); }
  rt::Task<Status> RevokeLease(store::LeaseId lease) override { return inner_.RevokeLease(lease); }

 private:
  store::Store& inner_;
  ReignWitness& witness_;
  const store::Revision reign_;
};

}  // namespace berth::sim
