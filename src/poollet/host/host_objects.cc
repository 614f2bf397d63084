// SPDX-License-Identifier: Apache-2.0
// What becomes of the objects of a host: durable first, then acted on.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "poollet/host/host.h"
#include "rt/backoff.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::poollet {
namespace {

using fleet::ObjectKind;

// Something of this kind with nothing known but its uid, to be removed.
std::shared_ptr<const Desired> Nameless(const RecordEntry& entry) {
  Desired desired;
  desired.uid = entry.uid;
  desired.kind = entry.kind;
  desired.placement = entry.placement;
  if (entry.kind == ObjectKind::kVolume) desired.body = DesiredVolume();
  if (entry.kind == ObjectKind::kBucket) desired.body = DesiredBucket();
  if (entry.kind == ObjectKind::kVolumeSnapshot) desired.body = DesiredSnapshot();
  return std::make_shared<const Desired>(std::move(desired));
}

}  // namespace

void Host::Save(const std::string& uid, Item& item) {
  scope_.Spawn("poollet.save", Persist(uid, ++item.version));
}

rt::Task<Status> Host::Persist(std::string uid, uint64_t version) {
  rt::Backoff backoff;
  while (true) {
    Item* item = Find(uid);
    if (item == nullptr || item->version != version) co_return OkStatus();  // a later one follows
    RecordChange change;
    change.puts.push_back(item->entry);
    const Status written = co_await record_->Write(std::move(change));
    if (written.Is(Reason::kCancelled)) co_return written;
    item = Find(uid);
    if (item == nullptr || item->version != version) co_return OkStatus();
    if (written.ok()) {
      item->is_durable = true;
      Saved(uid, *item);
      co_return OkStatus();
    }
    LOG_ERROR("{}: {}", uid, written.message());
    if (!item->is_durable && item->entry.phase == Phase::kAssigned) {
      // P4: what cannot be written down is not begun. Nor is it taken up again at this placement:
      // the server may let it go on this word, and nobody would tell us of that any more.
      MakeGone(uid, *item);
      outbox_.Refuse(
          uid, item->entry.placement, "RecordFailed", std::string(written.message()), {});
      BoundGone(uid);
      CheckDrained();
      co_return OkStatus();
    }
    CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(loop_.random())));
  }
}

void Host::Saved(const std::string& uid, Item& item) {
  switch (item.entry.phase) {
    case Phase::kAssigned:
      outbox_.Ack(uid, item.entry.placement, item.entry.hash);
      Hand(item);
      break;
    case Phase::kRemoving: Hand(item); break;
    case Phase::kGone:
      if (item.refusal.has_value()) {
        outbox_.Refuse(uid,
                       item.entry.placement,
                       item.refusal->reason,
                       item.refusal->message,
                       item.refusal->missing);
        item.refusal.reset();
      } else {
        outbox_.Gone(uid, item.entry.placement);
      }
      break;
  }
  CheckDrained();
}

void Host::Hand(const Item& item) {
  if (item.entry.kind == ObjectKind::kReservation) {
    // It is no object of a runtime, which only keeps the room free.
    ReservationsChanged();
    if (item.entry.phase == Phase::kRemoving) {
      Removed(item.entry.uid);
    } else if (item.desired != nullptr) {
      outbox_.Report(ReportReservation(*item.desired));
    }
    return;
  }
  Target target;
  target.desired = item.desired != nullptr ? item.desired : Nameless(item.entry);
  target.phase = item.entry.phase;
  target.secrets_missing = item.secrets_missing;
  target.was_available = item.entry.was_available;
  target.create_begun = item.entry.create_begun;
  target.runtime_id = item.entry.runtime_id;
  target.storage_allowed = AmountOf(item.entry.amounts, kStorage);
  reconciler_.Put(std::move(target));
}

void Host::Reported(ObjectReport report) {
  const Item* item = Find(report.uid);
  // Said when the server speaks of it: until then there is nobody to whom it means anything.
  if (!in_session_ || item == nullptr || !item->is_confirmed) return;
  if (report.state == "Running") Trace(report.kind, report.uid, "running");
  outbox_.Report(std::move(report));
}

void Host::Trace(ObjectKind kind, std::string_view uid, std::string_view step) const {
  if (options_.trace != nullptr && kind == ObjectKind::kMachine) options_.trace(step, uid);
}

