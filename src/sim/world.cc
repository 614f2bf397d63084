// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <fmt/format.h>

#include "apis/compute/machine.h"
#include "apis/registry.h"
#include "client/records/config_record.h"
#include "client/records/host_record.h"
#include "iri/labels.h"
#include "iri/object.h"
#include "poollet/record/record.h"
#include "rt/sleep.h"
#include "sim/leave_checker.h"

namespace berth::sim {
namespace {

// Secrets of a simulation are nobody's: they come from the seed.
class SeededEntropy final : public pki::Entropy {
 public:
  explicit SeededEntropy(uint64_t seed) : random_(seed) {}
  std::string Draw(size_t count) override {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_.Below(256));
    return bytes;
  }

 private:
  Random random_;
};

net::SimNetworkOptions NetworkOptions() {
  net::SimNetworkOptions options;
  options.spike_chance = 0.001;
  return options;
}

// One more than the fakes have: half of a host.
iri::MachineClass HugeClass() {
  iri::MachineClass huge;
  huge.name = "huge";
  huge.capabilities = {{std::string(iri::kCpu), 8}, {std::string(iri::kMemory), 16LL << 30}};
  return huge;
}

int64_t DrawClock(Random& random, double percent) {
  const auto most = static_cast<int64_t>(percent * 10'000);
  return most == 0 ? 0 : random.Between(-most, most);
}

// The store may refuse it now and then.
rt::Task<Status> WriteHostRecord(client::Client* client, std::string host, WallTime now) {
  constexpr int kAttempts = 50;
  const client::HostRecord record{.grant = {}, .keys = {"key"}, .joined = now};
  const auto fill = [record](client::RecordEntries& entries) {
    entries = client::FormatHostRecord(record);
    return true;
  };
  Status written;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    written = (co_await client::EditRecord(*client, client::HostRecordName(host), fill)).status();
    if (written.ok()) break;
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(100)));
  }
  co_return written;
}

}  // namespace

World::World(const Scenario& scenario,
             uint64_t seed,
             Broken broken,
             const pki::CertificateAuthority& authority)
    : scenario_(scenario),
      seed_(seed),
      broken_(broken),
      loop_(seed),
      random_(seed ^ 0x73696d756c617465ULL),
      network_(loop_, NetworkOptions()),
      scheme_(apis::AllKinds(), {"ironcore.dev", "OpenKCM.dev"}),
      authority_(authority),
      entropy_(std::make_unique<SeededEntropy>(seed)) {
  const auto servers = static_cast<size_t>(scenario.servers);
  for (size_t i = 0; i < servers; ++i) {
    const std::string node = i == 0 ? "server" : fmt::format("server-{}", i + 1);
    seats_.push_back(std::make_unique<Seat>(
        loop_, node, DrawClock(random_, scenario.clock_skew), seed * 31 + i));
    network_.AddNode(node, seats_.back()->loop);
  }
  checkers_.push_back(std::make_unique<DurableChecker>(*this, acknowledged_));
  // Before capacity: a binding that changes its pool may also be one too many there.
  checkers_.push_back(std::make_unique<BoundOnceChecker>(*this));
  checkers_.push_back(std::make_unique<CapacityChecker>(*this));
  checkers_.push_back(std::make_unique<OneCopyChecker>(*this));
  checkers_.push_back(std::make_unique<AskedChecker>(*this));
  checkers_.push_back(std::make_unique<ReasonChecker>(*this));
  checkers_.push_back(std::make_unique<LeaveChecker>(*this));
  const auto overwritten =
      servers > 1 ? WatchChecker::Overwritten::kMayBeMissing : WatchChecker::Overwritten::kIsShown;
  for (size_t i = 0; i < servers; ++i) {
    auto& of_server = watch_checkers_.emplace_back();
    for (const meta::KindInfo* kind : WatchChecker::Kinds()) {
      auto watch = std::make_unique<WatchChecker>(*this, *kind, overwritten);
      of_server.push_back(watch.get());
      checkers_.push_back(std::move(watch));
    }
  }
  auto one_leader = std::make_unique<OneLeaderChecker>(*this);
  one_leader_checker_ = one_leader.get();
  checkers_.push_back(std::move(one_leader));
  auto failover = std::make_unique<FailoverChecker>(*this);
  failover_checker_ = failover.get();
  checkers_.push_back(std::move(failover));
  if (servers > 1) shared_ = std::make_unique<SharedStore>(loop_);
  At(Duration::Seconds(1), [this] { Tick(); });
}

