// SPDX-License-Identifier: Apache-2.0
// A FaultyStore is a store in front of another that refuses calls, delays them and loses their
// answers, by seed. The calls that pass keep the contract.
#pragma once

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::store {

// Probabilities in [0, 1].
struct StoreFaults {
  double refuse = 0;       // the call does not happen: Unavailable
  double lose_answer = 0;  // the call happens, the caller gets Unavailable
  double delay = 0;        // the call happens up to delay_max later
  Duration delay_max = Duration::Millis(100);
  double end_watch = 0;  // Next() ends the watch with Unavailable, or Expired one time in four
};

class FaultyStore final : public Store {
 public:
  // `inner` outlives this.
  FaultyStore(Store& inner, uint64_t seed, StoreFaults faults);
  ~FaultyStore() override;

  // From now on; watches that exist follow.
  void SetFaults(StoreFaults faults);
  // Calls that were refused or whose answer was lost.
  uint64_t failures() const;

  rt::Task<Result<TxnResult>> Commit(Txn txn) override;
  rt::Task<Result<RangeResult>> Range(RangeRequest request) override;
  rt::Task<Result<std::unique_ptr<Watch>>> StartWatch(WatchRequest request) override;
  rt::Task<Status> Compact(Revision revision) override;
  rt::Task<Result<Revision>> CurrentRevision() override;
  rt::Task<Result<Revision>> CompactedRevision() override;
  rt::Task<Result<LeaseId>> GrantLease(Duration ttl) override;
  rt::Task<Status> RenewLease(LeaseId lease) override;
  rt::Task<Status> RevokeLease(LeaseId lease) override;

 private:
  struct Dice;
  class FaultyWatch;
  template <class T>
  static rt::Task<T> Pass(std::shared_ptr<Dice> dice, rt::Task<T> call);

  Store& inner_;
  std::shared_ptr<Dice> dice_;  // shared with watches and calls under way
};

}  // namespace berth::store
