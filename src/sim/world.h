// SPDX-License-Identifier: Apache-2.0
// A World is a server, or several that share a store, and their hosts on one simulated loop, and
// everything that can be done to them from outside: kill, start, pause, cut off, restore. It is
// driven from outside the loop; what is decided inside an event is done right after it (Soon).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gateway/testing/temp_authority.h"
#include "meta/scheme.h"
#include "net/sim/sim_network.h"
#include "rt/join_all.h"
#include "rt/scope.h"
#include "rt/sim/sim_loop.h"
#include "sim/branches.h"
#include "sim/broken.h"
#include "sim/checkers.h"
#include "sim/host_process.h"
#include "sim/leader_checkers.h"
#include "sim/scenario.h"
#include "sim/server_process.h"
#include "sim/shared_store.h"
#include "sim/sight.h"
#include "sim/trace.h"

namespace berth::sim {

struct Violation {
  std::string checker;
  std::string what;
  Time at;
};

// Where a server runs, one life after the other.
struct Seat {
  Seat(rt::SimLoop& world, std::string name, int64_t clock, uint64_t seed)
      : node(std::move(name)), loop(world, node, clock), link(seed) {}

  const std::string node;
  ProcessLoop loop;
  StoreLink link;            // to a store that is shared
  bool is_isolated = false;  // hosts do not reach it
  std::unique_ptr<ServerProcess> process;
  std::optional<Time> serving_since;
};

class World final : public Sight, private StoreReader {
 public:
  // The moments outlive the world's processes; the authority may be shared between worlds.
  World(const Scenario& scenario,
        uint64_t seed,
        Broken broken,
        const pki::CertificateAuthority& authority);
  ~World() override;

  // Before anything is started.
  void UseMoments(Moments& moments) { moments_ = &moments; }
  void UseHostHooks(std::function<HostProcess::Hooks(size_t host)> hooks) {
    host_hooks_ = std::move(hooks);
  }

  // Life. All are called from outside the loop.
  // Starts what is to be there before hosts are: one server, or all, of which one leads.
  void StartServers();
  void StartServer(Seat& seat);
  void KillServer(Seat& seat);
  void AddHost(const std::string& name, const std::string& pools, HostShape shape);
  void StartHost(HostProcess& host);
  // Stops it as its operator would; `left` is called when it is down, unless it was killed before.
  void StopHost(HostProcess& host, poollet::LeaveMode mode, std::function<void()> left);
  void KillHost(HostProcess& host, net::CrashStyle style);
  // The store is replaced by the backup; the server is started on it.
  void TakeBackup();
  bool has_backup() const { return backup_ != nullptr; }
  // Whether a pool of the host is in the backup.
  bool BackupKnows(const HostProcess& host) const;
  // REQUIRES: the server runs.
  void RestoreBackup();
  // All of them; then what the store has is compared with what they acknowledged.
  void KillServers();
  void CheckStore();
  void KillEverything();

  // Runs until `until` or a violation; what is on the agenda is done on the way.
  void RunUntil(Time until);
  void At(Duration delay, std::function<void()> fn);
  // After the present event.
  void Soon(std::function<void()> fn) { urgent_.push_back(std::move(fn)); }
  // Forgets what is on the agenda.
  void ClearAgenda() { agenda_.clear(); }
  // Runs a task on a loop of the world to its end.
  template <class T>
  T RunOn(rt::Loop& loop, rt::Task<T> task);

  void Say(std::string line) { trace_.Add(loop_.Now(), line); }
  // Something went wrong on purpose.
  void SayFault(std::string line);
  void Trouble(const HostProcess& host);
  void TroubleForAll();
  // Sends what was made for the client of server().
  void Send(std::string_view what, rt::Task<Status> request);
  void AskDeletion(const std::string& uid) { asked_.insert(uid); }
  void SetFaults(store::StoreFaults faults);

  // Sight.
  const Truth& truth() const override { return truth_; }
  Time now() const override { return loop_.Now(); }
  std::span<const std::unique_ptr<HostProcess>> hosts() const override { return hosts_; }
  HostProcess* HostOf(const std::string& pool_uid) const override;
  bool WasDeletionAsked(const std::string& uid) const override { return asked_.contains(uid); }
  bool WasRewound(const std::string& uid) const override { return rewound_uids_.contains(uid); }
  std::optional<Time> ServingSince() const override { return serving_since_; }
  Time LastTrouble(const HostProcess& host) const override;
  uint64_t incarnation() const override { return incarnation_; }
  void Fail(std::string_view checker, std::string what) override;