World::~World() = default;

void World::SayFault(std::string line) {
  ++faults_;
  Say("FAULT " + line);
}

void World::Fail(std::string_view checker, std::string what) {
  if (violation_) return;
  Say(fmt::format("VIOLATION {}: {}", checker, what));
  violation_ = Violation{.checker = std::string(checker), .what = std::move(what), .at = now()};
}

// ---- What the store tells.

void World::Loaded(const store::RangeResult& all) {
  for (const auto& checker : checkers_) checker->OnLoaded(all);
  std::set<std::string> stored;
  for (const store::KeyValue& item : all.items) stored.insert(item.key);
  std::vector<std::string> gone;
  for (const auto& [key, fact] : truth_.keys()) {
    if (!stored.contains(key)) gone.push_back(key);
  }
  for (const std::string& key : gone) {
    if (const auto change = truth_.Apply(key, std::nullopt, all.revision)) Tell(*change);
  }
  for (const store::KeyValue& item : all.items) {
    const auto known = truth_.keys().find(item.key);
    if (known != truth_.keys().end() && known->second.revision == item.mod_revision) continue;
    if (const auto change = truth_.Apply(item.key, item.value, item.mod_revision)) Tell(*change);
  }
}

void World::Changed(const store::WatchBatch& batch) {
  for (const store::Event& event : batch.events) {
    const bool puts = event.type == store::Event::Type::kPut;
    const auto change = truth_.Apply(
        event.kv.key, puts ? std::optional(event.kv.value) : std::nullopt, event.kv.mod_revision);
    if (change) Tell(*change);
  }
}

void World::Tell(const Truth::Change& change) {
  RememberPools();
  if (change.now && change.now->kind == &apis::compute::kMachineKind) {
    machines_seen_.insert(change.now->uid);
  }
  for (const auto& checker : checkers_) checker->OnChange(change);
  if (!change.now && !change.before) return;
  if (change.now && change.before && change.before->release.empty() &&
      change.now->release == apis::core::kReleasePreempted) {
    moments_->Preempting(change.now->uid);
  }
  const PlacedFact& fact = change.now ? *change.now : *change.before;
  if (change.before && (!change.now || change.now->uid != change.before->uid)) {
    gone_since_backup_.insert(change.before->uid);
  }
  const std::string was = change.before ? change.before->pool : "";
  if (!change.now) {
    Say(fmt::format("{} {} is gone", fact.kind->kind, fact.key.name));
  } else if (!change.before || was != fact.pool || change.before->is_deleting != fact.is_deleting) {
    Say(fmt::format("{} {} {} P{}{}{}",
                    fact.kind->kind,
                    fact.key.name,
                    fact.pool.empty() ? "without a pool" : "on " + fact.pool,
                    fact.epoch,
                    fact.reservation_uid.empty() ? "" : ", in reserved room",
                    fact.is_deleting ? ", deleting" : ""));
  }
}

// A pool belongs to the host that was given its name when the pool first appeared.
void World::RememberPools() {
  for (const auto& [uid, pool] : truth_.pools()) {
    if (host_of_pool_.contains(uid)) continue;
    const auto owner = pool_owners_.find(pool.name);
    if (owner == pool_owners_.end()) continue;
    for (const auto& [other_uid, index] : host_of_pool_) {
      const auto other = truth_.pools().find(other_uid);
      const bool is_twin = other != truth_.pools().end() && other->second.name == pool.name;
      if (!is_twin && index != owner->second && hosts_[index]->pools() == pool.name) {
        branches_.Reach(Branch::kPoolReborn);
      }
    }
    host_of_pool_[uid] = owner->second;
  }
}

HostProcess* World::HostOf(const std::string& pool_uid) const {
  const auto found = host_of_pool_.find(pool_uid);
  return found == host_of_pool_.end() ? nullptr : hosts_[found->second].get();
}

