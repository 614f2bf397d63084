// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/pending_reports.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apis/core/reservation.h"
#include "apis/placement.h"
#include "base/hash.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::scheduler {
namespace {

// Never 0, which means that nothing was reported.
uint64_t HashOf(std::string_view text) { return Fnv1a(text) | 1; }

// What every client reads exactly.
constexpr int64_t kAttemptMax = int64_t{1} << 53;

// Where the last unbinding left its word, it stays: it tells why the place was lost, and the
// condition tells why there is no other.
void CountSearches(meta::Object& object, const std::string& reason, uint32_t searches) {
  if (apis::IsBound(object)) return;
  auto& placement = apis::PlacementOf(object);
  if (!placement) placement.emplace();
  int64_t& attempt = placement->attempt;
  attempt = std::clamp<int64_t>(attempt, 0, kAttemptMax - searches) + searches;
  if (placement->epoch == 0) placement->reason = reason;
}

}  // namespace

bool SetNotScheduled(meta::Object& object,
                     const Pending& pending,
                     uint32_t searches,
                     WallTime now) {
  const meta::Object before = object;
  apis::SetScheduled(object, "False", pending.reason, pending.message, now);
  if (&object.kind() == &apis::core::kReservationKind) {
    apis::core::BecomeRejected(object.as<apis::core::Reservation>());
  }
  if (object == before) return false;
  CountSearches(object, pending.reason, searches);
  return true;
}

void PendingReports::Waits(const std::string& uid) {
  if (Item* item = Find(uid)) Queue(*item);
}

void PendingReports::FoundNone(const std::string& uid) {
  Item* item = Find(uid);
  if (item == nullptr) return;
  ++item->second.searches;
  Queue(*item);
}

PendingReports::Item* PendingReports::Find(const std::string& uid) {
  auto found = entries_.find(uid);
  if (found == entries_.end()) {
    if (entries_.size() >= kWaitingMax) return nullptr;
    found = entries_.emplace(uid, Entry{.reported = 0, .due = loop_.Now() + kFirstAfter}).first;
  }
  return &*found;
}

void PendingReports::Queue(Item& item) {
  Entry& entry = item.second;
  if (entry.queued != 0) return;
  entry.queued = ++last_queued_;
  due_.emplace_hint(due_.end(), std::pair(entry.due, entry.queued), &item);
  work_.Set();
}

void PendingReports::Forget(std::string_view uid) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  Unqueue(found->second);
  entries_.erase(found);
}

bool PendingReports::Unqueue(Entry& entry) {
  const uint64_t number = std::exchange(entry.queued, 0);
  return due_.erase({entry.due, number}) > 0;
}

rt::Task<Status> PendingReports::Run() {
  for (;;) {
    if (due_.empty()) {
      work_.Reset();
      CO_TRY_STATUS(co_await work_.Wait());
      continue;
    }
    const Time due = due_.begin()->first.first;
    if (due > loop_.Now()) {
      // Everything new is due later than what waits already, or the same.
      CO_TRY_STATUS(co_await rt::Sleep(std::min(due - loop_.Now(), kFirstAfter)));
      continue;
    }
    const Time begin = loop_.Now();
    std::vector<rt::Task<Status>> reports;
    while (!due_.empty() && due_.begin()->first.first <= begin && reports.size() < kAtOnce) {
      Item& item = *due_.begin()->second;
      due_.erase(due_.begin());
      item.second.queued = 0;
      reports.push_back(ReportOrAgain(item.first));
    }
    for (const Status& ended : co_await rt::JoinAll(std::move(reports))) CO_TRY_STATUS(ended);
    CO_TRY_STATUS(co_await rt::Sleep((loop_.Now() - begin) * kRestPerWork));
  }
}

rt::Task<Status> PendingReports::ReportOrAgain(std::string uid) {
  const Status reported = co_await Report(uid);
  if (reported.Is(Reason::kCancelled)) co_return reported;
  if (!reported.ok() && !reported.Is(Reason::kNotFound)) Again(uid);
  co_return OkStatus();
}

void PendingReports::Again(const std::string& uid) {
  const auto found = entries_.find(uid);
  if (found == entries_.end() || found->second.queued != 0) return;
  found->second.due = loop_.Now() + kFailedAgainAfter;
  Queue(*found);
}

rt::Task<Status> PendingReports::Report(std::string uid) {
  auto found = entries_.find(uid);
  if (found == entries_.end()) co_return OkStatus();
  const std::optional<Pending> pending = explain_(uid);
  if (!pending) co_return OkStatus();
  const uint64_t reasons = HashOf(pending->reasons);
  if (reasons == found->second.reported) co_return OkStatus();
  const meta::KindInfo& kind = *pending->kind;
  const client::ObjectKey key = pending->key;
  const uint32_t searches = found->second.searches;
  Result<meta::Object> object = co_await client_.Get(kind, key);
  CO_TRY_STATUS(object);
  if (object->metadata().uid != uid) co_return OkStatus();
  bool is_counted = false;
  if (SetNotScheduled(*object, *pending, searches, loop_.WallNow())) {
    client::WriteOptions options;
    options.subresource = client::Subresource::kStatus;
    const Result<meta::Object> written = co_await client_.Update(*object, options);
    if (!written.ok() && !written.status().Is(Reason::kConflict)) co_return written.status();
    events_.Record(client::EventSubject::Of(*object),
                   client::EventType::kWarning,
                   "FailedScheduling",
                   "Scheduling",
                   pending->message);
    if (!written.ok()) co_return written.status();  // it changed: the next report is due soon
    is_counted = true;
  }
  found = entries_.find(uid);
  if (found == entries_.end()) co_return OkStatus();
  found->second.reported = reasons;
  // There may be less by now: it was forgotten, and waits anew.
  if (is_counted) found->second.searches -= std::min(searches, found->second.searches);
  const bool waits_again = Unqueue(found->second);
  found->second.due = loop_.Now() + kAgainAfter;
  if (waits_again) Queue(*found);
  co_return OkStatus();
}

}  // namespace berth::scheduler