// Keeps (I, P) and nothing else: secrets go with the body.
void Host::MakeGone(const std::string& uid, Item& item) {
  reconciler_.Drop(uid);
  leases_.Withdraw(uid);
  ledger_.Free(uid);
  if (item.entry.kind == ObjectKind::kReservation) ReservationsChanged();
  outbox_.Drop(uid);
  RecordEntry entry;
  entry.uid = uid;
  entry.placement = item.entry.placement;
  entry.phase = Phase::kGone;
  entry.kind = item.entry.kind;
  entry.pool_uid = item.entry.pool_uid;
  item.entry = std::move(entry);
  item.desired = nullptr;
  item.secrets_missing = false;
  Save(uid, item);
}

void Host::Removed(const std::string& uid) {
  if (Item* item = Find(uid); item != nullptr) MakeGone(uid, *item);
}

void Host::Refused(const std::string& uid, std::string reason, std::string message) {
  Item* item = Find(uid);
  if (item == nullptr || item->entry.phase != Phase::kAssigned) return;
  item->refusal =
      Item::Refusal{.reason = "RuntimeRefused", .message = reason + ": " + message, .missing = {}};
  MakeGone(uid, *item);
}

void Host::BecameAvailable(const std::string& uid) {
  Item* item = Find(uid);
  if (item == nullptr || item->entry.was_available || item->entry.kind == ObjectKind::kMachine) {
    return;
  }
  item->entry.was_available = true;
  Save(uid, *item);
}

bool Host::HasLease(const std::string& uid) const {
  const auto found = items_.find(uid);
  return found != items_.end() && leases_.Covers(uid, found->second.entry.placement);
}

bool Host::IsArmed(const std::string& uid) const {
  const auto found = items_.find(uid);
  return found != items_.end() && leases_.IsArmed(uid, found->second.entry.placement);
}

rt::Task<Status> Host::Cover(std::string uid) { co_return co_await leases_.Cover(std::move(uid)); }

const RecordEntry* Host::Kept(const std::string& uid) const {
  const auto found = record_->state().entries.find(uid);
  return found == record_->state().entries.end() ? nullptr : &found->second;
}

rt::Task<Status> Host::CreateBegins(std::string uid) {
  Item* item = Find(uid);
  if (item == nullptr) co_return NotFound("not assigned any more");
  // The room that was reserved for it, or that a reservation has given up, is free in the runtime
  // too.
  const auto port = ports_.find(item->entry.kind);
  if (port != ports_.end()) CO_TRY_STATUS(co_await reserved_.Tell(port->second.host));
  item = Find(uid);
  if (item == nullptr) co_return NotFound("not assigned any more");
  const RecordEntry* const kept = Kept(uid);
  if (kept != nullptr && kept->create_begun) co_return OkStatus();
  item->entry.create_begun = true;
  RecordChange change;
  change.puts.push_back(item->entry);
  const ObjectKind kind = item->entry.kind;
  CO_TRY_STATUS(co_await record_->Write(std::move(change)));
  Trace(kind, uid, "create");
  co_return OkStatus();
}

rt::Task<Status> Host::StartBegins(std::string uid, std::string runtime_id) {
  Item* item = Find(uid);
  if (item == nullptr) co_return NotFound("not assigned any more");
  const RecordEntry* const kept = Kept(uid);
  if (kept != nullptr && kept->runtime_id == runtime_id) co_return OkStatus();
  item->entry.runtime_id = std::move(runtime_id);
  RecordChange change;
  change.puts.push_back(item->entry);
  co_return co_await record_->Write(std::move(change));
}

void Host::Changed(ObjectKind kind, const std::string& uid) {
  if (kind == ObjectKind::kMachine) leases_.GuestsChanged();
  if (reconciler_.Has(uid)) {
    reconciler_.Kick(uid);
  } else if (!items_.contains(uid)) {
    watch_.ScanNow();
  }
}