Time World::LastTrouble(const HostProcess& host) const {
  const auto found = trouble_.find(host.index());
  return found == trouble_.end() ? Time() : found->second;
}

void World::Trouble(const HostProcess& host) {
  trouble_[host.index()] = now();
  host_trouble_ = now();
  failover_checker_->Excuse();
}

void World::TroubleForAll() {
  for (const auto& host : hosts_) trouble_[host->index()] = now();
}

// ---- Running.

void World::AfterStep() {
  if (dirty_.empty()) return;
  for (const size_t index : std::exchange(dirty_, {})) {
    for (const auto& checker : checkers_) checker->OnHost(*hosts_[index]);
  }
}

void World::Tick() {
  if (is_shared()) {
    ServerProcess* serving = leader();
    const bool is_well = serving != nullptr && IsWell(SeatOf(*serving));
    const uint64_t life = is_well ? serving->life() : 0;
    if (life != serving_life_) serving_since_ = is_well ? std::optional(now()) : std::nullopt;
    serving_life_ = life;
  }
  for (const auto& checker : checkers_) checker->OnTick();
  for (const auto& host : hosts_) dirty_.insert(host->index());
  At(Duration::Seconds(1), [this] { Tick(); });
}

void World::At(Duration delay, std::function<void()> fn) {
  agenda_.emplace(std::pair(now() + delay, ++last_entry_), std::move(fn));
}

void World::RunUntil(Time until) {
  while (!violation_) {
    while (!urgent_.empty() && !violation_) {
      const std::function<void()> fn = std::move(urgent_.front());
      urgent_.pop_front();
      fn();
    }
    while (!agenda_.empty() && agenda_.begin()->first.first <= now() && !violation_) {
      const std::function<void()> fn = std::move(agenda_.begin()->second);
      agenda_.erase(agenda_.begin());
      fn();
    }
    if (now() >= until) return;
    if (!urgent_.empty()) continue;
    const Time next = agenda_.empty() ? until : std::min(until, agenda_.begin()->first.first);
    if (next <= now()) continue;
    const bool stopped = loop_.RunUntil(
        [this] {
          AfterStep();
          return violation_.has_value() || !urgent_.empty();
        },
        next - now());
    if (!stopped) loop_.RunFor(next - now());
  }
}

// As a disk that says "written" too early.
void World::LosePartOfDisk() {
  constexpr int kLost = 20;
  for (int i = 0; i < kLost && !disk_->records.empty(); ++i) {
    disk_->records.erase(std::prev(disk_->records.end()));
  }
}

void World::TakeBackup() {
  backup_ = std::make_unique<store::MemoryDisk>(*disk_);
  backup_truth_ = truth_;
  gone_since_backup_.clear();
  Say("a backup is taken");
}

bool World::BackupKnows(const HostProcess& host) const {
  for (const auto& [uid, pool] : backup_truth_.pools()) {
    if (HostOf(uid) == &host) return true;
  }
  return false;
}

void World::RestoreBackup() {
  Seat& seat = *seats_.front();
  const client::ClusterIdentity replaced = seat.process->cluster();
  KillServer(seat);
  if (seat.process != nullptr) return;  // paused
  for (const auto& [uid, fact] : truth_.placed()) {
    const PlacedFact* then = backup_truth_.Find(uid);
    const bool is_lost = then == nullptr || then->pool_uid != fact.pool_uid ||
                         then->epoch != fact.epoch || then->release != fact.release ||
                         then->is_deleting != fact.is_deleting;
    if (is_lost) rewound_uids_.insert(uid);
  }
  rewound_uids_.insert(gone_since_backup_.begin(), gone_since_backup_.end());
  const store::Revision revision = truth_.last_revision();
  *disk_ = *backup_;
  rewound_ = {.replaced = replaced, .revision = revision};
  truth_ = backup_truth_;
  for (const auto& checker : checkers_) checker->OnRestore();
  for (const auto& host : hosts_) {
    for (const auto& [id, machine] : host->state().machines()) {
      const std::string uid(iri::LabelOf(machine.object.metadata, iri::kMachineUidLabel));
      if (truth_.Find(uid) == nullptr) branches_.Reach(Branch::kRestored);
    }
  }
}

// ---- Life of hosts.

