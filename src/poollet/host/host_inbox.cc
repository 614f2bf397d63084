// SPDX-License-Identifier: Apache-2.0
// What the server says, and what a host does about it.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "berth/agent/v1/agent.pb.h"
#include "poollet/host/breaker.h"
#include "poollet/host/host.h"
#include "rt/chaos.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;
using fleet::ObjectKind;

// A hold longer than this is no hold: the host forgets it earlier than the server hopes.
constexpr Duration kHoldMax = Duration::Minutes(1);
// 10,000 entries of 200 bytes: what the server did not confirm by then it never will.
constexpr size_t kGoneMax = 10'000;

std::optional<ObjectKind> KindFromName(std::string_view name) {
  for (const auto kind : {ObjectKind::kMachine,
                          ObjectKind::kVolume,
                          ObjectKind::kBucket,
                          ObjectKind::kReservation,
                          ObjectKind::kVolumeSnapshot}) {
    if (fleet::NameOf(kind) == name) return kind;
  }
  return std::nullopt;
}

fleet::OfferItem ToItem(const auto& message) {
  fleet::OfferItem item;
  item.pool_uid = message.pool_uid();
  item.kind = KindFromName(message.kind()).value_or(ObjectKind::kMachine);
  item.uid = message.uid();
  item.placement = message.placement();
  item.class_name = message.class_name();
  item.resources.insert(message.resources().begin(), message.resources().end());
  return item;
}

fleet::Offer ToOffer(const pb::Offer& message) {
  fleet::Offer offer;
  offer.id = {.term = message.id().term(), .number = message.id().number()};
  offer.item = ToItem(message);
  for (const auto& joint : message.joint()) offer.joint.push_back(ToItem(joint));
  const auto ms = static_cast<int64_t>(std::min<uint64_t>(message.hold_ms(), 3'600'000));
  offer.hold_ttl = std::min(Duration::Millis(ms), kHoldMax);
  offer.reservation_uid = message.reservation_uid();
  return offer;
}

}  // namespace

void Host::Received(const pb::ServerBatch& batch) {
  for (const auto& pool : batch.pools()) OnPool(pool);
  for (const auto& release : batch.releases()) {
    ledger_.Release({.term = release.term(), .number = release.number()});
  }
  for (const auto& message : batch.deletes()) OnDelete(message);
  for (const auto& offer : batch.offers()) OnOffer(offer);
  for (const auto& assign : batch.assigns()) OnAssign(assign);
  for (const auto& confirm : batch.confirms()) OnConfirm(confirm);
  for (const auto& gone : batch.forget()) OnForget(gone);
  for (const auto& verdict : batch.orphans()) OnVerdict(verdict);
  ArmExpiry();
}

void Host::Say(iri::EventType type,
               const std::string& uid,
               ObjectKind kind,
               std::string reason,
               std::string message) {
  outbox_.Event({.uid = uid,
                 .pool_uid = PoolUidOf(kind),
                 .type = type,
                 .reason = std::move(reason),
                 .message = std::move(message)});
}

void Host::OnPool(const pb::PoolWelcome& welcome) {
  if (!welcome.refused().empty()) {
    LOG_ERROR(
        "{} {}: refused by the server: {}", welcome.kind(), welcome.name(), welcome.refused());
    return;
  }
  RecordPool pool;
  pool.kind = welcome.kind();
  pool.name = welcome.name();
  pool.uid = welcome.uid();
  pool.limits.insert(welcome.limits().begin(), welcome.limits().end());
  const auto found = std::ranges::find_if(host_.pools, [&](const RecordPool& known) {
    return known.kind == pool.kind && known.name == pool.name;
  });
  if (found == host_.pools.end()) {
    host_.pools.push_back(std::move(pool));
  } else {
    *found = std::move(pool);
  }
  facts_said_ = 0;
  ApplyBudgets();
  SayOrphans();
  PersistHost();
}

