// SPDX-License-Identifier: Apache-2.0
// Life of a host, its runtimes and its figures.
#include "poollet/host/host.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/uid.h"
#include "poollet/host/host_load.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::poollet {
namespace {

using fleet::ObjectKind;

constexpr Duration kRefreshRetry = Duration::Seconds(1);
// Figures that nobody asked for are said at most this often.
constexpr Duration kFactsPause = Duration::Seconds(1);
// Events that wait for their turn are said this often: at 10 a second two go in one message.
constexpr Duration kEventsPause = Duration::Millis(200);

std::string_view PoolKindOf(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kMachine: return "MachinePool";
    case ObjectKind::kVolume:
    case ObjectKind::kVolumeSnapshot: return "VolumePool";
    case ObjectKind::kBucket: return "BucketPool";
    case ObjectKind::kReservation: break;
  }
  return "MachinePool";
}

// Snapshots are in the pool of the volumes, and of the same runtime.
bool IsPoolPort(ObjectKind kind) { return kind != ObjectKind::kVolumeSnapshot; }

}  // namespace

HostRuntimes ToHostRuntimes(const iri::Runtimes& runtimes) {
  HostRuntimes out;
  out.machine = runtimes.machine;
  out.volume = runtimes.volume;
  out.bucket = runtimes.bucket;
  out.machine_host = out.volume_host = out.bucket_host = runtimes.host;
  return out;
}

Host::Host(Deps deps, HostOptions options, std::unique_ptr<Record> record, std::string boot)
    : loop_(*deps.loop),
      deps_(std::move(deps)),
      options_(std::move(options)),
      record_(std::move(record)),
      host_(record_->state().host),
      ledger_(std::move(boot)),
      outbox_([this](Urgency urgency) { deps_.wake(urgency); },
              [this](const std::string& uid) { return FateOf(uid); }),
      reserved_([this](const iri::HostRuntime* host) { return ReservedAt(host); },
                options_.reconcile.call_limit),
      leases_(
          loop_,
          deps_.fencer,
          [this](const std::string& uid) { reconciler_.Kick(uid); },
          deps_.slept),
      reconciler_(loop_, *this, options_.reconcile),
      watch_(loop_, *this, options_.watch),
      scope_(loop_) {}

Host::~Host() {
  if (expiry_timer_.has_value()) loop_.CancelTimer(*expiry_timer_);
  if (events_timer_.has_value()) loop_.CancelTimer(*events_timer_);
}

rt::Task<Result<std::unique_ptr<Host>>> Host::Open(Deps deps, HostOptions options) {
  rt::Loop& loop = *deps.loop;
  CO_TRY(auto record, co_await Record::Open(loop, *deps.disk));
  std::string boot = NewUid(loop.random());
  std::unique_ptr<Host> host(
      new Host(std::move(deps), std::move(options), std::move(record), std::move(boot)));
  const HostRuntimes& runtimes = host->deps_.runtimes;
  if (runtimes.machine != nullptr) {
    host->AddPort(ObjectKind::kMachine,
                  NewMachineDriver(*runtimes.machine, runtimes.machine_host),
                  runtimes.machine_host);
  }
  if (runtimes.volume != nullptr) {
    host->AddPort(ObjectKind::kVolume, NewVolumeDriver(*runtimes.volume), runtimes.volume_host);
    host->AddPort(
        ObjectKind::kVolumeSnapshot, NewSnapshotDriver(*runtimes.volume), runtimes.volume_host);
  }
  if (runtimes.bucket != nullptr) {
    host->AddPort(ObjectKind::kBucket, NewBucketDriver(*runtimes.bucket), runtimes.bucket_host);
  }
  const Status probed = co_await host->leases_.Probe();
  if (probed.Is(Reason::kCancelled)) {
    const Status closed = co_await host->Abandon();
    CHECK(closed.ok());
    co_return probed;
  }
  host->ApplyBudgets();
  host->RestoreFromRecord();
  const Status refreshed = co_await host->Refresh();
  if (!refreshed.ok()) LOG_WARNING("runtimes: {}", refreshed.message());
  host->StartWatches();
  host->scope_.Spawn("poollet.refresh", host->RefreshLoop());
  host->CheckDrained();
  co_return host;
}

