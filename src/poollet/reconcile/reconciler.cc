// SPDX-License-Identifier: Apache-2.0
#include "poollet/reconcile/reconciler.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rt/deadline.h"

namespace berth::poollet {
namespace {

using Kind = Step::Kind;

// A pass that needs more steps than any object has is going in circles.
constexpr int kStepsMax = 100;
// So many lists in a row without an object that was there: it is gone, if the runtime cannot be
// asked for it by its id.
constexpr int kMissesMax = 4;
// The same for what came of a create that nobody answered: it has no id to be asked for.
constexpr int kNamelessMissesMax = 8;
// A guest that ran this long is healthy: its next failure is its first.
constexpr Duration kHealthyAfter = Duration::Minutes(10);

bool IsOutcomeUnknown(const Status& status) {
  return status.Is(Reason::kUnavailable) || status.Is(Reason::kTimeout) ||
         status.Is(Reason::kCancelled);
}

}  // namespace

Reconciler::Reconciler(rt::Loop& loop, Owner& owner, ReconcileOptions options)
    : loop_(loop), owner_(owner), options_(options), gate_(options.concurrency), scope_(loop) {}

Reconciler::~Reconciler() {
  for (auto& [_, item] : items_) {
    if (item.timer.has_value()) loop_.CancelTimer(*item.timer);
  }
}

void Reconciler::SetPort(fleet::ObjectKind kind, Port port) {
  ports_.insert_or_assign(kind, std::move(port));
}

const Reconciler::Port* Reconciler::PortOf(fleet::ObjectKind kind) const {
  const auto found = ports_.find(kind);
  return found == ports_.end() || found->second.driver == nullptr ? nullptr : &found->second;
}

Reconciler::Item* Reconciler::Find(const std::string& uid) {
  const auto found = items_.find(uid);
  return found == items_.end() ? nullptr : &found->second;
}

void Reconciler::Put(Target target) {
  const std::string uid = target.desired->uid;
  const auto [place, is_new] = items_.try_emplace(uid);
  Item& item = place->second;
  const bool began = is_new && target.create_begun;
  if (is_new && !target.runtime_id.empty()) {
    item.known[target.runtime_id] = {.object = {.id = target.runtime_id}};
  }
  item.target = std::move(target);
  ++item.version;
  item.backoff.Reset();
  item.create_refusals = 0;
  // A create of a former life of this process: what came of it may still show.
  if (began) {
    item.create_unknown_until = loop_.Now() + options_.create_settle;
    item.create_sent = true;
    if (item.known.empty()) item.nameless = 1;
  }
  Kick(uid);
}

void Reconciler::Drop(const std::string& uid) {
  Item* item = Find(uid);
  if (item == nullptr) return;
  if (item->timer.has_value()) loop_.CancelTimer(*item->timer);
  items_.erase(uid);  // a task that works on it finds nothing and ends
}

void Reconciler::Kick(const std::string& uid) {
  Item* item = Find(uid);
  if (item == nullptr) return;
  if (working_.contains(uid)) {
    item->dirty = true;
    return;
  }
  Start(uid, *item);
}

void Reconciler::KickAll() {
  for (const auto& [uid, _] : items_) Kick(uid);
}

void Reconciler::ReportAgain(const std::string& uid) {
  const Item* item = Find(uid);
  if (item != nullptr && item->reported.has_value()) owner_.Reported(*item->reported);
}

void Reconciler::ReportAnew(const std::string& uid) {
  if (Item* item = Find(uid); item != nullptr) item->reported.reset();
}

void Reconciler::Start(const std::string& uid, Item& item) {
  if (item.timer.has_value()) loop_.CancelTimer(*item.timer);
  item.timer.reset();
  working_.insert(uid);
  scope_.Spawn("poollet.reconcile", Work(uid));
}

void Reconciler::Later(const std::string& uid, Item& item, Duration delay) {
  if (item.timer.has_value()) loop_.CancelTimer(*item.timer);
  item.timer = loop_.After("poollet.reconcile.later", delay, [this, uid] {
    if (Item* due = Find(uid); due != nullptr) {
      due->timer.reset();
      Kick(uid);
    }
  });
}

void Reconciler::RetryLater(const std::string& uid, Item& item, const Status& status) {
  item.error = status.message();
  Later(uid, item, item.backoff.Next(loop_.random()));
}

rt::Task<Status> Reconciler::Work(std::string uid) {
  rt::Context& context = co_await rt::CurrentContext();
  const auto permit = co_await gate_.Enter();
  for (int steps = 0; steps < kStepsMax && !context.cancelled(); ++steps) {
    Item* item = Find(uid);
    if (item == nullptr) break;
    item->dirty = false;
    const Pass pass = co_await Look(uid);
    item = Find(uid);
    if (item == nullptr || (pass == Pass::kDone && !item->dirty)) break;
  }
  working_.erase(uid);
  if (context.cancelled()) co_return Cancelled();
  Item* item = Find(uid);
  if (item != nullptr && item->dirty && !item->timer.has_value()) {
    Later(uid, *item, options_.relist);
  }
  co_return OkStatus();
}

Situation Reconciler::SituationOf(const Item& item, const Port& port) const {
  const Time now = loop_.Now();
  Situation situation;
  situation.create_is_idempotent = port.is_idempotent;
  situation.create_unknown =
      item.create_unknown_until.has_value() && now < *item.create_unknown_until;
  situation.create_repeated = item.create_sent;
  situation.has_lease = owner_.HasLease(item.target.desired->uid);
  situation.may_restart = now >= item.restart_at;
  situation.secrets_missing = item.target.secrets_missing;
  situation.was_available = item.target.was_available;
  situation.storage_allowed = item.target.storage_allowed;
  return situation;
}

void Reconciler::Report(Item& item, const Port& port, const Observation& observed, Step step) {
  Progress progress;
  progress.step = std::move(step);
  progress.error = item.error;
  progress.runtime = port.runtime_name;
  if (item.target.phase == Phase::kRemoving) progress.phase = Progress::Phase::kRemoving;
  progress.secrets_missing = item.target.secrets_missing;
  progress.is_armed = owner_.IsArmed(item.target.desired->uid);
  ObjectReport report = port.driver->Report(*item.target.desired, observed, progress);
  const std::string uid = report.uid;
  const bool holds_data = report.state == "Available" || report.state == "Ready";
  if (holds_data && !item.target.was_available) {
    item.target.was_available = true;
    owner_.BecameAvailable(uid);
  }
  if (item.reported == report) return;
  item.reported = report;
  owner_.Reported(std::move(report));
}

rt::Task<Reconciler::Pass> Reconciler::Look(std::string uid) {
  Item* item = Find(uid);
  const Port* port = PortOf(item->target.desired->kind);
  if (port == nullptr) co_return Pass::kDone;  // the runtime is not there: nothing can be known
  auto looked =
      co_await rt::WithDeadline(port->driver->Observe(uid, cluster_id_), options_.call_limit);
  item = Find(uid);
  if (item == nullptr) co_return Pass::kDone;
  if (!looked.ok()) {
    if (!looked.status().Is(Reason::kCancelled)) {
      RetryLater(uid, *item, looked.status().Wrap("list"));
    }
    co_return Pass::kDone;
  }
  auto observed = std::make_shared<const Observation>(*std::move(looked));
  if (item->target.phase == Phase::kAssigned) {
    const Status given = co_await GivePullSecret(uid, observed);
    item = Find(uid);
    if (item == nullptr) co_return Pass::kDone;
    port = PortOf(item->target.desired->kind);
    if (!given.ok() || port == nullptr) {
      if (!given.Is(Reason::kCancelled)) RetryLater(uid, *item, given.Wrap("image pull secret"));
      co_return Pass::kDone;
    }
  }
  const auto objects = observed->AsRuntimeObjects();
  NoteListed(*item, objects);
  if (!objects.empty()) {
    item->create_refusals = 0;
    // What was on its way has come, and there is never a second one.
    if (port->is_idempotent) item->create_unknown_until.reset();
  }
  const Situation situation = SituationOf(*item, *port);
  Step step = item->target.phase == Phase::kRemoving
                  ? NextRemovalStep(objects, situation)
                  : port->driver->Next(*item->target.desired, *observed, situation);
  const bool starts = step.kind == Kind::kCreate || step.kind == Kind::kPowerOn;
  const bool is_in_doubt = starts || objects.empty();
  if (item->target.phase == Phase::kAssigned && is_in_doubt && MayBeHidden(*item)) {
    const uint64_t version = item->version;
    const bool is_gone = co_await IsGone(uid);
    item = Find(uid);
    if (item == nullptr) co_return Pass::kDone;
    if (item->version != version) co_return Pass::kAgain;
    port = PortOf(item->target.desired->kind);
    if (!is_gone || port == nullptr) co_return AwaitHidden(uid, *observed);
  }
  Report(*item, *port, *observed, step);
  switch (step.kind) {
    case Kind::kSettled:
    case Kind::kWait:
    case Kind::kStuck: co_return Idle(uid, *item, step);
    case Kind::kGone: co_return co_await Finish(uid);
    default:
      NoteRestart(*item, step, *observed);
      co_return co_await Act(uid, std::move(step), std::move(observed));
  }
}

rt::Task<Status> Reconciler::GivePullSecret(std::string uid,
                                            std::shared_ptr<const Observation> observed) {
  const auto desired = Find(uid)->target.desired;
  const Port* port = PortOf(desired->kind);
  if (port->host == nullptr) co_return OkStatus();
  iri::PullSecret secret;
  secret.uid = uid;
  secret.docker_config = port->driver->PullSecretFor(*desired, *observed);
  if (secret.docker_config.empty()) co_return OkStatus();
  const Status given =
      co_await rt::WithDeadline(port->host->SetPullSecret(std::move(secret)), options_.call_limit);
  // One that knows nothing of them has credentials of its own, or the image tells.
  co_return given.Is(Reason::kMethodNotSupported) ? OkStatus() : given;
}

void Reconciler::NoteListed(Item& item, const std::vector<RuntimeObject>& objects) {
  for (auto& [_, known] : item.known) ++known.misses;
  ++item.nameless_misses;
  for (const auto& object : objects) {
    const bool is_new = item.known.insert_or_assign(object.id, Known{.object = object}).second;
    if (!is_new || item.nameless == 0) continue;
    --item.nameless;  // that is what was made
    item.nameless_misses = 0;
  }
}

// A list may leave something out. Starting another copy because of that would be the worst answer.
bool Reconciler::MayBeHidden(const Item& item) {
  const auto is_missing = [](const auto& known) { return known.second.misses > 0; };
  return item.nameless > 0 || std::ranges::any_of(item.known, is_missing);
}

rt::Task<bool> Reconciler::IsGone(std::string uid) {
  Item* item = Find(uid);
  std::vector<Known> missing;
  for (const auto& [_, known] : item->known) {
    if (known.misses > 0) missing.push_back(known);
  }
  for (const Known& known : missing) {
    const Port* port = PortOf(item->target.desired->kind);
    if (port == nullptr) co_return false;
    rt::Task<Status> call = port->driver->Ask(known.object, item->target.desired);
    const Status asked = co_await rt::WithDeadline(std::move(call), options_.call_limit);
    item = Find(uid);
    if (item == nullptr) co_return false;
    const bool lists_count = asked.Is(Reason::kMethodNotSupported) && known.misses >= kMissesMax;
    if (asked.Is(Reason::kNotFound) || lists_count) item->known.erase(known.object.id);
  }
  if (item->nameless_misses >= kNamelessMissesMax) item->nameless = 0;
  co_return !MayBeHidden(*item);
}

// 6.4: nothing is guessed. What the runtime has and does not show stays the only one.
Reconciler::Pass Reconciler::AwaitHidden(const std::string& uid, const Observation& observed) {
  Item& item = *Find(uid);
  const Port* port = PortOf(item.target.desired->kind);
  const auto hidden = std::ranges::find_if(
      item.known, [](const auto& known) { return known.second.misses > kMissesMax; });
  if (port == nullptr || hidden == item.known.end()) {
    Later(uid, item, options_.relist / 5);
    return Pass::kDone;
  }
  Step step;
  step.kind = Kind::kWait;
  step.reason = "NotListed";
  step.message = fmt::format(
      "the runtime does not list {}, and does not say that it is gone: nothing is started beside "
      "it",
      hidden->first);
  Report(item, *port, observed, std::move(step));
  Later(uid, item, options_.relist);
  return Pass::kDone;
}

Reconciler::Pass Reconciler::Idle(const std::string& uid, Item& item, const Step& step) {
  item.backoff.Reset();
  item.error.clear();
  if (step.kind == Kind::kStuck) Later(uid, item, options_.stuck_recheck);
  if (step.kind != Kind::kWait) return Pass::kDone;
  if (step.reason == "RestartBackoff") {
    Later(uid, item, std::max(item.restart_at - loop_.Now(), Duration::Millis(1)));
  } else if (step.reason == "Deleting" || step.reason == "RemovingSurplus" ||
             step.reason == "CreateOutcomeUnknown" || step.reason == "DeletedByOthers") {
    Later(uid, item, options_.relist);
  } else {
    // What it waits for comes with a message; a look now and then costs little.
    Later(uid, item, options_.stuck_recheck);
  }
  return Pass::kDone;
}

void Reconciler::NoteRestart(Item& item, const Step& step, const Observation& observed) {
  if (step.kind != Kind::kPowerOn) return;
  const auto* machines = std::get_if<std::vector<iri::Machine>>(&observed.objects);
  if (machines == nullptr || machines->empty()) return;
  if (DeathOf(machines->front()) != Death::kFailed) return;
  const Time now = loop_.Now();
  // The first failure is answered at once; the pauses after that double.
  if (item.restart_pause == Duration() || now > item.restart_at + kHealthyAfter) {
    item.restart_pause = options_.restart_first;
  } else {
    item.restart_pause = std::min(item.restart_pause * 2, options_.restart_max);
  }
  item.restart_at = now + item.restart_pause;
}

rt::Task<Status> Reconciler::Prepare(std::string uid, Step step) {
  const Item* item = Find(uid);
  const auto desired = item->target.desired;
  const auto* machine = std::get_if<DesiredMachine>(&desired->body);
  const bool starts = step.kind == Kind::kCreate || step.kind == Kind::kPowerOn;
  if (starts && machine != nullptr && machine->moves) CO_TRY_STATUS(co_await owner_.Cover(uid));
  // Also where creates are idempotent: one that is on its way when we die may come after the next
  // life has looked for it and found nothing.
  if (step.kind == Kind::kCreate) CO_TRY_STATUS(co_await owner_.CreateBegins(uid));
  const Port* port = PortOf(desired->kind);
  if (step.kind == Kind::kPowerOn && port != nullptr && !port->is_idempotent) {
    CO_TRY_STATUS(co_await owner_.StartBegins(uid, step.id));
  }
  co_return OkStatus();
}

rt::Task<Reconciler::Pass> Reconciler::Act(std::string uid,
                                           Step step,
                                           std::shared_ptr<const Observation> observed) {
  Item* item = Find(uid);
  const uint64_t version = item->version;
  const Status prepared = co_await Prepare(uid, step);
  item = Find(uid);
  if (item == nullptr || prepared.Is(Reason::kCancelled)) co_return Pass::kDone;
  if (!prepared.ok()) {
    RetryLater(uid, *item, prepared);
    co_return Pass::kDone;
  }
  if (item->version != version) co_return Pass::kAgain;  // the wishes are other ones by now
  const Status status = co_await Carry(uid, step, std::move(observed));
  co_return Judge(uid, step, status);
}

rt::Task<Status> Reconciler::Carry(std::string uid,
                                   Step step,
                                   std::shared_ptr<const Observation> observed) {
  Item* item = Find(uid);
  const auto desired = item->target.desired;
  Driver& driver = *PortOf(desired->kind)->driver;
  if (step.kind != Kind::kCreate) {
    rt::Task<Status> call = step.kind == Kind::kDelete
                                ? driver.Delete(step.id)
                                : driver.Perform(step, desired, std::move(observed));
    co_return co_await rt::WithDeadline(std::move(call), options_.call_limit);
  }
  item->create_unknown_until = loop_.Now() + options_.create_settle;
  rt::Task<Result<std::string>> call =
      driver.Create(desired, SituationOf(*item, *PortOf(desired->kind)));
  const Result<std::string> made = co_await rt::WithDeadline(std::move(call), options_.call_limit);
  item = Find(uid);
  if (item == nullptr) co_return made.status();
  // A list may not have it yet.
  if (made.ok()) item->known[*made] = {.object = {.id = *made}};
  if (made.ok() || IsOutcomeUnknown(made.status())) item->create_sent = true;
  if (IsOutcomeUnknown(made.status())) {
    ++item->nameless;
    item->nameless_misses = 0;
  }
  co_return made.status();
}

Reconciler::Pass Reconciler::Judge(const std::string& uid, const Step& step, const Status& status) {
  Item* item = Find(uid);
  if (item == nullptr || status.Is(Reason::kCancelled)) return Pass::kDone;
  const bool creates = step.kind == Kind::kCreate;
  if (creates && !IsOutcomeUnknown(status)) item->create_unknown_until.reset();
  const bool vanished = step.kind == Kind::kDelete && status.Is(Reason::kNotFound);
  if (status.ok() || vanished) {
    item->error.clear();
    item->backoff.Reset();
    if (vanished) item->known.erase(step.id);
    return Pass::kAgain;
  }
  if (creates && !IsOutcomeUnknown(status) && item->target.phase == Phase::kAssigned &&
      item->known.empty() && ++item->create_refusals >= options_.create_attempts) {
    const std::string text(status.message());
    owner_.Refused(uid, std::string(ReasonName(status.reason())), text);
    return Pass::kDone;
  }
  RetryLater(uid, *item, status);
  return Pass::kDone;
}

// A list may leave something out: what was seen once is gone only when the runtime says so by id.
rt::Task<Reconciler::Pass> Reconciler::Finish(std::string uid) {
  while (true) {
    Item* item = Find(uid);
    if (item == nullptr) co_return Pass::kDone;
    if (item->target.phase != Phase::kRemoving) co_return Pass::kAgain;
    if (item->known.empty()) break;
    const std::string id = item->known.begin()->first;
    const Port* port = PortOf(item->target.desired->kind);
    const Status status = co_await rt::WithDeadline(port->driver->Delete(id), options_.call_limit);
    item = Find(uid);
    if (item == nullptr || status.Is(Reason::kCancelled)) co_return Pass::kDone;
    if (!status.ok() && !status.Is(Reason::kNotFound)) {
      RetryLater(uid, *item, status);
      co_return Pass::kDone;
    }
    if (status.ok()) {
      Later(uid, *item, options_.relist);
      co_return Pass::kDone;
    }
    item->known.erase(id);
  }
  owner_.Removed(uid);
  co_return Pass::kDone;
}

rt::Task<Status> Reconciler::Close() {
  for (auto& [_, item] : items_) {
    if (item.timer.has_value()) loop_.CancelTimer(*item.timer);
    item.timer.reset();
  }
  CO_TRY_STATUS(co_await scope_.Close());
  for (auto& [_, item] : items_) {
    if (item.timer.has_value()) loop_.CancelTimer(*item.timer);
    item.timer.reset();
  }
  co_return OkStatus();
}

}  // namespace berth::poollet