void Host::OnOffer(const pb::Offer& message) {
  const fleet::Offer offer = ToOffer(message);
  if (offer.id.term > host_.term) {  // P1
    host_.term = offer.id.term;
    PersistHost();
  }
  const auto port = ports_.find(offer.item.kind);
  if (port != ports_.end() && !port->second.problem.empty()) {
    fleet::Answer answer;
    answer.id = offer.id;
    answer.verdict = fleet::Answer::Verdict::kRejected;
    answer.reason = "RuntimeUnavailable";
    answer.message = port->second.problem;
    answer.ledger = ledger_.version();
    outbox_.Answer(std::move(answer));
    return;
  }
  fleet::Answer answer = Ask(offer);
  // What is being removed or was refused here is in the record, at its placement.
  const Item* item = Find(offer.item.uid);
  if (item != nullptr && item->entry.phase == Phase::kRemoving) {
    answer.verdict = fleet::Answer::Verdict::kAlreadyHere;
    answer.placement = item->entry.placement.number;
  }
  outbox_.Answer(std::move(answer));
}

bool Host::IsAdopted(const fleet::OfferItem& item) const {
  const auto found = items_.find(item.uid);
  if (found == items_.end() || !synced_) return false;
  const Item& here = found->second;
  const Placement offered = {.incarnation = incarnation_, .number = item.placement};
  const bool fits = std::ranges::all_of(item.resources, [&](const auto& amount) {
    return amount.second <= AmountOf(here.entry.amounts, amount.first);
  });
  return here.entry.phase == Phase::kAssigned && !here.is_confirmed && fits &&
         offered > here.entry.placement;
}

// What is to be adopted has its room already; what goes with it is asked for as always.
fleet::Answer Host::Ask(fleet::Offer offer) {
  if (offer.id.term < host_.term || !IsAdopted(offer.item)) {
    return ledger_.Ask(offer, host_.term, loop_.Now());
  }
  REACHED("poollet.adopts");
  std::erase_if(offer.joint,
                [this](const fleet::OfferItem& item) { return ledger_.IsAllocated(item.uid); });
  if (!offer.joint.empty()) {
    offer.item = std::move(offer.joint.front());
    offer.joint.erase(offer.joint.begin());
    return ledger_.Ask(offer, host_.term, loop_.Now());
  }
  fleet::Answer answer;
  answer.id = offer.id;
  answer.verdict = fleet::Answer::Verdict::kAccepted;
  answer.ledger = ledger_.version();
  return answer;
}

// True if nothing is to be admitted: it is old, being removed, gone, or as it was.
bool Host::IsSettledBefore(const pb::Assign& assign, Item& item) {
  const std::string& uid = item.entry.uid;
  const Placement placement = {.incarnation = assign.incarnation(), .number = assign.placement()};
  if (placement < item.entry.placement) {  // P6
    REACHED("poollet.p6.stale_assign");
    Say(iri::EventType::kWarning,
        uid,
        item.entry.kind,
        "StaleAssignment",
        fmt::format("ignored an assignment at ({}, {}): this host has seen ({}, {})",
                    placement.incarnation,
                    placement.number,
                    item.entry.placement.incarnation,
                    item.entry.placement.number));
    return true;
  }
  const bool is_same = placement == item.entry.placement;
  if (item.entry.phase == Phase::kGone && is_same) {
    if (item.MayBeSaid()) outbox_.Gone(uid, item.entry.placement);
    return true;
  }
  if (item.entry.phase == Phase::kRemoving) {
    if (!is_same) {
      // The old copy must go before a new one may come, here or elsewhere: only then the server
      // hears of it, at the placement that it asked for.
      REACHED("poollet.assigned_while_removing");
      item.entry.placement = placement;
      Save(uid, item);
    }
    return true;
  }
  if (item.entry.phase == Phase::kAssigned && is_same && item.entry.hash == assign.hash() &&
      !item.secrets_missing) {
    if (item.is_durable) outbox_.Ack(uid, placement, item.entry.hash);
    return true;
  }
  return false;
}

void Host::OnAssign(const pb::Assign& assign) {
  std::string bytes = assign.SerializeAsString();
  auto parsed = ParseAssign(bytes, host_.cluster_id);
  const Placement placement = {.incarnation = assign.incarnation(), .number = assign.placement()};
  if (!parsed.ok()) {
    const std::string text(parsed.status().message());
    outbox_.Refuse(assign.uid(), placement, "BadAssignment", text, {});
    return;
  }
  auto desired = std::make_shared<const Desired>(*std::move(parsed));
  Item* item = Find(desired->uid);
  if (item != nullptr) item->is_named = true;
  if (item != nullptr && IsSettledBefore(assign, *item)) {
    if (item->entry.phase == Phase::kAssigned && item->entry.placement == placement) {
      if (Moves(*desired)) leases_.Confirm(desired->uid, placement);
      Confirmed(desired->uid, *item);
    }
    return;
  }
  const auto port = ports_.find(desired->kind);
  if (port != ports_.end() && !port->second.is_known && !ledger_.IsAllocated(desired->uid)) {
    // What fits cannot be said yet; to refuse it now would be a guess.
    early_assigns_.insert_or_assign(desired->uid, std::move(bytes));
    return;
  }
  Accept(std::move(desired), std::move(bytes));
}