void Host::AddPort(ObjectKind kind, std::unique_ptr<Driver> driver, iri::HostRuntime* host) {
  Port& port = ports_[kind];
  port.driver = std::move(driver);
  port.host = host;
  Reconciler::Port out;
  out.driver = port.driver.get();
  out.host = host;
  out.is_idempotent = host != nullptr;
  reconciler_.SetPort(kind, std::move(out));
}

void Host::RestoreFromRecord() {
  reconciler_.SetClusterId(host_.cluster_id);
  for (const auto& [uid, entry] : record_->state().entries) {
    Item& item = items_[uid];
    item.entry = entry;
    item.is_durable = true;
    item.secrets_missing = entry.had_secrets;
    if (entry.phase == Phase::kGone) continue;
    Allocation allocation;
    allocation.uid = uid;
    allocation.kind = entry.kind;
    allocation.pool_uid = entry.pool_uid;
    allocation.placement = entry.placement.number;
    allocation.amounts = entry.amounts;
    if (!entry.assign.empty()) {
      auto desired = ParseAssign(entry.assign, host_.cluster_id);
      if (desired.ok()) {
        allocation.class_name = desired->class_name;
        allocation.reservation_uid = desired->reservation_uid;
        allocation.consumers = ConsumersOf(*desired);
        item.desired = std::make_shared<const Desired>(*std::move(desired));
      } else {
        LOG_ERROR("local record: {}: {}", uid, desired.status().message());
      }
    }
    ledger_.Restore(allocation);
    Hand(item);
  }
}

void Host::StartWatches() {
  if (watching_ || host_.cluster_id.empty()) return;
  watching_ = true;
  heard_ = host_.events_told;
  for (auto& [kind, port] : ports_) {
    RuntimeWatch::Watched watched;
    watched.driver = port.driver.get();
    watched.host = port.host;
    watched.cluster_id = host_.cluster_id;
    // From the first moment on, so that nothing is missed if this life ends in the next.
    const auto heard =
        heard_.try_emplace(std::string(fleet::NameOf(kind)), loop_.WallNow().seconds()).first;
    watched.heard_until = WallTime::FromSeconds(heard->second);
    watch_.Start(watched);
  }
  if (host_.events_told == heard_) return;
  host_.events_told = heard_;
  PersistHost();
}

rt::Task<Status> Host::RefreshLoop() {
  Time last_facts = loop_.Now();
  Time next = loop_.Now() + options_.statistics_interval;
  while (true) {
    const bool has_problem =
        std::ranges::any_of(ports_, [](const auto& port) { return !port.second.problem.empty(); });
    if (has_problem) next = std::min(next, loop_.Now() + kRefreshRetry);
    const Duration pause = std::clamp(next - loop_.Now(), Duration::Millis(1), kFactsPause);
    CO_TRY_STATUS(co_await rt::Sleep(pause));
    if (loop_.Now() >= next) {
      const Status refreshed = co_await Refresh();
      if (refreshed.Is(Reason::kCancelled)) co_return refreshed;
      next = loop_.Now() + options_.statistics_interval;
    }
    const FactsNews news = NewsOfFacts();
    if (loop_.Now() - last_facts >= kFactsPause && in_session_ && news != FactsNews::kNone) {
      last_facts = loop_.Now();
      deps_.wake(news == FactsNews::kUrgent ? Urgency::kSoon : Urgency::kIdle);
    }
  }
}

rt::Task<Status> Host::RefreshPort(ObjectKind kind) {
  Port& port = ports_.at(kind);
  const Duration limit = options_.reconcile.call_limit;
  if (port.runtime_name.empty()) {
    CO_TRY(auto version, co_await rt::WithDeadline(port.driver->Version(), limit));
    port.runtime_name = version.runtime_name;
    port.facts_changed = true;
    Reconciler::Port out;
    out.driver = port.driver.get();
    out.host = port.host;
    out.is_idempotent = port.host != nullptr;
    out.runtime_name = version.runtime_name;
    reconciler_.SetPort(kind, std::move(out));
  }
  CO_TRY(auto classes, co_await rt::WithDeadline(port.driver->Classes(), limit));
  // Where the host's capacity is known, how many of one class would fit says nothing.
  if (port.host != nullptr) {
    for (auto& offered : classes) offered.quantity = 0;
  }
  if (classes != port.classes) {
    port.classes = std::move(classes);
    port.classes_changed = true;
  }
  co_return OkStatus();
}

