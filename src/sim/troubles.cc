// SPDX-License-Identifier: Apache-2.0
#include "sim/troubles.h"

#include <fmt/format.h>

#include <cmath>

#include "apis/compute/machine_pool.h"
#include "iri/labels.h"

namespace berth::sim {

using apis::compute::kMachinePoolKind;

namespace {

// A leader that is away for longer has lost its lease by everybody's clock.
constexpr Duration kLosesTheLease = Duration::Millis(3500);

}  // namespace

std::string Troubles::NameOf(const std::string& uid) const {
  const PlacedFact* fact = world_.truth().Find(uid);
  return fact == nullptr ? uid : fact->key.name;
}

bool Troubles::IsProbe(const std::string& uid) const {
  const PlacedFact* fact = world_.truth().Find(uid);
  return fact != nullptr && sim::IsProbe(*fact);
}

bool Troubles::IsInGroup(const std::string& uid) const {
  const PlacedFact* fact = world_.truth().Find(uid);
  return fact != nullptr && !fact->group.empty();
}

bool Troubles::HasCopy(HostProcess& host, const std::string& uid) {
  for (const auto& [id, machine] : host.state().machines()) {
    if (iri::LabelOf(machine.object.metadata, iri::kMachineUidLabel) == uid) return true;
  }
  return false;
}

void Troubles::Begin() {
  is_on_ = true;
  const Scenario& scenario = world_.scenario();
  world_.SetFaults({.refuse = scenario.store_refuses,
                    .lose_answer = scenario.store_answer_lost,
                    .delay = scenario.store_slow,
                    .delay_max = Duration::Millis(100),
                    .end_watch = scenario.store_watch_lost});
  for (const auto& host : world_.hosts()) {
    host->state().options().faults = {.call_fails = scenario.runtime_call_fails,
                                      .create_fails = scenario.create_fails,
                                      .create_answer_lost = scenario.create_answer_lost,
                                      .answer_lost = scenario.answer_lost,
                                      .boot_fails = scenario.boot_fails,
                                      .delete_sticks = scenario.delete_sticks,
                                      .crashes_per_hour = 0};
  }
  Repeat(scenario.server_crash, &Troubles::CrashServerNow);
  Repeat(scenario.poollet_crash, &Troubles::CrashSomePoollet);
  Repeat(scenario.poollet_gone, &Troubles::LoseSomePoollet);
  Repeat(scenario.power_cut, &Troubles::CutSomePower);
  Repeat(scenario.pause_poollet, &Troubles::PauseSomePoollet);
  Repeat(scenario.pause_server, &Troubles::PauseServer);
  Repeat(scenario.cut_server, &Troubles::CutServer);
  Repeat(scenario.partition, &Troubles::CutOffSome);
  Repeat(scenario.slow_link, &Troubles::SlowSomeLink);
  Repeat(scenario.drop_connection, &Troubles::DropSomeConnection);
  Repeat(scenario.runtime_crash, &Troubles::CrashSomeRuntime);
  Repeat(scenario.runtime_lies, &Troubles::LetSomeRuntimeLie);
  Repeat(scenario.disk_fails, &Troubles::FailSomeDisk);
  Repeat(scenario.second_leader, &Troubles::SecondLeader);
  Repeat(scenario.restore_backup * 2, &Troubles::Backup);
  Repeat(scenario.restore_backup, &Troubles::Restore);
  Repeat(scenario.pool_reborn, &Troubles::RebirthOfAPool);
  Repeat(scenario.host_drains, &Troubles::DrainSomeHost);
  Repeat(scenario.host_stops, &Troubles::StopSomeHost);
  world_.At(Duration::Seconds(1), [this] { Look(); });
}

void Troubles::End() {
  is_on_ = false;
  world_.Say("no more faults");
  world_.SetFaults({});
  world_.network().HealAll();
  cut_off_.clear();
  world_.ServersAreDisturbed();
  for (const auto& seat : world_.seats()) {
    seat->link.Heal();
    seat->is_isolated = false;
    if (seat->loop.paused()) seat->loop.Resume();
  }
  for (const auto& host : world_.hosts()) {
    host->state().options().faults = {};
    BeHonest(*host);
    if (host->loop().paused()) host->loop().Resume();
    host->disk().FailWrites(OkStatus());
    host->fake().Restart();
    world_.Trouble(*host);
    if (host->is_leaving()) world_.KillHost(*host, net::CrashStyle::kReset);
    if (!IsGone(*host)) world_.StartHost(*host);
  }
  for (const auto& seat : world_.seats()) {
    if (seat->process == nullptr) world_.StartServer(*seat);
  }
  if (world_.incarnation() > 1) world_.At(Duration::Seconds(5), [this] { TurnOffGone(); });
}

// What was restored waits for every host; an operator turns off the ones that are lost, and says
// so.
void Troubles::TurnOffGone() {
  for (const size_t index : gone_) {
    HostProcess& host = *world_.hosts()[index];
    TurnOff(host);
    users_.SayOff(host.pools());
  }
}

void Troubles::TurnOff(HostProcess& host) {
  host.state().PowerCut(host.fake().clock());
  host.fake().Crash();
}

void Troubles::Repeat(double per_minute, void (Troubles::*act)()) {
  if (per_minute <= 0) return;
  const double minutes = -std::log(1 - random_.Unit()) / per_minute;
  world_.At(Duration::Millis(static_cast<int64_t>(minutes * 60'000) + 1), [this, per_minute, act] {
    if (!is_on_) return;
    (this->*act)();
    Repeat(per_minute, act);
  });
}

// One that runs and is not in trouble already; null if there is none.
HostProcess* Troubles::PickHost() {
  std::vector<HostProcess*> found;
  for (const auto& host : world_.hosts()) {
    const bool is_there = host->is_up() && !host->has_left();
    if (is_there && !host->loop().paused() && !cut_off_.contains(host->index())) {
      found.push_back(host.get());
    }
  }
  return found.empty() ? nullptr : found[random_.Below(found.size())];
}

// ---- The server.

// Which sequences begin with the server dying right now.
void Troubles::NoteServerDeath(ServerProcess& server) {
  Branches& branches = world_.branches();
  if (server.fleet().asking() > 0) branches.Reach(Branch::kDiedAfterOffer);
  if (!accepted_.empty()) branches.Reach(Branch::kDiedAfterAccept);
  if (server.binder().binding() > 0) branches.Reach(Branch::kDiedInCommit);
  for (const auto& [uid, accepted] : accepted_) {
    if (IsInGroup(uid)) branches.Reach(Branch::kDiedInGroup);
  }
  for (const auto& [uid, fact] : world_.truth().placed()) {
    if (fact.release == apis::core::kReleasePreempted) branches.Reach(Branch::kDiedInPreemption);
  }
  for (const auto& [uid, at] : bound_) {
    const PlacedFact* fact = world_.truth().Find(uid);
    HostProcess* host = fact == nullptr ? nullptr : world_.HostOf(fact->pool_uid);
    if (host != nullptr && world_.now() - at < Duration::Seconds(1) && !HasCopy(*host, uid)) {
      branches.Reach(Branch::kDiedAfterBind);
    }
  }
}

// Of several servers the next one leads; something waits for it.
void Troubles::LoseLeader(Seat& seat) {
  if (!world_.is_shared()) return;
  world_.LeaderIsLost(seat);
  // After what happens now.
  world_.Soon([this] { users_.CreateProbe(); });
}

void Troubles::CrashServer(std::string_view when) {
  ServerProcess* server = world_.leader();
  if (server == nullptr || !is_on_) return;
  Seat& seat = world_.SeatOf(*server);
  NoteServerDeath(*server);
  world_.SayFault(fmt::format("the {} {}", seat.node, when));
  LoseLeader(seat);
  world_.KillServer(seat);
  accepted_.clear();
  bound_.clear();
  world_.At(Between(100, random_.Chance(0.2) ? 30'000 : 3'000), [this, &seat] {
    if (seat.process == nullptr) world_.StartServer(seat);
  });
}

void Troubles::PauseServer() {
  ServerProcess* server = world_.leader();
  if (server == nullptr) return;
  Seat& seat = world_.SeatOf(*server);
  const Duration time = Between(1'000, world_.is_shared() ? 12'000 : 40'000);
  world_.SayFault(fmt::format("the {} sleeps for {}", seat.node, FormatDuration(time)));
  world_.ServersAreDisturbed();
  if (time > kLosesTheLease) LoseLeader(seat);
  seat.loop.Pause();
  world_.network().Pause(seat.node);
  world_.TroubleForAll();
  world_.At(time, [this, &seat] {
    if (!seat.loop.paused()) return;
    world_.network().Resume(seat.node);
    seat.loop.Resume();
    world_.TroubleForAll();
  });
}

// From the store: it loses its lease, and does not know yet. From the hosts: they wait for it, as
// nobody else may lead. From both: as if its cable was pulled.
void Troubles::CutServer() {
  ServerProcess* server = world_.leader();
  if (server == nullptr) return;
  Seat& seat = world_.SeatOf(*server);
  if (seat.link.is_cut() || seat.is_isolated) return;
  const uint64_t what = random_.Below(3);
  const bool from_store = what != 0;
  const bool from_hosts = what != 1;
  const Duration time = Between(1'000, 12'000);
  world_.SayFault(fmt::format("the {} is cut off from {} for {}",
                              seat.node,
                              !from_store   ? "the hosts"
                              : !from_hosts ? "the store"
                                            : "everything",
                              FormatDuration(time)));
  world_.ServersAreDisturbed();
  if (from_store && time > kLosesTheLease) LoseLeader(seat);
  if (from_store) seat.link.Cut();
  if (from_hosts) world_.network().Isolate(seat.node);
  seat.is_isolated = from_hosts;
  world_.TroubleForAll();
  world_.At(time, [this, &seat] {
    seat.link.Heal();
    if (std::exchange(seat.is_isolated, false)) world_.network().Rejoin(seat.node);
    world_.TroubleForAll();
  });
}

void Troubles::SecondLeader() {
  ServerProcess* server = world_.leader();
  if (server == nullptr || server->has_second_scheduler()) return;
  world_.SayFault("a second scheduler leads");
  server->StartSecondScheduler();
  world_.At(Between(3'000, 20'000), [this, start = server->cluster().start] {
    ServerProcess* now = world_.leader();
    if (now == nullptr || now->cluster().start != start) return;
    const Status stopped = world_.RunOn(now->loop(), now->StopSecondScheduler());
    CHECK(stopped.ok()) << stopped;
  });
}

void Troubles::Backup() {
  if (world_.server() != nullptr) world_.TakeBackup();
}

void Troubles::Restore() {
  if (!world_.has_backup() || world_.server() == nullptr) return;
  world_.SayFault("the server is restored from its backup");
  // Hosts whose pools the backup does not know could not be waited for: their operator turns them
  // off first.
  for (const auto& host : world_.hosts()) {
    if (world_.BackupKnows(*host) || IsGone(*host)) continue;
    world_.Say(host->name() + " is turned off");
    gone_.insert(host->index());
    if (host->loop().paused()) host->loop().Resume();
    world_.KillHost(*host, net::CrashStyle::kSilent);
    TurnOff(*host);
  }
  world_.RestoreBackup();
  accepted_.clear();
  bound_.clear();
  leaving_.clear();
  moved_.clear();
  term_ = 0;
  world_.StartServer(*world_.seats().front());
}

// ---- Hosts.

void Troubles::CrashPoollet(size_t index, std::string_view when) {
  HostProcess& host = *world_.hosts()[index];
  if (!is_on_ || !host.is_up() || host.loop().paused()) return;
  if (host.poollet().host().ledger().holds() > 0) died_holding_.insert(host.pools());
  if (host.disk().is_writing()) world_.branches().Reach(Branch::kPoolletDiedInWrite);
  world_.SayFault(fmt::format("the poollet of {} {}", host.name(), when));
  world_.KillHost(host, net::CrashStyle::kReset);
  world_.At(Between(100, random_.Chance(0.3) ? 40'000 : 4'000), [this, index] {
    if (!gone_.contains(index)) world_.StartHost(*world_.hosts()[index]);
  });
}

void Troubles::CrashSomePoollet() {
  if (HostProcess* host = PickHost()) CrashPoollet(host->index(), "crashes");
}

void Troubles::LoseSomePoollet() {
  HostProcess* host = PickHost();
  if (host == nullptr || static_cast<double>(gone_.size()) >= world_.scenario().gone_max) return;
  world_.SayFault(fmt::format("the poollet of {} is gone for good", host->name()));
  gone_.insert(host->index());
  world_.KillHost(*host, net::CrashStyle::kSilent);
}

void Troubles::CutSomePower() {
  HostProcess* host = PickHost();
  if (host == nullptr) return;
  world_.SayFault(fmt::format("{} loses its power", host->name()));
  world_.KillHost(*host, net::CrashStyle::kSilent);
  host->state().PowerCut(host->fake().clock());
  host->fake().Crash();
  world_.At(Between(2'000, 60'000), [this, host] {
    if (IsGone(*host)) return;  // its operator turned it off meanwhile
    host->fake().Restart();
    world_.StartHost(*host);
  });
}

void Troubles::PauseSomePoollet() {
  HostProcess* host = PickHost();
  if (host == nullptr) return;
  const Duration time = Between(500, 45'000);
  world_.SayFault(
      fmt::format("the poollet of {} sleeps for {}", host->name(), FormatDuration(time)));
  world_.Trouble(*host);
  host->loop().Pause();
  world_.network().Pause(host->name());
  world_.At(time, [this, host] {
    if (!host->loop().paused()) return;
    world_.network().Resume(host->name());
    host->loop().Resume();
    world_.Trouble(*host);
  });
}

void Troubles::CutOff(HostProcess& host, Duration time) {
  if (!cut_off_.insert(host.index()).second) return;
  world_.SayFault(fmt::format("{} is cut off for {}", host.name(), FormatDuration(time)));
  world_.Trouble(host);
  const bool is_deaf_and_dumb = random_.Chance(0.7);
  const bool is_dumb = is_deaf_and_dumb || random_.Chance(0.5);
  for (const auto& seat : world_.seats()) {
    if (is_dumb) world_.network().Block(host.name(), seat->node);
    if (is_deaf_and_dumb || !is_dumb) world_.network().Block(seat->node, host.name());
  }
  world_.At(time, [this, &host] {
    if (cut_off_.erase(host.index()) == 0) return;
    Reconnect(host);
    world_.Trouble(host);
  });
}

void Troubles::Reconnect(const HostProcess& host) {
  for (const auto& seat : world_.seats()) world_.network().Heal(host.name(), seat->node);
}

void Troubles::CutOffSome() {
  if (HostProcess* host = PickHost()) {
    CutOff(*host, random_.Chance(0.5) ? Between(1'000, 15'000) : Between(10'000, 60'000));
  }
}

void Troubles::SlowSomeLink() {
  HostProcess* host = PickHost();
  if (host == nullptr) return;
  const Duration extra = Between(50, 1'200);
  world_.SayFault(fmt::format("{} is slow by {}", host->name(), FormatDuration(extra)));
  world_.Trouble(*host);
  for (const auto& seat : world_.seats()) {
    world_.network().SetDelay(host->name(), seat->node, extra);
  }
  world_.At(Between(5'000, 30'000), [this, host] {
    for (const auto& seat : world_.seats()) {
      world_.network().SetDelay(host->name(), seat->node, Duration());
    }
    world_.Trouble(*host);
  });
}

void Troubles::DropSomeConnection() {
  HostProcess* host = PickHost();
  if (host == nullptr) return;
  world_.SayFault(fmt::format("the connection of {} breaks", host->name()));
  world_.Trouble(*host);
  for (const auto& seat : world_.seats()) {
    world_.network().ResetConnections(host->name(), seat->node);
  }
}

void Troubles::CrashSomeRuntime() {
  HostProcess* host = PickHost();
  if (host == nullptr) return;
  world_.SayFault(fmt::format("the runtime of {} crashes", host->name()));
  host->fake().Crash();
  world_.At(Between(100, 15'000), [host] { host->fake().Restart(); });
}

// For a while, so that what is hidden or wrong shows in time: nobody but the runtime can know.
void Troubles::LetSomeRuntimeLie() {
  HostProcess* host = PickHost();
  if (host == nullptr) return;
  constexpr double kSomeLeftOut = 0.4;
  const Duration time = Between(500, 20'000);
  runtime::FakeLies& lies = host->state().options().lies;
  switch (world_.random().Below(4)) {
    case 0:
      world_.SayFault(fmt::format("the runtime of {} lists nothing", host->name()));
      lies.list_omits = 1;
      break;
    case 1:
      world_.SayFault(fmt::format("the runtime of {} leaves out what it has", host->name()));
      lies.list_omits = kSomeLeftOut;
      break;
    case 2:
      world_.SayFault(fmt::format("the runtime of {} says that all guests run", host->name()));
      lies.reports_running = true;
      break;
    default:
      world_.SayFault(fmt::format("the runtime of {} makes things twice", host->name()));
      lies.creates_duplicates = true;
      lies.list_omits = kSomeLeftOut;
      break;
  }
  world_.At(time, [host] { BeHonest(*host); });
}

void Troubles::BeHonest(HostProcess& host) {
  runtime::FakeLies& lies = host.state().options().lies;
  lies.list_omits = 0;
  lies.reports_running = false;
  lies.creates_duplicates = false;
}

void Troubles::FailSomeDisk() {
  HostProcess* host = PickHost();
  if (host == nullptr) return;
  const Duration time = Between(500, 20'000);
  world_.SayFault(fmt::format("the disk of {} fails for {}", host->name(), FormatDuration(time)));
  host->disk().FailWrites(Unavailable("injected: the disk is full"));
  world_.At(time, [host] { host->disk().FailWrites(OkStatus()); });
}

// Not a fault: its operator does something else with the host for a while. It may crash, or be cut
// off, while it waits for its drain.
void Troubles::StopSome(poollet::LeaveMode mode) {
  HostProcess* host = PickHost();
  if (host == nullptr || host->is_leaving()) return;
  world_.StopHost(*host, mode, [this, host] {
    world_.At(Between(1'000, 60'000), [this, host] {
      if (!IsGone(*host)) world_.StartHost(*host);
    });
  });
}

// The host of a pool is gone; its operator removes the pool, and another host is given its name.
void Troubles::RebirthOfAPool() {
  if (world_.server() == nullptr || gone_.empty()) return;
  HostProcess& old = *world_.hosts()[*gone_.begin()];
  const PoolFact* pool = world_.truth().FindPool(kMachinePoolKind, old.pools());
  if (pool == nullptr || world_.HostOf(pool->uid) != &old) return;
  const std::string name = old.pools();
  world_.SayFault(fmt::format("pool {} of {} is removed", name, old.name()));
  // After a restore this is the operator's word that nothing of the host runs.
  if (world_.incarnation() > 1) TurnOff(old);
  for (const auto& [uid, one] : world_.truth().pools()) {
    if (one.name == name) users_.ForceEverythingFrom(uid);
  }
  users_.DeletePool(name);
  const HostShape shape = old.shape();
  world_.At(Duration::Seconds(8), [this, name, shape] {
    const bool is_free = world_.truth().FindPool(kMachinePoolKind, name) == nullptr;
    if (!is_on_ || world_.server() == nullptr || !is_free) return;
    const std::string host = fmt::format("heir-{}", ++reborn_);
    world_.AddHost(host, name, shape);
    world_.SayFault(fmt::format("{} announces pool {}", host, name));
    world_.StartHost(*world_.hosts().back());
  });
}

// ---- Moments.

HostProcess::Hooks Troubles::HooksFor(size_t host) {
  HostProcess::Hooks hooks;
  hooks.touched = [this, host](const runtime::FakeHostState::Touched& what) {
    Touched(host, what);
  };
  hooks.write_begins = [this, host] {
    if (!Chance(world_.scenario().poollet_dies_in_write)) return;
    world_.Soon([this, host] { CrashPoollet(host, "dies in a write"); });
  };
  hooks.written = [this, host] {
    if (!Chance(world_.scenario().poollet_dies_after_write)) return;
    world_.Soon([this, host] {
      HostProcess& one = *world_.hosts()[host];
      if (!one.is_up()) return;
      for (const auto& [uid, entry] : one.poollet().host().record().entries) {
        const bool is_new = entry.phase == poollet::Phase::kAssigned &&
                            entry.kind == fleet::ObjectKind::kMachine && !HasCopy(one, uid);
        if (is_new) world_.branches().Reach(Branch::kPoolletDiedAfterWrite);
      }
      CrashPoollet(host, "dies after a write");
    });
  };
  return hooks;
}

void Troubles::Touched(size_t host, const runtime::FakeHostState::Touched& what) {
  using What = runtime::FakeHostState::Touched::What;
  if (what.what != What::kObject || what.kind != iri::ObjectKind::kMachine) return;
  const auto& machines = world_.hosts()[host]->state().machines();
  const auto made = machines.find(what.id);
  // A machine that was just made has not begun its boot, or has just begun it.
  if (made == machines.end() || made->second.guest.phase == runtime::FakeGuest::Phase::kRunning)
    return;
  if (!known_.insert(what.id).second) return;
  if (Chance(world_.scenario().poollet_dies_in_create)) {
    world_.Soon([this, host] {
      world_.branches().Reach(Branch::kPoolletDiedInCreate);
      CrashPoollet(host, "dies in a create");
    });
  } else if (Chance(world_.scenario().runtime_dies_in_create)) {
    world_.Soon([this, host] {
      HostProcess& one = *world_.hosts()[host];
      world_.SayFault(fmt::format("the runtime of {} dies in a create", one.name()));
      world_.branches().Reach(Branch::kRuntimeDiedInCreate);
      one.fake().Crash();
      world_.At(Between(100, 5'000), [&one] { one.fake().Restart(); });
    });
  }
}

void Troubles::Offered(const fleet::Offer& offer) {
  term_ = std::max(term_, static_cast<int64_t>(offer.id.term));
  if (Chance(world_.scenario().crash_after_offer)) {
    world_.Soon([this] { CrashServer("crashes after an offer"); });
  }
}

void Troubles::Answered(const fleet::Offer& offer, const fleet::Answer& answer) {
  const std::string& uid = offer.item.uid;
  if (answer.verdict == fleet::Answer::Verdict::kNoAnswer) no_answer_[uid] = offer.item.pool_uid;
  if (answer.verdict != fleet::Answer::Verdict::kAccepted) return;
  accepted_[uid] = {.pool_uid = offer.item.pool_uid, .at = world_.now()};
  const Scenario& scenario = world_.scenario();
  HostProcess* host = world_.HostOf(offer.item.pool_uid);
  if (Chance(scenario.crash_after_accept)) {
    world_.Soon([this] { CrashServer("crashes after an answer"); });
  } else if (IsInGroup(uid) && Chance(scenario.crash_in_group)) {
    world_.Soon([this] { CrashServer("crashes while a group is placed"); });
  } else if (Chance(IsProbe(uid) ? 0 : scenario.edit_before_bind)) {
    spoilt_.insert(uid);
    world_.SayFault(fmt::format("{} is changed before it is bound", NameOf(uid)));
    if (random_.Chance(0.5)) {
      users_.Edit(uid);
    } else {
      users_.Delete(uid, client::Force::kNo);
    }
  } else if (Chance(scenario.cordon_before_bind) && host != nullptr) {
    const std::string pool = host->pools();
    world_.SayFault(fmt::format("{} is cordoned before a bind", pool));
    users_.Cordon(pool, true);
    world_.At(Between(1'000, 10'000), [this, pool] { users_.Cordon(pool, false); });
  } else if (host != nullptr && Chance(scenario.poollet_dies_after_accept)) {
    world_.Soon([this, host] { CrashPoollet(host->index(), "dies after it accepted"); });
  }
}

BindFault Troubles::BindBegins(const std::vector<client::BindRequest>& requests) {
  for (const client::BindRequest& request : requests) {
    for (const client::BindItem& item : request.items) accepted_.erase(item.uid);
  }
  const Scenario& scenario = world_.scenario();
  if (Chance(scenario.crash_in_bind)) {
    world_.Soon([this] { CrashServer("crashes in a commit"); });
  } else if (Chance(scenario.bind_answer_lost)) {
    world_.ServersAreDisturbed();
    world_.SayFault("the answer to a bind is lost");
    world_.branches().Reach(Branch::kBindOutcomeUnknown);
    return BindFault::kLoseAnswer;
  } else if (Chance(scenario.bind_slow)) {
    world_.ServersAreDisturbed();
    world_.SayFault("a bind is slow");
    return BindFault::kSlow;
  }
  return BindFault::kNone;
}

void Troubles::BindEnded(const client::BindRequest& request,
                         const Status& verdict,
                         Duration slept) {
  constexpr Duration kHold = Duration::Seconds(10);
  const client::BindItem& item = request.items.front();
  Branches& branches = world_.branches();
  if (slept > kHold) branches.Reach(Branch::kBindAfterHold);
  const bool is_refused = verdict.Is(Reason::kConflict) || verdict.Is(Reason::kNotFound);
  if (is_refused && request.term < term_) branches.Reach(Branch::kOldLeaderBind);
  if (is_refused && spoilt_.contains(item.uid)) branches.Reach(Branch::kChangedBeforeBind);
  if (verdict.Is(Reason::kForbidden)) {
    const auto pool = world_.truth().pools().find(item.pool_uid);
    if (pool != world_.truth().pools().end() && pool->second.is_cordoned) {
      branches.Reach(Branch::kCordonedBeforeBind);
    }
  }
  spoilt_.erase(item.uid);
  if (!verdict.ok()) return;
  bound_[item.uid] = world_.now();
  if (died_holding_.contains(item.pool)) branches.Reach(Branch::kPoolletDiedWithHold);
  if (const auto silent = no_answer_.find(item.uid); silent != no_answer_.end()) {
    HostProcess* host = world_.HostOf(silent->second);
    const bool holds = host != nullptr && host->is_up() && silent->second != item.pool_uid &&
                       host->poollet().host().ledger().holds() > 0;
    if (holds) branches.Reach(Branch::kLateAccept);
    no_answer_.erase(silent);
  }
  HostProcess* host = world_.HostOf(item.pool_uid);
  if (Chance(world_.scenario().crash_after_bind)) {
    world_.Soon([this] { CrashServer("crashes after a bind"); });
  } else if (host != nullptr && Chance(world_.scenario().partition_after_bind)) {
    world_.Soon([this, host, uid = item.uid] {
      if (!HasCopy(*host, uid)) world_.branches().Reach(Branch::kPartitionAfterBind);
      CutOff(*host, Between(3'000, 40'000));
    });
  }
}

void Troubles::UnbindBegins(const client::UnbindRequest& request) {
  if (request.proof != client::UnbindProof::kFenced) return;
  const PlacedFact* fact = world_.truth().Find(request.uid);
  HostProcess* host = fact == nullptr ? nullptr : world_.HostOf(fact->pool_uid);
  if (host == nullptr) return;
  leaving_[request.uid] = {.host = host->index(), .had_copy = HasCopy(*host, request.uid)};
}

void Troubles::Unbound(const client::UnbindRequest& request, const Status& verdict) {
  auto leaving = leaving_.extract(request.uid);
  if (verdict.ok() && !leaving.empty()) moved_[request.uid] = leaving.mapped();
}

void Troubles::Preempting(const std::string& uid) {
  if (!Chance(world_.scenario().crash_in_preemption)) return;
  world_.Soon(
      [this, uid] { CrashServer(fmt::format("crashes while {} makes room", NameOf(uid))); });
}

// The host comes back while the first of its machines is being moved away: the others are not.
void Troubles::MoveClaimed(const std::string& uid, bool is_claimed) {
  if (!is_claimed) return world_.branches().Reach(Branch::kReturnedDuringMove);
  const PlacedFact* fact = world_.truth().Find(uid);
  HostProcess* host = fact == nullptr ? nullptr : world_.HostOf(fact->pool_uid);
  if (!is_on_ || host == nullptr || !cut_off_.contains(host->index())) return;
  if (!slowed_.insert(fact->pool_uid).second || !random_.Chance(0.5)) return;
  if (ServerProcess* leader = world_.leader()) {
    leader->binder().SlowUnbinds(Between(1'000, 8'000));
  }
  world_.Soon([this, host] {
    if (cut_off_.erase(host->index()) == 0) return;
    world_.SayFault(host->name() + " returns while it is being given up");
    Reconnect(*host);
  });
}

void Troubles::Look() {
  for (auto moved = moved_.begin(); moved != moved_.end();) {
    if (!world_.hosts()[moved->second.host]->is_synced()) {
      ++moved;
      continue;
    }
    if (moved->second.had_copy) world_.branches().Reach(Branch::kReturnedAfterMove);
    moved = moved_.erase(moved);
  }
  std::erase_if(bound_, [this](const auto& entry) {
    return world_.now() - entry.second > Duration::Seconds(2);
  });
  for (const auto& host : world_.hosts()) {
    if (host->is_synced()) died_holding_.erase(host->pools());
  }
  world_.At(Duration::Seconds(1), [this] { Look(); });
}

}  // namespace berth::sim