void Host::TakeEarlyAssigns() {
  for (const auto& [uid, bytes] : std::exchange(early_assigns_, {})) {
    pb::Assign assign;
    if (assign.ParseFromString(bytes)) OnAssign(assign);
  }
}

void Host::Accept(std::shared_ptr<const Desired> desired, std::string assign) {
  Allocation allocation;
  allocation.uid = desired->uid;
  allocation.kind = desired->kind;
  allocation.pool_uid = desired->pool_uid;
  allocation.class_name = desired->class_name;
  allocation.placement = desired->placement.number;
  allocation.amounts = desired->amounts;
  allocation.reservation_uid = desired->reservation_uid;
  allocation.consumers = ConsumersOf(*desired);
  const bool is_here = ledger_.IsAllocated(desired->uid);
  Verdict verdict = ledger_.Admit(allocation, loop_.Now());  // P5
  if (!verdict.fits && !is_here) {
    REACHED("poollet.p5.refused");
    RefuseAssign(*desired,
                 {.reason = std::move(verdict.reason),
                  .message = std::move(verdict.message),
                  .missing = std::move(verdict.missing)});
    return;
  }
  Trace(desired->kind, desired->uid, "assigned");
  Item& item = items_[desired->uid];
  if (!verdict.fits) {
    Say(iri::EventType::kWarning,
        desired->uid,
        desired->kind,
        "UpdateDoesNotFit",
        std::move(verdict.message));
  } else {
    item.entry.amounts = desired->amounts;
  }
  auto stripped = WithoutSecrets(assign);
  CHECK(stripped.ok()) << "it was parsed before";
  item.entry.uid = desired->uid;
  item.entry.placement = desired->placement;
  item.entry.phase = Phase::kAssigned;
  item.entry.kind = desired->kind;
  item.entry.pool_uid = desired->pool_uid;
  item.entry.hash = desired->hash;
  item.entry.assign = *std::move(stripped);
  item.entry.had_secrets = desired->had_secrets;
  item.secrets_missing = false;
  item.refusal.reset();
  item.desired = desired;
  // What was said of it without a session, or on one that ended, was lost. The look that follows
  // the record knows the new placement; what was said last does not.
  if (!std::exchange(item.is_confirmed, true)) reconciler_.ReportAnew(desired->uid);
  if (Moves(*desired)) {
    leases_.Confirm(desired->uid, desired->placement);
  } else {
    leases_.Withdraw(desired->uid);
  }
  Save(desired->uid, item);
  const auto orphaned =
      std::erase_if(orphans_, [&](const auto& o) { return o.second.seen.uid == desired->uid; });
  if (orphaned > 0 || quarantined_.contains(desired->uid)) SayOrphans();  // adopted
  CheckDrained();
}

// Never silently dropped, and never taken up again at this placement: by the time that an old
// message comes once more, the object may run elsewhere.
void Host::RefuseAssign(const Desired& desired, Item::Refusal refusal) {
  Item& item = items_[desired.uid];
  item.entry = RecordEntry();
  item.entry.uid = desired.uid;
  item.entry.placement = desired.placement;
  item.entry.phase = Phase::kGone;
  item.entry.kind = desired.kind;
  item.entry.pool_uid = desired.pool_uid;
  item.desired = nullptr;
  item.refusal = std::move(refusal);
  Save(desired.uid, item);
}