void World::AddHost(const std::string& name, const std::string& pools, HostShape shape) {
  HostProcess::Options options;
  options.index = hosts_.size();
  options.name = name;
  options.pools = pools;
  options.shape = shape;
  for (const auto& seat : seats_) options.servers.push_back(AddressOf(seat->node));
  options.seed = seed_ * 7919 + options.index;
  options.clock_parts_per_million = DrawClock(random_, scenario_.clock_skew);
  options.fake = runtime::DefaultFakeHost();
  options.fake.machine_classes.push_back(HugeClass());
  options.fake.name = name;
  options.fake.times.call_min = Duration::Micros(200);
  options.fake.times.call_max = Duration::Millis(5);
  const auto cpus = static_cast<int64_t>(scenario_.cpus);
  options.fake.capacity["cpu"] = cpus * 1000;
  options.fake.capacity["memory"] = cpus * (4LL << 30);
  if (shape.is_foreign) options.fake.flavor = runtime::FakeFlavor::kForeign;
  if (broken_ == Broken::kCapacity) {
    options.fake.lies.capacity_factor = 2;
    options.fake.lies.accepts_everything = true;
  }
  if (broken_ == Broken::kOversize) options.fake.lies.accepts_everything = true;
  options.broken = broken_;
  HostProcess::Hooks hooks = host_hooks_(options.index);
  hooks.touched = [this, index = options.index, then = std::move(hooks.touched)](
                      const runtime::FakeHostState::Touched& what) {
    dirty_.insert(index);
    then(what);
  };
  pool_owners_[pools] = options.index;
  hosts_.push_back(std::make_unique<HostProcess>(
      loop_, network_, authority_, std::move(options), std::move(hooks)));
  Enrol(name);
}

void World::Enrol(const std::string& host) {
  ServerProcess* process = server();
  const Status enrolled =
      RunOn(process->loop(), WriteHostRecord(&process->client(), host, loop_.WallNow()));
  CHECK(enrolled.ok()) << enrolled;
}

void World::StartHost(HostProcess& host) {
  if (host.is_up()) return;
  host.disk().FailWrites(OkStatus());
  network_.Restart(host.name());
  const Status started = RunOn(host.loop(), host.Start());
  if (!started.ok()) {
    Fail("record", fmt::format("{} does not start: {}", host.name(), started.ToString()));
  }
  Trouble(host);
  Say(host.name() + " runs");
}

void World::StopHost(HostProcess& host, poollet::LeaveMode mode, std::function<void()> left) {
  Trouble(host);
  Say(fmt::format("{} is stopped, {}",
                  host.name(),
                  mode == poollet::LeaveMode::kDrain ? "with a drain" : "keeping what it has"));
  host.Leave(mode, [this, &host, left = std::move(left)] {
    Soon([this, &host, left] {
      // Somebody may have killed it, and started it again, meanwhile.
      if (!host.has_left()) return;
      // What has ended cannot sleep.
      if (host.loop().paused()) {
        network_.Resume(host.name());
        host.loop().Resume();
      }
      KillHost(host, net::CrashStyle::kReset);
      Say(host.name() + " has stopped");
      left();
    });
  });
}

// In the middle, where no crash leaves its marks.
void World::SpoilRecord(HostProcess& host) {
  std::string& record = host.disk().files()[std::string(poollet::kRecordFile)];
  constexpr size_t kInside = 30;  // of the first entry
  if (record.size() > kInside) record[kInside] = static_cast<char>(record[kInside] ^ 1);
}

void World::KillHost(HostProcess& host, net::CrashStyle style) {
  if (!host.is_up() || host.loop().paused()) return;
  Trouble(host);
  network_.Crash(host.name(), style);
  const Status killed = RunOn(host.loop(), host.Kill());
  CHECK(killed.ok()) << killed;
  if (broken_ == Broken::kSpoiltRecord) SpoilRecord(host);
}

uint64_t World::Hash() const {
  uint64_t hash = loop_.trace_hash() ^ (trace_.hash() * 0x9e3779b97f4a7c15ULL);
  for (const auto& [key, fact] : truth_.keys()) {
    hash = (hash ^ fact.hash ^ static_cast<uint64_t>(fact.revision.value)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace berth::sim