rt::Task<Status> Host::Refresh() {
  Status worst;
  std::map<iri::HostRuntime*, Status> hosts;
  std::map<iri::HostRuntime*, iri::StringMap> facts;
  std::map<iri::HostRuntime*, Amounts> totals;
  std::optional<Amounts> total;
  std::vector<fleet::Statistics> statistics;
  for (const ObjectKind kind : {ObjectKind::kMachine,
                                ObjectKind::kVolume,
                                ObjectKind::kBucket,
                                ObjectKind::kVolumeSnapshot}) {
    if (!ports_.contains(kind)) continue;
    Status status = co_await RefreshPort(kind);
    if (status.Is(Reason::kCancelled)) co_return status;
    iri::HostRuntime* host = ports_.at(kind).host;
    if (status.ok() && host != nullptr && !hosts.contains(host)) {
      auto capacity = co_await rt::WithDeadline(host->Capacity(), options_.reconcile.call_limit);
      hosts[host] = capacity.status();
      if (capacity.ok()) {
        if (!capacity->trouble.empty()) hosts[host] = Unavailable(capacity->trouble);
        if (!total.has_value()) total.emplace();
        for (const auto& [name, amount] : capacity->total) {
          const int64_t left = std::max<int64_t>(amount - AmountOf(capacity->kept, name), 0);
          (*total)[name] = std::max((*total)[name], left);
        }
        TakeStatistics(*capacity, statistics);
        facts[host] = std::move(capacity->facts);
        totals[host] = std::move(capacity->total);
      }
    }
    if (status.ok() && host != nullptr) status = hosts.at(host);
    if (status.Is(Reason::kCancelled)) co_return status;
    Port& port = ports_.at(kind);
    if (port.problem.empty() != status.ok()) facts_said_ = 0;
    port.problem = status.message();
    // A runtime in trouble knows what it is.
    const auto told = facts.find(host);
    if (told != facts.end() && port.facts != told->second) {
      port.facts = told->second;
      port.facts_changed = true;
    }
    if (status.ok() && host != nullptr) port.total = totals.at(host);
    port.is_known = port.is_known || status.ok();
    if (!status.ok()) worst = status;
  }
  if (total.has_value()) ledger_.SetCapacity(*std::move(total));
  ApplyBudgets();
  for (const auto& [host, status] : hosts) {
    if (!status.ok()) continue;
    const Status checked = co_await reserved_.Check(host);
    if (checked.Is(Reason::kCancelled)) co_return checked;
    if (!checked.ok()) LOG_DEBUG("reservations: {}", checked.message());
  }
  TakeEarlyAssigns();
  if (in_session_ && !statistics.empty()) outbox_.Statistics(std::move(statistics));
  co_return worst;
}

void Host::TakeStatistics(const iri::HostCapacity& capacity, std::vector<fleet::Statistics>& out) {
  double cores = 0;
  std::map<std::string, CpuSample> samples;
  for (const auto& instance : capacity.instances) {
    if (instance.uid.empty() || !items_.contains(instance.uid)) continue;
    fleet::Statistics one;
    one.uid = instance.uid;
    const auto before = cpu_samples_.find(instance.uid);
    if (before != cpu_samples_.end() && loop_.Now() > before->second.at) {
      const double used = (instance.cpu_time - before->second.cpu_time).to_seconds();
      one.cpu_cores = std::max(0.0, used / (loop_.Now() - before->second.at).to_seconds());
    }
    cores += one.cpu_cores;
    samples[instance.uid] = {.cpu_time = instance.cpu_time, .at = loop_.Now()};
    one.memory_bytes = instance.memory_bytes;
    one.disk_bytes = instance.disk_bytes;
    one.network_receive_bytes = instance.network_received_bytes;
    one.network_send_bytes = instance.network_sent_bytes;
    out.push_back(std::move(one));
  }
  AddHostLoad(capacity.load, cores, out);
  for (auto& [uid, sample] : samples) cpu_samples_.insert_or_assign(uid, sample);
  std::erase_if(cpu_samples_, [&](const auto& s) { return !items_.contains(s.first); });
  if (!boot_of_runtime_.empty() && boot_of_runtime_ != capacity.boot_id) reconciler_.KickAll();
  boot_of_runtime_ = capacity.boot_id;
}

