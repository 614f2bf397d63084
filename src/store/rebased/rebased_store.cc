// SPDX-License-Identifier: Apache-2.0
#include "store/rebased/rebased_store.h"

#include <string>
#include <utility>

namespace berth::store {
namespace {

// No key was ever changed at revision 1: see (6) in store.h.
constexpr Revision kNever{1};

void Raise(Revision& revision, int64_t base) {
  if (revision.value != 0) revision.value += base;
}

void Raise(KeyValue& item, int64_t base) {
  Raise(item.create_revision, base);
  Raise(item.mod_revision, base);
}

Status TooOld(Revision asked, int64_t base) {
  return Expired("revision " + std::to_string(asked.value) +
                 " is of the store before this one, which begins behind " + std::to_string(base));
}

class RebasedWatch final : public Watch {
 public:
  RebasedWatch(std::unique_ptr<Watch> inner, int64_t base)
      : inner_(std::move(inner)), base_(base) {}

  rt::Task<Result<WatchBatch>> Next() override {
    CO_TRY(WatchBatch batch, co_await inner_->Next());
    Raise(batch.revision, base_);
    for (Event& event : batch.events) {
      Raise(event.kv, base_);
      if (event.previous.has_value()) Raise(*event.previous, base_);
    }
    co_return batch;
  }

 private:
  const std::unique_ptr<Watch> inner_;
  const int64_t base_;
};

}  // namespace

rt::Task<Result<TxnResult>> RebasedStore::Commit(Txn txn) {
  for (Condition& condition : txn.conditions) {
    Revision& at = condition.mod_revision;
    if (at.value == 0) continue;
    at = at.value > base_ ? Revision{at.value - base_} : kNever;
  }
  CO_TRY(TxnResult result, co_await inner().Commit(std::move(txn)));
  Raise(result.revision, base_);
  for (KeyValue& item : result.conflicts) Raise(item, base_);
  co_return result;
}

rt::Task<Result<RangeResult>> RebasedStore::Range(RangeRequest request) {
  if (request.revision.value != 0) {
    if (request.revision.value <= base_) co_return TooOld(request.revision, base_);
    request.revision.value -= base_;
  }
  CO_TRY(RangeResult result, co_await inner().Range(std::move(request)));
  Raise(result.revision, base_);
  for (KeyValue& item : result.items) Raise(item, base_);
  co_return result;
}

rt::Task<Result<std::unique_ptr<Watch>>> RebasedStore::StartWatch(WatchRequest request) {
  if (request.from.value != 0) {
    if (request.from.value <= base_) co_return TooOld(request.from, base_);
    request.from.value -= base_;
  }
  const int64_t base = base_;
  CO_TRY(std::unique_ptr<Watch> watch, co_await inner().StartWatch(std::move(request)));
  co_return std::unique_ptr<Watch>(std::make_unique<RebasedWatch>(std::move(watch), base));
}

rt::Task<Status> RebasedStore::Compact(Revision revision) {
  if (revision.value <= base_) co_return OkStatus();
  revision.value -= base_;
  co_return co_await inner().Compact(revision);
}

rt::Task<Result<Revision>> RebasedStore::CurrentRevision() {
  CO_TRY(const Revision revision, co_await inner().CurrentRevision());
  co_return Revision{revision.value + base_};
}

rt::Task<Result<Revision>> RebasedStore::CompactedRevision() {
  CO_TRY(const Revision revision, co_await inner().CompactedRevision());
  co_return Revision{revision.value + base_};
}

}  // namespace berth::store