void Host::OnConfirm(const pb::Confirm& confirm) {
  Item* item = Find(confirm.uid());
  const Placement placement = {.incarnation = confirm.incarnation(), .number = confirm.placement()};
  if (item == nullptr || item->entry.phase != Phase::kAssigned || item->desired == nullptr) return;
  if (confirm.keep_only()) {
    if (Moves(*item->desired)) leases_.Keep(confirm.uid());
    return;
  }
  if (placement < item->entry.placement) return;
  if (placement > item->entry.placement) {
    // The same body under a later placement: from here on this one counts.
    Desired desired = *item->desired;
    desired.placement = placement;
    item->desired = std::make_shared<const Desired>(std::move(desired));
    item->entry.placement = placement;
    Save(confirm.uid(), *item);
  }
  if (Moves(*item->desired)) leases_.Confirm(confirm.uid(), placement);
  Confirmed(confirm.uid(), *item);
}

// What was said of it on earlier sessions may have been lost.
void Host::Confirmed(const std::string& uid, Item& item) {
  if (item.is_confirmed) return;
  item.is_confirmed = true;
  if (quarantined_.contains(uid)) SayOrphans();
  if (item.entry.kind == ObjectKind::kReservation) {
    if (item.is_durable && item.desired != nullptr)
      outbox_.Report(ReportReservation(*item.desired));
    return;
  }
  reconciler_.ReportAgain(uid);
}

void Host::OnDelete(const pb::Delete& message) {
  PendingDelete wanted;
  wanted.uid = message.uid();
  wanted.placement = {.incarnation = message.incarnation(), .number = message.placement()};
  wanted.kind = KindFromName(message.kind()).value_or(ObjectKind::kMachine);
  wanted.is_approved = message.approved();
  // Those of a resynchronisation are looked at together when it ends.
  Item* item = Find(wanted.uid);
  if (item != nullptr) item->is_named = true;
  const bool is_old = item != nullptr && item->entry.placement.incarnation < incarnation_;
  if (!synced_ || (history_ == HistoryState::kOpen && is_old)) {
    pending_deletes_.push_back(std::move(wanted));
  } else if (tripped_ && !wanted.is_approved) {
    held_deletes_.insert(wanted.uid);
  } else {
    Execute(wanted);
    held_deletes_.erase(wanted.uid);
    if (tripped_ && held_deletes_.empty()) BelieveHistory();
  }
}

void Host::BelieveHistory() {
  tripped_ = false;
  host_.incarnation = std::max(host_.incarnation, incarnation_);
  if (revision_ != 0) host_.revision = revision_;
  PersistHost();
}

void Host::Synced(uint64_t revision, HistoryState history) {
  synced_ = true;
  revision_ = revision;
  history_ = history;
  facts_said_ = 0;
  // What the server has not spoken of yet is neither unknown to it nor to be deleted.
  if (history == HistoryState::kOpen) return;
  const HistorySeen seen = {.incarnation_known = host_.incarnation,
                            .incarnation = incarnation_,
                            .revision_known = host_.revision,
                            .revision = revision};
  size_t deletions = 0;
  for (const auto& wanted : pending_deletes_) {
    const Item* item = Find(wanted.uid);
    const bool runs = item != nullptr && item->entry.phase == Phase::kAssigned &&
                      wanted.placement >= item->entry.placement;
    if (runs && !wanted.is_approved) ++deletions;
  }
  const size_t running = CountIn(Phase::kAssigned);
  tripped_ = options_.mass_deletion == HostOptions::MassDeletion::kNeedsApproval &&
             IsSuspicious(seen) && IsMassDeletion(deletions, running);
  if (tripped_) {
    REACHED("poollet.breaker.tripped");
    const std::string text = fmt::format(
        "history was rewound, and {} of {} objects here should be deleted: nothing is deleted "
        "until an operator approves it",
        deletions,
        running);
    LOG_ERROR("{}", text);
    for (const auto& [kind, _] : ports_) {
      if (kind == ObjectKind::kVolumeSnapshot) continue;  // of the same pool as volumes
      Say(iri::EventType::kWarning, "", kind, "MassDeletionHeld", text);
    }
  } else {
    BelieveHistory();
  }
  for (const auto& wanted : std::exchange(pending_deletes_, {})) {
    if (tripped_ && !wanted.is_approved) {
      held_deletes_.insert(wanted.uid);
    } else {
      Execute(wanted);
    }
  }
  DropUnknownReservations();
  SayOrphans();
  if (std::ranges::any_of(items_, [](const auto& item) { return !item.second.is_confirmed; })) {
    watch_.ScanNow();
  }
}