const PoolSetup* Host::SetupOf(ObjectKind kind) const {
  const auto found = std::ranges::find(options_.pools, PoolKindOf(kind), &PoolSetup::kind);
  return found == options_.pools.end() ? nullptr : &*found;
}

const RecordPool* Host::PoolOf(ObjectKind kind) const {
  const PoolSetup* setup = SetupOf(kind);
  if (setup == nullptr) return nullptr;
  const auto found = std::ranges::find_if(host_.pools, [&](const RecordPool& pool) {
    return pool.kind == setup->kind && pool.name == setup->name;
  });
  return found == host_.pools.end() ? nullptr : &*found;
}

std::string Host::PoolUidOf(ObjectKind kind) const {
  const RecordPool* pool = PoolOf(kind);
  return pool == nullptr ? "" : pool->uid;
}

void Host::ApplyBudgets() {
  for (const auto& [kind, port] : ports_) {
    const RecordPool* pool = IsPoolPort(kind) ? PoolOf(kind) : nullptr;
    if (pool == nullptr || pool->uid.empty()) continue;
    PoolBudget budget;
    budget.uid = pool->uid;
    budget.counting =
        port.host != nullptr ? PoolBudget::Counting::kAmounts : PoolBudget::Counting::kShares;
    budget.limits = pool->limits;
    for (const auto& offered : port.classes) {
      budget.classes[offered.name] = offered.quantity;
      if (kind == ObjectKind::kMachine && port.host != nullptr) {
        budget.sizes[offered.name] = offered.capabilities;
      }
    }
    ledger_.SetPool(std::move(budget));
  }
}

std::vector<iri::Reservation> Host::ReservedAt(const iri::HostRuntime* host) const {
  std::vector<iri::Reservation> all;
  for (const auto& [kind, port] : ports_) {
    if (port.host != host || !IsPoolPort(kind)) continue;
    for (auto& [uid, left] : ledger_.ReservedOn(PoolUidOf(kind))) {
      iri::Reservation one;
      one.id = uid;
      for (const auto& [name, amount] : left) {
        if (port.total.contains(name)) one.resources[name] = amount;
      }
      if (!one.resources.empty()) all.push_back(std::move(one));
    }
  }
  return all;
}

void Host::ReservationsChanged() {
  if (closed_ || std::exchange(telling_reservations_, true)) return;
  scope_.Spawn("poollet.reservations", TellReservations());
}

// Nobody waits for it: what is made in a runtime looks again before (CreateBegins), and what could
// not be told now is told with the next figures (Refresh).
rt::Task<Status> Host::TellReservations() {
  telling_reservations_ = false;  // what changes from here on is told once more
  std::set<iri::HostRuntime*> hosts;
  for (const auto& [_, port] : ports_) {
    if (port.is_known) hosts.insert(port.host);
  }
  for (iri::HostRuntime* host : hosts) {
    const Status told = co_await reserved_.Tell(host);
    if (told.Is(Reason::kCancelled)) co_return told;
    if (!told.ok()) LOG_DEBUG("reservations: {}", told.message());
  }
  co_return OkStatus();
}

Host::FactsNews Host::NewsOfFacts() const {
  const bool is_urgent = facts_said_ == 0 || corrections_said_ != ledger_.corrections() ||
                         fence_said_ != leases_.problem() ||
                         std::ranges::any_of(ports_, [](const auto& port) {
                           return port.second.classes_changed || port.second.facts_changed;
                         });
  if (is_urgent) return FactsNews::kUrgent;
  return facts_said_ != ledger_.version().counter ? FactsNews::kFigures : FactsNews::kNone;
}

