// SPDX-License-Identifier: Apache-2.0
// What went wrong, and why an object waits.
#include <algorithm>
#include <set>
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

// Of one that was refused while there are others to ask.
Pending DescribeGoingOn(const std::vector<Refusal>& refusals) {
  std::set<std::string> reasons;
  for (const Refusal& refusal : refusals) reasons.insert(refusal.reason);
  Pending pending;
  pending.reason = "HostsRefused";
  pending.reasons = pending.reason + ':';
  for (const std::string& reason : reasons) pending.reasons += ' ' + reason;
  pending.message = std::to_string(refusals.size()) + (refusals.size() == 1 ? " host" : " hosts") +
                    " refused so far, others are asked: " + DescribeRefusals(refusals);
  return pending;
}

}  // namespace

void Placer::NotBound(Attempt& attempt, const Status& why) {
  bind_conflicts_.Add();
  LOG_DEBUG("binding {}: {}", attempt.uid, why.ToString());
  if (why.Is(Reason::kForbidden)) {
    // The pool is cordoned, going, or fuller than it looked (S3b, S3d): another one may do.
    REACHED("scheduler.bind_pool_refused");
    return TryNext(attempt,
                   {.host = attempt.candidate.pool,
                    .reason = "NotBindable",
                    .message = std::string(why.message())});
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
  const ObjectRecord* record = objects_.Find(attempt.uid);
  if (record == nullptr) return;
  const PoolIndex pool = attempt.candidate.pool;
  refusals_.Note(
      *record, pool, {.host = pool, .reason = std::move(reason), .message = std::move(message)});
  reports_.FoundNone(attempt.uid);
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
  std::variant<Ask, NotYet> prepared = objects_.Prepare(*record);
  if (const NotYet* not_yet = std::get_if<NotYet>(&prepared)) {
    pending.reason = not_yet->reason;
    pending.reasons = not_yet->message;
    pending.message = not_yet->message;
    return pending;
  }
  Ask& ask = std::get<Ask>(prepared);
  if (std::optional<Pending> hold = ExplainHold(*record, ask)) return hold;
  ask.request.refused = refusals_.PoolsOf(*record);
  Explanation why = board_.Explain(ask.request, 1);
  // Who is nearest by what it lacks is of use, not that it refused as others did.
  if (why.nearest && why.nearest->rule == Rule::kRefused) why.nearest.reset();
  const std::vector<Refusal> refusals = RefusalsOf(uid);
  if (why.passed > 0 && !refusals.empty()) {
    pending = DescribeGoingOn(refusals);
  } else {
    pending = DescribePending(why, refusals, pools_, DescribeTies(ask, pools_));
  }
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
  std::vector<Refusal> refusals;
  const ObjectRecord* record = objects_.Find(uid);
  if (record == nullptr) return refusals;
  for (RefusalBook::Told& told : refusals_.ToldOf(*record)) {
    const PoolEntry* pool = pools_.Find(told.host);
    if (pool == nullptr) continue;
    refusals.push_back({.pool = pool->pool.spec.name,
                        .reason = std::move(told.reason),
                        .message = std::move(told.message)});
  }
  return refusals;
}

}  // namespace berth::scheduler
