// SPDX-License-Identifier: Apache-2.0
#include "store/faults/faulty_store.h"

#include <utility>

#include "rt/sleep.h"

namespace berth::store {

// What happens to the next call.
struct FaultyStore::Dice {
  Random random;
  StoreFaults faults;
  uint64_t failures = 0;

  Status Fail(const char* what) {
    ++failures;
    return Unavailable(what);
  }
  Duration DrawDelay() {
    if (!random.Chance(faults.delay)) return {};
    return Duration::Nanos(random.Between(0, faults.delay_max.nanos()));
  }
};

// A watch whose reader loses it now and then, as one loses a connection.
class FaultyStore::FaultyWatch final : public Watch {
 public:
  FaultyWatch(std::shared_ptr<Dice> dice, std::unique_ptr<Watch> inner)
      : dice_(std::move(dice)), inner_(std::move(inner)) {}

  rt::Task<Result<WatchBatch>> Next() override {
    if (why_ended_.ok() && dice_->random.Chance(dice_->faults.end_watch)) {
      why_ended_ = dice_->Fail("injected fault: the watch is lost");
      if (dice_->random.Chance(0.25)) why_ended_ = Expired("injected fault: the watch is too old");
    }
    if (!why_ended_.ok()) co_return why_ended_;
    const Duration delay = dice_->DrawDelay();
    if (delay > Duration()) CO_TRY_STATUS(co_await rt::Sleep(delay));
    co_return co_await inner_->Next();
  }

 private:
  std::shared_ptr<Dice> dice_;
  std::unique_ptr<Watch> inner_;
  Status why_ended_;
};

FaultyStore::FaultyStore(Store& inner, uint64_t seed, StoreFaults faults)
    : inner_(inner),
      dice_(std::make_shared<Dice>(Dice{.random = Random(seed), .faults = faults, .failures = 0})) {
}
FaultyStore::~FaultyStore() = default;

void FaultyStore::SetFaults(StoreFaults faults) { dice_->faults = faults; }
uint64_t FaultyStore::failures() const { return dice_->failures; }

template <class T>
rt::Task<T> FaultyStore::Pass(std::shared_ptr<Dice> dice, rt::Task<T> call) {
  const Duration delay = dice->DrawDelay();
  if (delay > Duration()) CO_TRY_STATUS(co_await rt::Sleep(delay));
  if (dice->random.Chance(dice->faults.refuse)) {
    co_return dice->Fail("injected fault: the call is refused");
  }
  T answer = co_await call;
  if (dice->random.Chance(dice->faults.lose_answer)) {
    co_return dice->Fail("injected fault: the answer is lost");
  }
  co_return answer;
}

rt::Task<Result<TxnResult>> FaultyStore::Commit(Txn txn) {
  return Pass(dice_, inner_.Commit(std::move(txn)));
}
rt::Task<Result<RangeResult>> FaultyStore::Range(RangeRequest request) {
  return Pass(dice_, inner_.Range(std::move(request)));
}
rt::Task<Result<std::unique_ptr<Watch>>> FaultyStore::StartWatch(WatchRequest request) {
  const std::shared_ptr<Dice> dice = dice_;
  CO_TRY(std::unique_ptr<Watch> watch, co_await Pass(dice, inner_.StartWatch(std::move(request))));
  co_return std::unique_ptr<Watch>(std::make_unique<FaultyWatch>(dice, std::move(watch)));
}
rt::Task<Status> FaultyStore::Compact(Revision revision) {
  return Pass(dice_, inner_.Compact(revision));
}
rt::Task<Result<Revision>> FaultyStore::CurrentRevision() {
  return Pass(dice_, inner_.CurrentRevision());
}
rt::Task<Result<Revision>> FaultyStore::CompactedRevision() {
  return Pass(dice_, inner_.CompactedRevision());
}
rt::Task<Result<LeaseId>> FaultyStore::GrantLease(Duration ttl) {
  return Pass(dice_, inner_.GrantLease(ttl));
}
rt::Task<Status> FaultyStore::RenewLease(LeaseId lease) {
  return Pass(dice_, inner_.RenewLease(lease));
}
rt::Task<Status> FaultyStore::RevokeLease(LeaseId lease) {
  return Pass(dice_, inner_.RevokeLease(lease));
}

}  // namespace berth::store