// Room that the server knows nothing of is kept for nobody. Unlike what runs here, nothing is lost
// with it.
void Host::DropUnknownReservations() {
  for (auto& [uid, item] : items_) {
    const bool is_unknown = item.entry.kind == ObjectKind::kReservation && !item.is_confirmed &&
                            item.entry.phase == Phase::kAssigned;
    if (is_unknown) MakeGone(uid, item);
  }
}

void Host::Execute(const PendingDelete& wanted) {
  early_assigns_.erase(wanted.uid);
  Item* item = Find(wanted.uid);
  if (item != nullptr && wanted.placement < item->entry.placement) {
    Say(iri::EventType::kWarning,
        wanted.uid,
        item->entry.kind,
        "StaleDelete",
        fmt::format("ignored a deletion at ({}, {}): this host has a later placement",
                    wanted.placement.incarnation,
                    wanted.placement.number));
    return;
  }
  if (item == nullptr) {
    item = &items_[wanted.uid];
    item->entry.uid = wanted.uid;
    item->entry.kind = wanted.kind;
  }
  if (item->entry.phase == Phase::kGone) {
    item->entry.placement = wanted.placement;
    if (item->MayBeSaid()) outbox_.Gone(wanted.uid, wanted.placement);
    return;
  }
  item->is_confirmed = true;
  const bool is_new = item->entry.phase != Phase::kRemoving;
  item->entry.phase = Phase::kRemoving;
  item->entry.placement = wanted.placement;
  if (is_new) Save(wanted.uid, *item);
}

void Host::OnForget(const pb::Gone& gone) {
  const Item* item = Find(gone.uid());
  const Placement placement = {.incarnation = gone.incarnation(), .number = gone.placement()};
  if (item == nullptr || item->entry.phase != Phase::kGone || item->entry.placement > placement) {
    return;
  }
  items_.erase(gone.uid());
  scope_.Spawn("poollet.forget", Forget({gone.uid()}));
  BoundGone("");
}

void Host::BoundGone(const std::string& newest) {
  if (CountIn(Phase::kGone) <= kGoneMax) return;
  for (const auto& [uid, item] : items_) {
    if (item.entry.phase != Phase::kGone || !item.MayBeSaid() || uid == newest) continue;
    const std::string other = uid;
    items_.erase(other);
    scope_.Spawn("poollet.forget", Forget({other}));
    break;
  }
}

rt::Task<Status> Host::Forget(std::vector<std::string> uids) {
  RecordChange change;
  change.forgets = std::move(uids);
  // If this fails, the next announce shows it again.
  co_return co_await record_->Write(std::move(change));
}

void Host::OnVerdict(const pb::OrphanVerdict& verdict) {
  if (verdict.verdict() != pb::OrphanVerdict::PURGE) return;
  const auto found = orphans_.find(verdict.runtime_id());
  if (found != orphans_.end()) {
    if (found->second.seen.uid != verdict.uid()) return;
    scope_.Spawn("poollet.purge", Purge(found->second.seen.kind, verdict.runtime_id()));
    return;
  }
  // Of the record, and the server knows nothing of it: an operator's word lets it go.
  const auto seen = seen_.find(verdict.uid());
  const Item* item = Find(verdict.uid());
  if (item == nullptr || item->is_confirmed || !synced_) return;
  if (seen == seen_.end() || seen->second.id != verdict.runtime_id()) return;
  PendingDelete wanted;
  wanted.uid = verdict.uid();
  wanted.placement = item->entry.placement;
  wanted.kind = item->entry.kind;
  Execute(wanted);
}

void Host::HeartbeatSent(uint64_t number) { leases_.HeartbeatSent(number); }
void Host::Granted(uint64_t number, Duration ttl) { leases_.Granted(number, ttl); }

std::optional<std::string> Host::TakeBatch() {
  SayFacts();
  auto batch = outbox_.Take(loop_.Now());
  ArmEvents();
  return batch;
}

void Host::Ended(const Status& why) {
  (void)why;
  in_session_ = false;
  synced_ = false;
  tripped_ = false;
  held_deletes_.clear();
  pending_deletes_.clear();
  early_assigns_.clear();
  leases_.SessionEnded();
  outbox_.SessionEnded();
}

}  // namespace berth::poollet
