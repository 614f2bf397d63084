// SPDX-License-Identifier: Apache-2.0
// The Placer and the store: what hosts have accepted is bound, and read back if nobody knows.
#include <utility>

#include "base/check.h"
#include "rt/chaos.h"
#include "rt/deadline.h"
#include "scheduler/placing/explain_text.h"
#include "scheduler/placing/placer.h"

namespace berth::scheduler {

void Placer::MakeReady(Attempt& attempt) {
  if (attempt.in_gang) return GangReady(attempt);
  attempt.state = Attempt::State::kReady;
  ready_.push_back(attempt.uid);
  // Bound at the end of this turn, together with all that become ready in it.
  Schedule();
}

void Placer::StartBinds() {
  while (!ready_.empty() && binds_ < options_.binds_max && leadership_) {
    std::vector<std::string> batch;
    while (!ready_.empty() && batch.size() < options_.bind_batch_max) {
      const std::string uid = std::move(ready_.back());
      ready_.pop_back();
      const auto found = attempts_.find(uid);
      if (found == attempts_.end() || found->second->state != Attempt::State::kReady) continue;
      Attempt& attempt = *found->second;
      if (!IsCurrent(attempt, objects_, pools_) ||
          loop_.Now() - attempt.asked > options_.hold_ttl / 2) {
        REACHED("scheduler.hold_too_old");
        Drop(uid);
        TryLater(uid);
        continue;
      }
      attempt.state = Attempt::State::kBinding;
      batch.push_back(uid);
    }
    if (batch.empty()) break;
    ++binds_;
    scope_.Spawn("scheduler.bind", Bind(std::move(batch)));
  }
}

rt::Task<Status> Placer::Bind(std::vector<std::string> uids) {
  std::vector<client::BindRequest> requests;
  for (const std::string& uid : uids) {
    client::BindRequest& request =
        requests.emplace_back(BindingFor(*attempts_.find(uid)->second, objects_, pools_));
    request.holder = leadership_->holder;
    request.term = leadership_->term;
  }
  using Verdicts = std::vector<Result<std::vector<meta::Object>>>;
  const rt::TimerId slow =
      loop_.After("scheduler.bind_slow", options_.bind_limit, [self = self_, uids] {
        if (*self == nullptr) return;
        for (const std::string& uid : uids) (*self)->reports_.Waits(uid);
      });
  const Verdicts verdicts = co_await binder_.BindBatch(std::move(requests));
  loop_.CancelTimer(slow);
  CHECK(verdicts.size() == uids.size());
  --binds_;
  for (size_t i = 0; i < uids.size(); ++i) {
    Attempt& attempt = *attempts_.find(uids[i])->second;
    if (verdicts[i].ok()) {
      Bound(attempt);
    } else if (IsUnknownOutcome(verdicts[i].status())) {
      REACHED("scheduler.bind_unknown");
      if (verdicts[i].status().Is(Reason::kCancelled)) {
        Drop(uids[i]);
        continue;
      }
      scope_.Spawn("scheduler.read_back", ReadBack(uids[i]));
    } else {
      NotBound(attempt, verdicts[i].status());
    }
  }
  Schedule();
  co_return OkStatus();
}

void Placer::Bound(Attempt& attempt) {
  placed_.Add();
  board_.Confirm(attempt.request.key);
  for (const Request& joint : attempt.request.joint) board_.Confirm(joint.key);
  const std::string uid = attempt.uid;
  if (const ObjectRecord* record = objects_.Find(uid)) {
    const PoolEntry* pool = pools_.Find(attempt.candidate.pool);
    events_.Record({.kind = record->kind, .key = record->key, .uid = uid},
                   client::EventType::kNormal,
                   "Scheduled",
                   "Binding",
                   "placed on pool " + (pool == nullptr ? "" : pool->pool.spec.name));
  }
  reports_.Forget(uid);
  conflicts_.erase(uid);
  refusals_.Forget(uid);
  preemptor_.End(uid);
  attempts_.erase(uid);
  queue_.Done(uid);
}

rt::Task<Status> Placer::ReadBack(std::string uid) {
  const auto found = attempts_.find(uid);
  CHECK(found != attempts_.end()) << uid;
  const ObjectRecord* record = objects_.Find(uid);
  const PoolEntry* pool = pools_.Find(found->second->candidate.pool);
  if (record != nullptr && pool != nullptr) {
    const meta::KindInfo& kind = *record->kind;
    const client::ObjectKey key = record->key;
    const std::string pool_uid = pool->pool.spec.uid;
    const Result<meta::Object> object =
        co_await rt::WithDeadline(client_.Get(kind, key), options_.bind_limit);
    const auto again = attempts_.find(uid);
    CHECK(again != attempts_.end()) << uid;
    if (object.ok() && object->metadata().uid == uid && PlacedPoolOf(*object) == pool_uid) {
      REACHED("scheduler.read_back_bound");
      Bound(*again->second);
      co_return OkStatus();
    }
  }
  REACHED("scheduler.read_back_unbound");
  Lost(*attempts_.find(uid)->second, "BindUnknown", "the store did not answer, and has no binding");
  Drop(uid);
  TryLater(uid);
  Schedule();
  co_return OkStatus();
}

}  // namespace berth::scheduler
