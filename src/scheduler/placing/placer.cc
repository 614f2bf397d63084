// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/placer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "rt/chaos.h"
#include "rt/deadline.h"
#include "scheduler/placing/explain_text.h"

namespace berth::scheduler {
namespace {

// Attempts that one turn begins: 256 * 5 us keeps a turn near a millisecond.
constexpr size_t kBeginsPerTurn = 256;
// Parked objects that one change wakes at first; each success wakes two more.
constexpr size_t kWakeFirst = 64;
// One conflict is somebody's edit, and the next try knows of it. So many in a row have a reason
// that its owner should know.
constexpr int kConflictsTold = 3;

}  // namespace

Placer::Placer(Deps deps, PlacerOptions options)
    : loop_(deps.loop),
      scope_(deps.scope),
      board_(deps.board),
      pools_(deps.pools),
      objects_(deps.objects),
      fleet_(deps.fleet),
      client_(deps.client),
      binder_(deps.binder),
      events_(deps.events),
      reports_(deps.reports),
      groups_(deps.groups),
      on_group_(std::move(deps.on_group)),
      options_(options),
      placed_(deps.metrics.GetCounter("berth_scheduler_placed_total", "Objects that were bound.")),
      refused_(deps.metrics.GetCounter("berth_scheduler_refused_total",
                                       "Offers that were refused or not answered.")),
      unschedulable_(deps.metrics.GetCounter("berth_scheduler_unschedulable_total",
                                             "Attempts that found no pool.")),
      bind_conflicts_(deps.metrics.GetCounter("berth_scheduler_bind_conflicts_total",
                                              "Bindings that something else was faster than.")),
      pending_(deps.metrics.GetGauge("berth_scheduler_pending", "Objects without a place.")),
      preemptor_(Preemptor::Deps{.loop = deps.loop,
                                 .scope = deps.scope,
                                 .board = deps.board,
                                 .pools = deps.pools,
                                 .objects = deps.objects,
                                 .client = deps.client,
                                 .events = deps.events,
                                 .metrics = deps.metrics,
                                 .try_again = [this](const std::string& uid) { Unpark(uid); }}) {}

Placer::~Placer() {
  *self_ = nullptr;
  loop_.CancelTimer(timer_);
}

void Placer::SetLeadership(std::optional<Leadership> leadership) {
  leadership_ = std::move(leadership);
  if (leadership_) {
    for (const client::ObjectKey& key : groups_.Keys()) ConsiderGroup(key);
    return Schedule();
  }
  if (gang_ && !gang_->is_binding) EndGang("", "");
  // Holds of a term that is over end by themselves; what is being bound fails on the term (S3c).
  std::vector<std::string> asking;
  for (const auto& [uid, attempt] : attempts_) {
    if (attempt->state != Attempt::State::kBinding) asking.push_back(uid);
  }
  for (const std::string& uid : asking) {
    Drop(uid);
    TryLater(uid);
  }
  // What was begun stands in the statuses.
  preemptor_.EndAll();
}

void Placer::Apply(const ObjectDirectory::Effects& effects) {
  for (const ObjectDirectory::GivenBack& given : effects.given_back) OnGivenBack(given);
  for (const std::string& uid : effects.settled) {
    const ObjectRecord* record = objects_.Find(uid);
    if (record != nullptr && objects_.WaitsWith(*record) != nullptr) {
      reports_.Waits(uid);
    } else {
      reports_.Forget(uid);
    }
    refusals_.erase(uid);
    conflicts_.erase(uid);
    if (record == nullptr) given_back_.Forget(uid);
    preemptor_.End(uid);
    queue_.Remove(uid);
    const auto found = attempts_.find(uid);
    if (found == attempts_.end()) continue;
    // A commit under way cannot be called back: its verdict ends the attempt.
    if (found->second->state == Attempt::State::kBinding) {
      found->second->is_given_up = true;
    } else if (found->second->in_gang) {
      EndGang("MembersChanged", "members changed while their hosts were asked");
    } else {
      Drop(uid);
    }
  }
  for (const std::string& uid : effects.wanting) {
    const ObjectRecord* record = objects_.Find(uid);
    CHECK(record != nullptr) << uid;
    queue_.Add({.uid = uid, .tenant = record->key.namespace_, .priority = record->priority});
  }
  pending_.Set(static_cast<double>(queue_.size()));
  OnBoardChanged();
  Schedule();
}

void Placer::OnBoardChanged() {
  const std::vector<Change> changes = board_.TakeChanges();
  for (const std::string& uid : preemptor_.Ready(changes)) Unpark(uid);
  const auto makes_room = [](const Change& change) {
    return change.events != ToEvents(Event::kCompany);
  };
  if (std::ranges::any_of(changes, makes_room)) WakeGangs();
  if (changes.empty() || queue_.waiting_groups().empty()) return;
  std::vector<WaitGroup> helped;
  for (const auto& [group, count] : queue_.waiting_groups()) {
    const auto waiting = waiting_.find(group);
    if (waiting == waiting_.end()) continue;
    const auto helps = [&](const Change& change) {
      const Events common = static_cast<Events>(change.events & waiting->second.waking);
      if (common == 0) return false;
      constexpr Events kAnywhere = ToEvents(Event::kCompany) | ToEvents(Event::kReservation);
      return (common & kAnywhere) != 0 || board_.Admits(waiting->second.sample, change.pool);
    };
    if (std::any_of(changes.begin(), changes.end(), helps)) helped.push_back(group);
  }
  for (const WaitGroup group : helped) queue_.Wake(group, kWakeFirst);
  if (!helped.empty()) Schedule();
}

void Placer::Unpark(const std::string& uid) {
  const ObjectRecord* record = objects_.Find(uid);
  if (record == nullptr || queue_.Find(uid) != SchedulingQueue::Place::kParked) return;
  queue_.Add({.uid = uid, .tenant = record->key.namespace_, .priority = record->priority});
  Schedule();
}

void Placer::OnGivenBack(const ObjectDirectory::GivenBack& given) {
  AvoidFor(given.pool, options_.avoid_failing);
  const ObjectRecord* record = objects_.Find(given.uid);
  if (record != nullptr) given_back_.Add(*record, given.pool, loop_.Now());
}

void Placer::AvoidFor(PoolIndex pool, Duration time) {
  // It may have been deleted while its host was asked.
  if (pools_.Find(pool) != nullptr) board_.Avoid(pool, loop_.Now() + time);
}

void Placer::Schedule() {
  if (is_scheduled_) return;
  is_scheduled_ = true;
  loop_.Post("scheduler.turn", [self = self_] {
    if (*self != nullptr) (*self)->Turn();
  });
}

void Placer::Turn() {
  is_scheduled_ = false;
  const Time now = loop_.Now();
  board_.AdvanceTo(now);
  queue_.Advance(now);
  if (!leadership_) return;
  for (size_t begun = 0; begun < kBeginsPerTurn && attempts_.size() < options_.attempts_max;
       ++begun) {
    const std::optional<std::string> uid = queue_.Pop();
    if (!uid) break;
    Begin(*uid);
  }
  StartGang();
  StartBinds();
  pending_.Set(static_cast<double>(queue_.size()));
  std::optional<Time> due = queue_.Advance(now);
  if (const std::optional<Time> gang = NextGang()) due = std::min(due.value_or(*gang), *gang);
  SetTimer(due);
  if (queue_.active() > 0 && attempts_.size() < options_.attempts_max) Schedule();
}

void Placer::SetTimer(std::optional<Time> due) {
  if (due == timer_due_) return;
  loop_.CancelTimer(timer_);
  timer_ = {};
  timer_due_ = due;
  if (!due) return;
  const Duration wait = std::max(*due - loop_.Now(), Duration());
  timer_ = loop_.After("scheduler.due", wait, [self = self_] {
    if (*self == nullptr) return;
    (*self)->timer_due_.reset();
    (*self)->Schedule();
  });
}

void Placer::Begin(const std::string& uid) {
  const ObjectRecord* record = objects_.Find(uid);
  if (record == nullptr || !objects_.NeedsPlace(*record)) return queue_.Done(uid);
  // An attempt whose commit is under way: its end puts the object back.
  if (attempts_.contains(uid)) return TryLater(uid);
  if (!groups_.GoesAlone(uid)) {
    // Its group takes it along, and looks for room of its own.
    reports_.Waits(uid);
    preemptor_.End(uid);
    if (const auto gang = gangs_.find(*groups_.GroupOf(uid)); gang != gangs_.end()) {
      gang->second.due = std::min(gang->second.due, loop_.Now() + kGangPauseFirst);
    }
    return queue_.Done(uid);
  }
  std::variant<Ask, NotYet> prepared = objects_.Prepare(*record);
  if (std::holds_alternative<NotYet>(prepared)) {
    // It waits for an object, not for a pool: a change of that object brings it back. Room that is
    // kept for it could go on being kept for ever.
    reports_.Waits(uid);
    preemptor_.End(uid);
    return queue_.Done(uid);
  }
  Ask& ask = std::get<Ask>(prepared);
  auto attempt = std::make_unique<Attempt>();
  attempt->uid = uid;
  attempt->request = std::move(ask.request);
  attempt->left = ask.left;
  for (const ObjectRecord* volume : ask.joint) attempt->joint.push_back(volume->uid);
  if (const std::string planned = groups_.PlannedPoolOf(uid); !planned.empty()) {
    const PoolEntry* pool = pools_.FindByName(PoolKind::kMachine, planned);
    if (pool != nullptr && !attempt->request.pinned) attempt->planned = pool->index;
  }
  Attempt& kept = *attempt;
  attempts_.emplace(uid, std::move(attempt));
  preemptor_.Lift(*record, kept.request);
  DecideNext(kept);
}

void Placer::DecideNext(Attempt& attempt) {
  if (attempt.rounds >= options_.rounds_max) return ParkUnschedulable(attempt);
  ++attempt.rounds;
  preemptor_.Lend(attempt.uid);
  Choose(attempt);
  if (decision_.ranked.empty()) return ParkUnschedulable(attempt);
  attempt.candidate = decision_.ranked.front();
  const ObjectRecord* record = objects_.Find(attempt.uid);
  const Time until =
      record == nullptr ? Time() : given_back_.ReturnTime(*record, attempt.candidate.pool);
  if (until > loop_.Now()) {
    REACHED("scheduler.given_back");
    const std::string uid = attempt.uid;
    attempts_.erase(uid);
    preemptor_.Restore(uid);
    queue_.Pause(uid, until);
    return Schedule();  // which sets the timer
  }
  preemptor_.Asks(attempt.uid, attempt.candidate.pool);
  const AssumeVerdict verdict = board_.Assume(attempt.request, attempt.candidate);
  if (verdict != AssumeVerdict::kAssumed) {
    // Its volume is on its way with another machine, or the store has just placed it.
    REACHED("scheduler.assume_lost");
    const std::string uid = attempt.uid;
    attempts_.erase(uid);
    reports_.Waits(uid);
    return TryLater(uid);
  }
  AskHosts(attempt);
  // Where one of a kind found room, more may.
  if (const auto group = wait_groups_.find(attempt.request.shape); group != wait_groups_.end()) {
    queue_.Wake(group->second, 2);
  }
}

void Placer::Choose(Attempt& attempt) {
  if (attempt.planned) {
    REACHED("gang.rolled_forward");
    attempt.request.pinned = std::exchange(attempt.planned, std::nullopt);
    board_.Decide(attempt.request, 1, decision_);
    attempt.request.pinned.reset();
    if (!decision_.ranked.empty()) return;
  }
  if (attempt.left) attempt.request.refused.push_back(*attempt.left);
  board_.Decide(attempt.request, 1, decision_);
  if (!attempt.left) return;
  attempt.request.refused.pop_back();
  if (!decision_.ranked.empty()) return;
  attempt.left.reset();
  board_.Decide(attempt.request, 1, decision_);
}

void Placer::AskHosts(Attempt& attempt) {
  attempt.state = Attempt::State::kAsking;
  attempt.asked = loop_.Now();
  attempt.hosts.clear();
  std::vector<fleet::Offer> offers = OffersFor(attempt,
                                               objects_,
                                               pools_,
                                               static_cast<uint64_t>(leadership_->term),
                                               last_offer_,
                                               options_.hold_ttl);
  for (const fleet::Offer& offer : offers) {
    attempt.hosts.push_back({.pool_uid = offer.item.pool_uid,
                             .pool = pools_.FindByUid(offer.item.pool_uid)->index,
                             .offer = offer.id});
  }
  if (offers.empty()) return MakeReady(attempt);  // API mode: nobody to ask
  for (fleet::Offer& offer : offers) {
    const std::string pool_uid = offer.item.pool_uid;
    fleet_.Ask(
        std::move(offer),
        options_.answer_limit,
        [self = self_, fleet = &fleet_, uid = attempt.uid, pool_uid](const fleet::Answer& answer) {
          if (*self != nullptr) return (*self)->OnAnswer(uid, answer);
          if (answer.verdict == fleet::Answer::Verdict::kAccepted) {
            fleet->Release(pool_uid, answer.id);
          }
        });
  }
}

void Placer::OnAnswer(const std::string& uid, const fleet::Answer& answer) {
  const auto found = attempts_.find(uid);
  HostAsked* host = nullptr;
  if (found != attempts_.end()) {
    for (HostAsked& asked : found->second->hosts) {
      if (asked.offer == answer.id) host = &asked;
    }
  }
  // The attempt went on without this answer; Drop and TryNext have given the hold back.
  if (host == nullptr || host->said != HostAsked::Said::kNothing) return;
  Attempt& attempt = *found->second;
  if (answer.verdict != fleet::Answer::Verdict::kAccepted) {
    host->said = HostAsked::Said::kNo;
    return Refused(attempt, *host, answer);
  }
  host->said = HostAsked::Said::kYes;
  board_.Held(attempt.request.key, VersionOf(answer.ledger));
  for (const Request& joint : attempt.request.joint) {
    board_.Held(joint.key, VersionOf(answer.ledger));
  }
  const bool all = std::all_of(attempt.hosts.begin(), attempt.hosts.end(), [](const auto& asked) {
    return asked.said == HostAsked::Said::kYes;
  });
  if (all) MakeReady(attempt);
}

void Placer::Refused(Attempt& attempt, const HostAsked& host, const fleet::Answer& answer) {
  refused_.Add();
  const PoolEntry* pool = pools_.Find(host.pool);
  Refusal refusal;
  refusal.pool = pool == nullptr ? host.pool_uid : pool->pool.spec.name;
  if (answer.verdict == fleet::Answer::Verdict::kNoAnswer) {
    REACHED("scheduler.no_answer");
    refusal.reason = answer.reason.empty() ? "NoAnswer" : answer.reason;
    AvoidFor(host.pool, options_.avoid_silent);
  } else if (answer.verdict == fleet::Answer::Verdict::kAlreadyHere) {
    // The host has it at another placement: the store will say how that came (S4).
    REACHED("scheduler.already_here");
    refusal.reason = "AlreadyHere";
  } else {
    REACHED("scheduler.refused");
    refusal.reason = answer.reason.empty() ? "Refused" : answer.reason;
    refusal.message = answer.message;
  }
  TryNext(attempt, host.pool, std::move(refusal));
}

void Placer::TryNext(Attempt& attempt, PoolIndex refused, Refusal refusal) {
  if (attempt.in_gang) return GangRefused(attempt, refused, std::move(refusal));
  GiveHoldsBack(attempt);
  board_.ForgetAll(attempt.request);
  attempt.request.refused.push_back(refused);
  attempt.refusals.push_back(std::move(refusal));
  const std::string uid = attempt.uid;
  const ObjectRecord* record = objects_.Find(uid);
  if (attempt.is_given_up || !leadership_ || record == nullptr || !objects_.NeedsPlace(*record)) {
    attempts_.erase(uid);
    return TryLater(uid);
  }
  DecideNext(attempt);
}

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
  refusals_.erase(uid);
  preemptor_.End(uid);
  attempts_.erase(uid);
  queue_.Done(uid);
}

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

