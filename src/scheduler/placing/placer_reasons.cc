// SPDX-License-Identifier: Apache-2.0
// What went wrong, and why an object waits.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rt/chaos.h"
#include "scheduler/placing/explain_text.h"
#include "scheduler/placing/placer.h"

namespace berth::scheduler {
namespace {

// One conflict is somebody's edit, and the next try knows of it. So many in a row have a reason
// that its owner should know.
constexpr int kConflictsTold = 3;

}  // namespace

void Placer::NotBound(Attempt& attempt, const Status& why) {
  bind_conflicts_.Add();
  LOG_DEBUG("binding {}: {}", attempt.uid, why.ToString());
  if (why.Is(Reason::kForbidden)) {
    // The pool is cordoned, going, or fuller than it looked (S3b, S3d): another one may do.
    REACHED("scheduler.bind_pool_refused");
    const PoolEntry* pool = pools_.Find(attempt.candidate.pool);
    Refusal refusal{.pool = pool == nullptr ? std::string() : pool->pool.spec.name,
                    .reason = "NotBindable",
                    .message = std::string(why.message())};
    return TryNext(attempt, attempt.candidate.pool, std::move(refusal));
  }
  // The object, its generation or the term is another one (S3a, S3c).
  REACHED("scheduler.bind_conflict");
  const std::string uid = attempt.uid;
  Conflicts& conflicts = conflicts_[uid];
  conflicts.why = why.message();
  if (++conflicts.count >= kConflictsTold) reports_.Waits(uid);
  Drop(uid);
  TryLater(uid);
}

// A bind came to nothing and will be tried again: if that goes on, the object says so.
void Placer::Lost(const Attempt& attempt, std::string reason, std::string message) {
  const PoolEntry* pool = pools_.Find(attempt.candidate.pool);
  Refusal refusal{.pool = pool == nullptr ? std::string() : pool->pool.spec.name,
                  .reason = std::move(reason),
                  .message = std::move(message)};
  refusals_.insert_or_assign(attempt.uid, std::vector{std::move(refusal)});
  reports_.Waits(attempt.uid);
}

std::optional<Pending> Placer::Explain(const std::string& uid) {
  const ObjectRecord* record = objects_.Find(uid);
  if (record == nullptr) return std::nullopt;
  Pending pending;
  pending.kind = record->kind;
  pending.key = record->key;
  if (const ObjectRecord* machine = objects_.WaitsWith(*record)) {
    pending.reason = "WaitsForMachine";
    pending.message = "it is placed together with machine " + machine->key.name;
    pending.reasons = pending.message;
    return pending;
  }
  if (!objects_.NeedsPlace(*record)) return std::nullopt;
  const std::variant<Ask, NotYet> prepared = objects_.Prepare(*record);
  if (const NotYet* not_yet = std::get_if<NotYet>(&prepared)) {
    pending.reason = not_yet->reason;
    pending.reasons = not_yet->message;
    pending.message = not_yet->message;
    return pending;
  }
  const Ask& ask = std::get<Ask>(prepared);
  if (std::optional<Pending> hold = ExplainHold(*record, ask)) return hold;
  pending = DescribePending(
      board_.Explain(ask.request, 1), RefusalsOf(uid), pools_, DescribeTies(ask, pools_));
  pending.kind = record->kind;
  pending.key = record->key;
  return pending;
}

std::optional<Pending> Placer::ExplainHold(const ObjectRecord& record, const Ask& ask) const {
  const std::string& uid = record.uid;
  Pending pending;
  pending.kind = record.kind;
  pending.key = record.key;
  if (!groups_.GoesAlone(uid)) {
    ExplainMember(*groups_.GroupOf(uid), pending);
  } else if (const std::string accepted = BindingPoolOf(uid); !accepted.empty()) {
    pending.reason = "Binding";
    pending.reasons = pending.reason;
    pending.message = "pool " + accepted + " has accepted it, and the binding is not written yet";
  } else if (const ObjectRecord* volume = BeingBoundOf(ask)) {
    pending.reason = "Binding";
    pending.reasons = pending.reason + " " + volume->key.name;
    pending.message = "its volume " + volume->key.name + " is being bound already";
  } else if (const std::string pool = preemptor_.PoolFor(uid); !pool.empty()) {
    pending.reason = "Preempting";
    pending.reasons = pending.reason;
    pending.message = PreemptingText(pool);
  } else if (const auto conflicts = conflicts_.find(uid);
             conflicts != conflicts_.end() && conflicts->second.count >= kConflictsTold) {
    pending.reason = "BindConflict";
    pending.reasons = pending.reason + ": " + conflicts->second.why;
    pending.message = "pools take it, but binding it failed " +
                      std::to_string(conflicts->second.count) +
                      " times, the last time because: " + conflicts->second.why;
  } else {
    return std::nullopt;
  }
  return pending;
}

std::string Placer::BindingPoolOf(const std::string& uid) const {
  const auto found = attempts_.find(uid);
  if (found == attempts_.end() || found->second->state != Attempt::State::kBinding) return "";
  const PoolEntry* pool = pools_.Find(found->second->candidate.pool);
  return pool == nullptr ? std::string() : pool->pool.spec.name;
}

const ObjectRecord* Placer::BeingBoundOf(const Ask& ask) const {
  const auto found = std::ranges::find_if(ask.joint, [this](const ObjectRecord* volume) {
    return !BindingPoolOf(volume->uid).empty();
  });
  return found == ask.joint.end() ? nullptr : *found;
}

std::vector<Refusal> Placer::RefusalsOf(std::string_view uid) const {
  const auto found = refusals_.find(uid);
  return found == refusals_.end() ? std::vector<Refusal>() : found->second;
}

}  // namespace berth::scheduler