void Host::Scanned(ObjectKind kind, std::vector<Seen> all) {
  std::set<std::string> uids;
  std::map<std::string, SpokenOrphan> orphans;
  bool has_suspect = false;
  std::set<std::string> suspects;
  for (auto& seen : all) {
    uids.insert(seen.uid);
    Item* item = Find(seen.uid);
    if (item != nullptr) seen_.insert_or_assign(seen.uid, seen);
    if (item != nullptr && item->entry.phase == Phase::kGone) {
      // Something of it came late: the proof that let us remove it still holds.
      item->entry.phase = Phase::kRemoving;
      Save(seen.uid, *item);
    }
    if (item != nullptr) continue;
    // An orphan is what two scans in a row have shown: one may have begun before it was removed.
    const std::string id = seen.id;
    suspects.insert(id);
    if (!suspects_.contains(id) && !orphans_.contains(id)) {
      has_suspect = true;
      continue;
    }
    const PoolSetup* setup = SetupOf(kind);
    orphans.insert_or_assign(
        id, SpokenOrphan{.seen = std::move(seen), .pool = setup == nullptr ? "" : setup->name});
  }
  bool changed = false;
  for (auto it = orphans_.begin(); it != orphans_.end();) {
    const bool mine = it->second.seen.kind == kind;
    if (mine && !suspects.contains(it->first)) suspects_.erase(it->first);
    const bool over = mine && !orphans.contains(it->first);
    changed = changed || over;
    it = over ? orphans_.erase(it) : std::next(it);
  }
  for (auto& [id, orphan] : orphans) {
    const auto known = orphans_.find(id);
    changed = changed || known == orphans_.end() || known->second.seen.state != orphan.seen.state;
    orphans_.insert_or_assign(id, std::move(orphan));
  }
  suspects_.insert(suspects.begin(), suspects.end());
  std::erase_if(seen_, [&](const auto& entry) {
    return entry.second.kind == kind && !uids.contains(entry.first);
  });
  if (changed || Quarantined() != quarantined_) SayOrphans();
  if (has_suspect) watch_.ScanNow();
  for (const auto& [uid, item] : items_) {
    if (item.entry.kind == kind && !uids.contains(uid)) reconciler_.Kick(uid);
  }
}

std::set<std::string> Host::Quarantined() const {
  std::set<std::string> uids;
  if (!synced_) return uids;
  for (const auto& [uid, item] : items_) {
    const bool unclaimed = !item.is_confirmed && item.entry.phase == Phase::kAssigned;
    if (unclaimed && seen_.contains(uid)) uids.insert(uid);
  }
  return uids;
}

void Host::SayOrphans() {
  std::vector<OrphanUse> uses;
  std::vector<SpokenOrphan> spoken;
  for (const auto& [id, orphan] : orphans_) {
    uses.push_back({.runtime_id = id,
                    .uid = orphan.seen.uid,
                    .kind = orphan.seen.kind,
                    .pool_uid = PoolUidOf(orphan.seen.kind),
                    .class_name = orphan.seen.class_name,
                    .amounts = orphan.seen.amounts});
    spoken.push_back(orphan);
  }
  ledger_.SetOrphans(std::move(uses));
  // Assigned by a history that the server does not have: counted already, and shown beside them.
  quarantined_ = Quarantined();
  for (const auto& uid : quarantined_) {
    const PoolSetup* setup = SetupOf(seen_.at(uid).kind);
    spoken.push_back({.seen = seen_.at(uid), .pool = setup == nullptr ? "" : setup->name});
  }
  if (synced_) outbox_.Orphans(std::move(spoken));
}

void Host::Happened(ObjectKind kind, const std::string& uid, iri::Event event) {
  const Item* item = Find(uid);
  if (item == nullptr || item->entry.phase == Phase::kGone) return;
  Say(event.type, uid, kind, std::move(event.reason), std::move(event.message));
}

// Events wait for their turn: meanwhile the server may have let go of the object.
EventFate Host::FateOf(const std::string& uid) const {
  const auto found = items_.find(uid);
  if (found == items_.end()) return EventFate::kDrop;
  const Item& item = found->second;
  // P6: what is ignored for its old placement is confirmed by nothing, and is reported.
  if (item.is_confirmed || item.is_named || item.entry.phase == Phase::kGone) {
    return EventFate::kSay;
  }
  const bool is_open = !synced_ || history_ == HistoryState::kOpen;
  return is_open ? EventFate::kKeep : EventFate::kDrop;
}

// Kept once a server was told, so that a host without one loses nothing when its poollet dies.
void Host::HeardUntil(ObjectKind kind, WallTime until) {
  heard_[std::string(fleet::NameOf(kind))] = until.seconds();
  const bool is_soon =
      heard_kept_at_.has_value() && loop_.Now() - *heard_kept_at_ < options_.watch.event_interval;
  if (is_soon || outbox_.has_events() || heard_ == host_.events_told) return;
  heard_kept_at_ = loop_.Now();
  host_.events_told = heard_;
  PersistHost();
}

// An operator's word is the proof that lets this one go.
rt::Task<Status> Host::Purge(ObjectKind kind, std::string id) {
  rt::Backoff backoff;
  while (orphans_.contains(id)) {
    Driver* driver = ports_.at(kind).driver.get();
    const Status status =
        co_await rt::WithDeadline(driver->Delete(id), options_.reconcile.call_limit);
    if (status.Is(Reason::kCancelled)) co_return status;
    if (status.Is(Reason::kNotFound)) break;
    CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(loop_.random())));
  }
  watch_.ScanNow();
  co_return OkStatus();
}

}  // namespace berth::poollet
