// SPDX-License-Identifier: Apache-2.0
// The parts of the engine that change the store without a transaction of a caller: compaction and
// leases.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/key_range.h"
#include "store/mvcc/engine.h"

namespace berth::store {

void Engine::Compact(Revision revision, Done<Status> done) {
  loop_.Assert();
  if (Status status = CheckWritable(); !status.ok()) return done(std::move(status));
  if (revision > durable_) {
    return done(
        BadRequest(fmt::format("revision {} to compact is in the future, the store is at {}",
                               revision.value,
                               durable_.value)));
  }
  if (revision <= compacted_) return done(OkStatus());
  LogWrite write;
  write.compacted = revision;
  Queue(std::move(write),
        [done = std::move(done)](const Status& written) mutable { done(written); });
}

void Engine::SkipRevisions(int64_t count) {
  loop_.Assert();
  CHECK(count >= 0) << count;
  assigned_ = Revision{assigned_.value + count};
}

void Engine::StartSweep() {
  if (is_sweeping_) {
    sweep_again_ = true;
    return;
  }
  is_sweeping_ = true;
  sweep_cursor_.clear();
  PostSweepStep();
}

void Engine::PostSweepStep() {
  loop_.Post("store.sweep", [self = self_] {
    Engine* engine = *self;
    if (engine == nullptr) return;
    engine->loop_.Assert();
    engine->SweepStep();
  });
}

// Each step waits for the writes of the one before: a slow disk slows the sweep down, not the
// queue.
void Engine::SweepStep() {
  if (is_closing_ || !failure_.ok()) {
    is_sweeping_ = false;  // the next Open or Recover starts again
    return;
  }
  Index::Swept swept = index_.Sweep(sweep_cursor_, compacted_, kSweepKeys);
  if (swept.next.has_value()) {
    sweep_cursor_ = *std::move(swept.next);
  } else if (sweep_again_) {
    sweep_again_ = false;
    sweep_cursor_.clear();
  } else {
    is_sweeping_ = false;
  }
  const bool goes_on = is_sweeping_;
  if (swept.erased.empty()) {
    if (goes_on) PostSweepStep();
    return;
  }
  LogWrite write;
  write.erased = std::move(swept.erased);
  Queue(std::move(write), [this, goes_on](const Status& /*a failure stops the next step*/) {
    loop_.Assert();
    if (goes_on) PostSweepStep();
  });
}

void Engine::GrantLease(Duration ttl, Done<Result<LeaseId>> done) {
  loop_.Assert();
  Status status = ValidateLeaseTtl(ttl);
  if (status.ok()) status = CheckWritable();
  if (!status.ok()) return done(std::move(status));
  if (leases_.size() >= kMaxLeases) {
    return done(
        Status(Reason::kTooManyRequests,
               fmt::format("there are {} leases, at most that many are allowed", kMaxLeases))
            .WithRetryAfter(kPendingRetryAfter));
  }
  LeaseId id;
  do {
    id.value = static_cast<int64_t>(loop_.random().Next() >> 1);
  } while (id.value == 0 || leases_.Exists(id));
  // It exists from now on, so that the number is taken; nobody knows it before it is durable.
  leases_.Add(id, ttl, loop_.Now());
  LogWrite write;
  write.granted.push_back({.id = id, .ttl = ttl});
  Queue(std::move(write), [this, id, done = std::move(done)](const Status& written) mutable {
    loop_.Assert();
    if (!written.ok()) {
      leases_.Forget(id);
      return done(written);
    }
    if (leases_.IsAlive(id)) leases_.Renew(id, loop_.Now());
    ArmLeaseTimer();
    done(id);
  });
}

Status Engine::RenewLease(LeaseId id) {
  loop_.Assert();
  if (is_closing_) return Unavailable("the store is closed");
  if (!failure_.ok()) return failure_;
  if (!leases_.IsAlive(id)) return NotFound(fmt::format("lease {} not found", id.value));
  leases_.Renew(id, loop_.Now());
  ArmLeaseTimer();
  return OkStatus();
}

void Engine::RevokeLease(LeaseId id, Done<Status> done) {
  loop_.Assert();
  if (Status status = CheckWritable(); !status.ok()) return done(std::move(status));
  if (!leases_.IsAlive(id)) {
    return done(NotFound(fmt::format("lease {} not found", id.value)));
  }
  EndLease(id, [done = std::move(done)](const Status& written) mutable { done(written); });
}

// Deletes the keys in chunks, the lease itself with the last one: a crash in between leaves a lease
// that ends again.
void Engine::EndLease(LeaseId id, Done<const Status&> done) {
  leases_.BeginEnd(id);
  ArmLeaseTimer();
  while (true) {
    std::vector<std::string> keys = leases_.Keys(id, kMaxTxnKeys);
    const bool is_last = keys.size() == leases_.KeyCount(id);
    Txn txn;
    for (std::string& key : keys) txn.ops.push_back(Op::Delete(std::move(key)));
    LogWrite write;
    write.records = Evaluate(std::move(txn), tip_, assigned_.Next()).records;
    if (!write.records.empty()) assigned_ = assigned_.Next();
    CHECK(is_last || !write.records.empty()) << "a lease holds a key that is not there";
    if (is_last) write.ended.push_back(id);
    if (is_last) return Queue(std::move(write), std::move(done));
    Queue(std::move(write), [](const Status& /*the last one tells*/) {});
  }
}

void Engine::ArmLeaseTimer() {
  const std::optional<Time> next = leases_.NextDeadline();
  if (lease_timer_.value != 0) {
    // A timer that fires too early only looks again: renewals do not touch it.
    if (next.has_value() && lease_timer_at_ <= *next) return;
    loop_.CancelTimer(std::exchange(lease_timer_, {}));
  }
  if (!next.has_value() || is_closing_ || !failure_.ok()) return;
  lease_timer_at_ = *next;
  const Duration delay = std::max(*next - loop_.Now(), Duration());
  lease_timer_ = loop_.After("store.lease", delay, [this] {
    loop_.Assert();
    lease_timer_ = {};
    ExpireLeases();
  });
}

void Engine::ExpireLeases() {
  if (is_closing_ || !failure_.ok()) return;
  for (const LeaseId id : leases_.Expired(loop_.Now())) {
    if (!CheckWritable().ok()) break;
    EndLease(id, [](const Status& /*a failed store ends it after a restart*/) {});
  }
  if (CheckWritable().ok()) return ArmLeaseTimer();
  // Too much waits for the disk: look again when it had time.
  if (lease_timer_.value != 0) loop_.CancelTimer(std::exchange(lease_timer_, {}));
  lease_timer_at_ = loop_.Now() + kPendingRetryAfter;
  lease_timer_ = loop_.After("store.lease", kPendingRetryAfter, [this] {
    loop_.Assert();
    lease_timer_ = {};
    ExpireLeases();
  });
}

}  // namespace berth::store
