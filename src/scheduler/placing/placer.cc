// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/placer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "rt/chaos.h"

namespace berth::scheduler {
namespace {

// Attempts that one turn begins: 256 * 5 us keeps a turn near a millisecond.
constexpr size_t kBeginsPerTurn = 256;
// Parked objects that one change wakes at first; each success wakes two more.
constexpr size_t kWakeFirst = 64;

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
    refusals_.Forget(uid);
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
  is_room_freed_ = false;
  const std::vector<Change> changes = board_.TakeChanges();
  for (const std::string& uid : preemptor_.Ready(changes)) Unpark(uid);
  const auto makes_room = [](const Change& change) {
    return change.events != ToEvents(Event::kCompany);
  };
  if (std::ranges::any_of(changes, makes_room)) WakeGangs();
  // A host that comes back may have changed its mind, and a new pool may have an old index. Not for
  // room: an offer that was refused gives some back.
  std::vector<PoolIndex> came;
  for (const Change& change : changes) {
    if ((change.events & ToEvents(Event::kUsable)) != 0) came.push_back(change.pool);
  }
  refusals_.Reopen(came);
  if (changes.empty() || queue_.waiting_groups().empty()) return;
  std::vector<WaitGroup> helped;
  for (const auto& [group, count] : queue_.waiting_groups()) {
    const auto waiting = waiting_.find(group);
    if (waiting == waiting_.end()) continue;
    WaitingFor& what = waiting->second;
    const auto helps = [&](const Change& change) {
      return board_.Wakes(what.sample, what.waking, change);
    };
    if (std::ranges::any_of(changes, helps)) helped.push_back(group);
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
  if (is_room_freed_) OnBoardChanged();
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
  kept.request.refused = refusals_.Resume(*record, loop_.Now());
  DecideNext(kept);
}

void Placer::DecideNext(Attempt& attempt) {
  preemptor_.Lend(attempt.uid);
  Choose(attempt);
  if (decision_.ranked.empty()) return ParkUnschedulable(attempt);
  if (attempt.rounds >= options_.rounds_max) return GoOnLater(attempt);
  ++attempt.rounds;
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

void Placer::ParkUnschedulable(Attempt& attempt) {
  unschedulable_.Add();
  const std::string uid = attempt.uid;
  conflicts_.erase(uid);  // it waits for something else now
  const Request request = attempt.request;
  attempts_.erase(uid);
  const ObjectRecord* record = objects_.Find(uid);
  if (record == nullptr) return queue_.Done(uid);
  if (request.refused.empty()) {
    refusals_.Forget(uid);
  } else {
    refusals_.EndPass(uid);
  }
  reports_.FoundNone(uid);
  if (const std::optional<Time> until = preemptor_.MakeRoom(*record, request)) {
    // That its host gave the room back which this attempt asked it for is no news.
    if (preemptor_.KeepsOneOf(uid, request.refused)) return TryLater(uid);
    // Woken when the room is there, and not by what would help others of its shape.
    queue_.Park(uid, ++last_group_, *until);
    return Schedule();
  }
  // Hosts that said no may say yes soon, whatever the board believes.
  if (!request.refused.empty()) return TryLater(uid);
  // Whom it could stop may come at any time, and that is no change that would wake it.
  const Duration recheck = objects_.MayPreempt(*record)
                               ? std::min(options_.recheck, Preemptor::kLookAgain)
                               : options_.recheck;
  queue_.Park(uid, GroupOf(request), loop_.Now() + recheck);
  Schedule();
}

void Placer::GoOnLater(Attempt& attempt) {
  REACHED("scheduler.goes_on");
  unschedulable_.Add();
  const std::string uid = attempt.uid;
  const bool is_stuck = attempt.is_stuck;
  conflicts_.erase(uid);
  attempts_.erase(uid);
  reports_.FoundNone(uid);
  if (is_stuck) {
    // The next attempt would ask the same ones: rather everybody anew.
    refusals_.EndPass(uid);
    return TryLater(uid);
  }
  preemptor_.Restore(uid);
  const Duration pause =
      options_.go_on_first + options_.go_on_each * static_cast<int64_t>(refusals_.size());
  queue_.Pause(uid, loop_.Now() + std::min(pause, options_.go_on_max));
  Schedule();  // which sets the timer
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

void Placer::Drop(const std::string& uid) {
  const auto found = attempts_.find(uid);
  if (found == attempts_.end()) return;
  GiveHoldsBack(*found->second);
  FreeRoom(found->second->request);
  attempts_.erase(found);
}

void Placer::FreeRoom(const Request& request) {
  board_.ForgetAll(request);
  is_room_freed_ = true;
  Schedule();
}

}  // namespace berth::scheduler