void Placer::ParkUnschedulable(Attempt& attempt) {
  unschedulable_.Add();
  const std::string uid = attempt.uid;
  conflicts_.erase(uid);  // it waits for something else now
  const Request request = attempt.request;
  const std::vector<Refusal> refusals = std::move(attempt.refusals);
  attempts_.erase(uid);
  const ObjectRecord* record = objects_.Find(uid);
  if (record == nullptr) return queue_.Done(uid);
  if (refusals.empty()) {
    refusals_.erase(uid);
  } else {
    refusals_.insert_or_assign(uid, refusals);
  }
  reports_.Waits(uid);
  if (const std::optional<Time> until = preemptor_.MakeRoom(*record, request)) {
    // Woken when the room is there, and not by what would help others of its shape.
    queue_.Park(uid, ++last_group_, *until);
    return Schedule();
  }
  // Hosts that said no may say yes soon, whatever the board believes.
  if (!refusals.empty()) return TryLater(uid);
  // Whom it could stop may come at any time, and that is no change that would wake it.
  const Duration recheck = objects_.MayPreempt(*record)
                               ? std::min(options_.recheck, Preemptor::kLookAgain)
                               : options_.recheck;
  queue_.Park(uid, GroupOf(request), loop_.Now() + recheck);
  Schedule();
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
  } else if (!groups_.GoesAlone(uid)) {
    ExplainMember(*groups_.GroupOf(uid), pending);
  } else if (const std::string accepted = BindingPoolOf(uid); !accepted.empty()) {
    pending.reason = "Binding";
    pending.reasons = pending.reason;
    pending.message = "pool " + accepted + " has accepted it, and the binding is not written yet";
  } else if (const ObjectRecord* volume = BeingBoundOf(std::get<Ask>(prepared))) {
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
    pending = DescribePending(
        board_.Explain(std::get<Ask>(prepared).request, 1), RefusalsOf(uid), pools_);
    pending.kind = record->kind;
    pending.key = record->key;
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

WaitGroup Placer::GroupOf(const Request& request) {
  // Groups that nobody waits in are forgotten now and then.
  if (waiting_.size() > 2 * queue_.waiting_groups().size() + 64) {
    std::erase_if(waiting_, [this](const auto& entry) {
      return !queue_.waiting_groups().contains(entry.first);
    });
    std::erase_if(wait_groups_,
                  [this](const auto& entry) { return !waiting_.contains(entry.second); });
  }
  const bool is_plain = !request.pinned && request.among.empty() && request.joint.empty() &&
                        request.bound_volumes.empty() && request.reservation.empty();
  WaitGroup group = 0;
  if (is_plain) {
    const auto [place, is_new] = wait_groups_.try_emplace(request.shape, last_group_ + 1);
    if (is_new) ++last_group_;
    group = place->second;
  } else {
    group = ++last_group_;
  }
  WaitingFor& waiting = waiting_[group];
  waiting.sample = request;
  waiting.sample.refused.clear();
  waiting.waking = board_.WakingEvents(waiting.sample);
  return group;
}

void Placer::TryLater(const std::string& uid) {
  preemptor_.Restore(uid);
  queue_.Backoff(uid, loop_.Now());
  Schedule();  // which sets the timer
}

void Placer::GiveHoldsBack(Attempt& attempt) {
  for (const HostAsked& host : attempt.hosts) {
    // Of an offer without an answer there may be a hold as well; the fleet releases it when the
    // answer comes (S6), and a release that comes first does no harm.
    if (host.said != HostAsked::Said::kNo) fleet_.Release(host.pool_uid, host.offer);
  }
  attempt.hosts.clear();
}

void Placer::Drop(const std::string& uid) {
  const auto found = attempts_.find(uid);
  if (found == attempts_.end()) return;
  GiveHoldsBack(*found->second);
  board_.ForgetAll(found->second->request);
  attempts_.erase(found);
}

}  // namespace berth::scheduler