// What the server itself has brought here it has counted: such figures can wait.
void Host::SayFacts() {
  const FactsNews news = NewsOfFacts();
  const bool is_due = news == FactsNews::kUrgent ||
                      (news == FactsNews::kFigures && loop_.Now() - facts_said_at_ >= kFactsPause);
  if (!synced_ || !is_due) return;
  std::vector<SpokenFacts> all;
  for (auto& [kind, port] : ports_) {
    const std::string uid = IsPoolPort(kind) ? PoolUidOf(kind) : "";
    const bool classes_changed = std::exchange(port.classes_changed, false);
    const bool facts_changed = std::exchange(port.facts_changed, false);
    if (uid.empty()) continue;  // the server knows of none
    SpokenFacts facts;
    facts.pool_uid = uid;
    facts.ledger = ledger_.version();
    facts.capacity = ledger_.CapacityOf(uid);
    facts.allocated = ledger_.AllocatedOf(uid);
    facts.held = ledger_.HeldOf(uid);
    facts.fence_ready = leases_.is_ready();
    facts.fence_problem = leases_.problem();
    facts.problem = port.problem;
    if (classes_changed) facts.classes = port.classes;
    if (facts_changed) facts.runtime_facts = FactsOf(port);
    all.push_back(std::move(facts));
  }
  facts_said_ = ledger_.version().counter;
  facts_said_at_ = loop_.Now();
  corrections_said_ = ledger_.corrections();
  fence_said_ = leases_.problem();
  outbox_.Facts(std::move(all));
}

// A hold that ends frees room: the server is told with the next figures.
void Host::ArmExpiry() {
  if (expiry_timer_.has_value()) return;
  const auto next = ledger_.next_expiry();
  if (!next.has_value()) return;
  const Duration delay = std::max(*next - loop_.Now(), Duration::Millis(1));
  expiry_timer_ = loop_.After("poollet.holds", delay, [this] {
    expiry_timer_.reset();
    ledger_.Expire(loop_.Now());
    ArmExpiry();
  });
}

// What may not be said yet is said when it may. Without a session there is no next batch, and the
// one that begins asks for it.
void Host::ArmEvents() {
  if (events_timer_.has_value() || !outbox_.has_events()) return;
  const Duration delay = std::max(outbox_.EventsWait(loop_.Now()), kEventsPause);
  events_timer_ = loop_.After("poollet.events", delay, [this] {
    events_timer_.reset();
    deps_.wake(Urgency::kNow);
  });
}

void Host::PersistHost() {
  if (writing_host_ || closed_) return;
  writing_host_ = true;
  scope_.Spawn("poollet.record.host", WriteHost());
}

rt::Task<Status> Host::WriteHost() {
  while (record_->state().host != host_) {
    RecordChange change;
    change.host = host_;
    const Status written = co_await record_->Write(std::move(change));
    if (written.Is(Reason::kCancelled)) break;
    if (!written.ok()) {
      LOG_ERROR("{}", written.message());
      const Status slept = co_await rt::Sleep(kRefreshRetry);
      if (!slept.ok()) break;
    }
  }
  writing_host_ = false;
  co_return OkStatus();
}

Host::Item* Host::Find(const std::string& uid) {
  const auto found = items_.find(uid);
  return found == items_.end() ? nullptr : &found->second;
}

size_t Host::CountIn(Phase phase) const {
  return static_cast<size_t>(std::ranges::count_if(
      items_, [&](const auto& item) { return item.second.entry.phase == phase; }));
}

void Host::CheckDrained() {
  if (CountIn(Phase::kAssigned) + CountIn(Phase::kRemoving) == 0) {
    drained_.Set();
  } else {
    drained_.Reset();
  }
}

rt::Task<Status> Host::Close() {
  closed_ = true;
  CO_TRY_STATUS(co_await watch_.Close());
  CO_TRY_STATUS(co_await reconciler_.Close());
  CO_TRY_STATUS(co_await leases_.Close());
  CO_TRY_STATUS(co_await record_->Close());
  CO_TRY_STATUS(co_await scope_.Close());
  co_return co_await record_->Close();
}

rt::Task<Status> Host::Abandon() {
  closed_ = true;
  scope_.Cancel();
  CO_TRY_STATUS(co_await record_->Abandon());
  CO_TRY_STATUS(co_await watch_.Close());
  CO_TRY_STATUS(co_await reconciler_.Close());
  CO_TRY_STATUS(co_await leases_.Close());
  co_return co_await scope_.Close();
}

}  // namespace berth::poollet
