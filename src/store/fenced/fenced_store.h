// SPDX-License-Identifier: Apache-2.0
// A FencedStore is a store whose commits happen only while one key is as it was: what a leader
// writes through it ends, inside the store, with the commit by which the next leader changes that
// key. A leader that was paused and does not know it yet writes nothing.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::store {

class FencedStore final : public Store {
 public:
  // `inner` outlives this. `on_fenced` is called for every commit that came too late.
  FencedStore(Store& inner, Condition fence, std::function<void()> on_fenced)
      : inner_(inner), fence_(std::move(fence)), on_fenced_(std::move(on_fenced)) {}

  // Unavailable if the fence has changed.
  rt::Task<Result<TxnResult>> Commit(Txn txn) override;
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

 private:
  Store& inner_;
  const Condition fence_;
  const std::function<void()> on_fenced_;
};

}  // namespace berth::store