  // A server that can be sent requests, the next one in turn; null if none can.
  ServerProcess* server();
  // The server that has the hosts and is not paused, the latest that does; null if none is.
  ServerProcess* leader();
  Seat& SeatOf(const ServerProcess& process);
  std::span<const std::unique_ptr<Seat>> seats() const { return seats_; }
  bool is_shared() const { return shared_ != nullptr; }
  // Something is about to happen to the leader, which loses it; or to any server, so that nobody
  // can promise anything.
  void LeaderIsLost(Seat& seat);
  void ServersAreDisturbed() { failover_checker_->Excuse(); }
  // Of several servers: how many leaders were lost, each counted once.
  size_t losses() const { return lost_reigns_.size(); }
  const FailoverChecker& failovers() const { return *failover_checker_; }
  rt::SimLoop& loop() { return loop_; }
  net::SimNetwork& network() { return network_; }
  Random& random() { return random_; }
  Branches& branches() { return branches_; }
  const Scenario& scenario() const { return scenario_; }
  const Trace& trace() const { return trace_; }
  uint64_t faults() const { return faults_; }
  uint64_t seed() const { return seed_; }
  Broken broken() const { return broken_; }
  const std::optional<Violation>& violation() const { return violation_; }
  uint64_t Hash() const;
  // Machines that ever were.
  size_t machines_seen() const { return machines_seen_.size(); }

 private:
  // StoreReader.
  void Loaded(const store::RangeResult& all) override;
  void Changed(const store::WatchBatch& batch) override;

  void Enrol(const std::string& host);
  void WatchStore();
  rt::Task<Status> FollowStore();
  void Started(Seat& seat, uint64_t life, const Status& status);
  void StartAnew(Seat& seat, uint64_t life, std::string why);
  bool IsWell(const Seat& seat) const;
  void LosePartOfDisk();
  static void SpoilRecord(HostProcess& host);
  void Tell(const Truth::Change& change);
  void AfterStep();
  void Tick();
  void RememberPools();

  const Scenario scenario_;
  const uint64_t seed_;
  const Broken broken_;
  rt::SimLoop loop_;
  Random random_;
  net::SimNetwork network_;
  const meta::Scheme scheme_;
  const pki::CertificateAuthority& authority_;
  std::unique_ptr<pki::Entropy> entropy_;
  Moments* moments_ = nullptr;
  std::function<HostProcess::Hooks(size_t)> host_hooks_;

  std::shared_ptr<store::MemoryDisk> disk_ = std::make_shared<store::MemoryDisk>();
  std::unique_ptr<store::MemoryDisk> backup_;
  Truth backup_truth_;
  Acknowledged acknowledged_;
  Truth truth_;
  std::map<std::string, size_t> host_of_pool_;  // by UID of the pool
  std::map<std::string, size_t> pool_owners_;   // by name of the pool: the last host that got it
  std::set<std::string> asked_;
  std::set<std::string> machines_seen_;
  std::set<std::string> rewound_uids_;
  std::set<std::string> gone_since_backup_;  // UIDs: a restore forgets that they went
  std::vector<std::unique_ptr<HostProcess>> hosts_;
  std::set<size_t> dirty_;  // hosts whose runtime has changed
  std::map<size_t, Time> trouble_;
  std::unique_ptr<SharedStore> shared_;  // null: the one server has its own
  std::unique_ptr<rt::TaskScope> following_;
  std::vector<std::unique_ptr<Seat>> seats_;
  size_t door_ = 0;  // whose turn it is
  std::optional<ServerProcess::Options::Rewound> rewound_;
  store::StoreFaults store_faults_;
  std::optional<Time> serving_since_;
  uint64_t serving_life_ = 0;
  Time host_trouble_;  // the last of any single host
  uint64_t starts_ = 0;
  uint64_t incarnation_ = 1;

  std::vector<std::unique_ptr<Checker>> checkers_;
  std::vector<std::vector<WatchChecker*>> watch_checkers_;  // by server: one per kind
  OneLeaderChecker* one_leader_checker_ = nullptr;
  FailoverChecker* failover_checker_ = nullptr;
  std::set<store::Revision> lost_reigns_;
  Branches branches_;
  Trace trace_;
  uint64_t faults_ = 0;
  std::optional<Violation> violation_;
  std::multimap<std::pair<Time, uint64_t>, std::function<void()>> agenda_;
  uint64_t last_entry_ = 0;
  std::deque<std::function<void()>> urgent_;
};

template <class T>
T World::RunOn(rt::Loop& loop, rt::Task<T> task) {
  constexpr Duration kLimit = Duration::Minutes(10);
  std::optional<T> answer;
  rt::TaskScope scope(loop);
  scope.Spawn("sim.run", rt::internal::StoreResult(std::move(task), &answer));
  const bool ended = loop_.RunUntil(
      [this, &scope] {
        AfterStep();
        return scope.size() == 0;
      },
      kLimit);
  CHECK(ended) << "seed " << seed_ << ": a task did not end within " << FormatDuration(kLimit);
  return *std::move(answer);
}

}  // namespace berth::sim
