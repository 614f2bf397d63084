// SPDX-License-Identifier: Apache-2.0
// A RebasedStore is a store in front of another that adds a number to all revisions. Revisions up
// to that number are history that this store never had: Expired. The base must be the same for
// everybody, as long as the store lives.
#pragma once

#include <memory>

#include "rt/task.h"
#include "store/passing_store.h"
#include "store/store.h"

namespace berth::store {

class RebasedStore final : public PassingStore {
 public:
  // `inner` outlives this.
  RebasedStore(Store& inner, int64_t base) : PassingStore(inner), base_(base) {}

  rt::Task<Result<TxnResult>> Commit(Txn txn) override;
  rt::Task<Result<RangeResult>> Range(RangeRequest request) override;
  rt::Task<Result<std::unique_ptr<Watch>>> StartWatch(WatchRequest request) override;
  rt::Task<Status> Compact(Revision revision) override;
  rt::Task<Result<Revision>> CurrentRevision() override;
  rt::Task<Result<Revision>> CompactedRevision() override;

 private:
  const int64_t base_;
};

}  // namespace berth::store
