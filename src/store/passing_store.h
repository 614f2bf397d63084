// SPDX-License-Identifier: Apache-2.0
// What decorators of a store have in common: each call goes on to the store behind. A decorator
// says only what it does otherwise.
#pragma once

#include <memory>
#include <utility>

#include "store/store.h"

namespace berth::store {

class PassingStore : public Store {
 public:
  rt::Task<Result<TxnResult>> Commit(Txn txn) override { return inner_.Commit(std::move(txn)); }
  rt::Task<Result<RangeResult>> Range(RangeRequest request) override {
    return inner_.Range(std::move(request));
  }
  rt::Task<Result<std::unique_ptr<Watch>>> StartWatch(WatchRequest request) override {
    return inner_.StartWatch(std::move(request));
  }
  rt::Task<Status> Compact(Revision revision) override { return inner_.Compact(revision); }
  rt::Task<Result<Revision>> CurrentRevision() override { return inner_.CurrentRevision(); }
  rt::Task<Result<Revision>> CompactedRevision() override { return inner_.CompactedRevision(); }
  rt::Task<Result<LeaseId>> GrantLease(Duration ttl) override { return inner_.GrantLease(ttl); }
  rt::Task<Status> RenewLease(LeaseId lease) override { return inner_.RenewLease(lease); }
  rt::Task<Status> RevokeLease(LeaseId lease) override { return inner_.RevokeLease(lease); }

 protected:
  // `inner` outlives this.
  explicit PassingStore(Store& inner) : inner_(inner) {}
  Store& inner() const { return inner_; }

 private:
  Store& inner_;
};

}  // namespace berth::store
