// SPDX-License-Identifier: Apache-2.0
// A ServerProcess is one life of a server: the real API registry on a memory store, the real
// controllers, gateway and scheduler, on a loop and a network that are simulated. It is started,
// and killed; the next life is another object on the same disk. With a store that several share it
// stands for election as a real one does, and has controllers, gateway and scheduler once it leads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry/compactor.h"
#include "apiserver/registry/loopback_client.h"
#include "apiserver/registry/store_registry.h"
#include "app/fleet/fleet_parts.h"
#include "app/leading/candidacy.h"
#include "app/leading/server_list.h"
#include "base/metrics.h"
#include "controller/builtin/builtin_controllers.h"
#include "meta/scheme.h"
#include "net/sim/sim_network.h"
#include "pki/certificate_authority.h"
#include "pki/entropy.h"
#include "rt/scope.h"
#include "sim/broken.h"
#include "sim/moments.h"
#include "sim/process_loop.h"
#include "sim/reign_store.h"
#include "sim/shared_store.h"
#include "sim/watched_binder.h"
#include "sim/watched_fleet.h"
#include "sim/watched_store.h"
#include "store/faults/faulty_store.h"
#include "store/fenced/fenced_store.h"
#include "store/memory/memory_store.h"

namespace berth::sim {

// Where a server serves its hosts.
inline std::string AddressOf(const std::string& node) { return node + ":7443"; }

// Learns what is in the store.
class StoreReader {
 public:
  virtual ~StoreReader() = default;
  // The whole of it, when a server starts.
  virtual void Loaded(const store::RangeResult& all) = 0;
  // What changed then, in order.
  virtual void Changed(const store::WatchBatch& batch) = 0;
};

class ServerProcess {
 public:
  // Everything outlives the process.
  struct Deps {
    ProcessLoop& loop;
    net::SimNetwork& network;
    std::shared_ptr<store::MemoryDisk> disk;
    const meta::Scheme& scheme;
    const pki::CertificateAuthority& authority;
    pki::Entropy& entropy;
    Acknowledged& acknowledged;
    StoreReader& reader;
    Moments& moments;
    // If several servers share a store: that, the way to it, and who is told what its leaders do.
    SharedStore* shared = nullptr;
    StoreLink* link = nullptr;
    ReignWitness* witness = nullptr;
  };
  struct Options {
    std::string node = "server";
    uint64_t life = 1;  // different for every life of every server
    uint64_t seed = 1;
    store::StoreFaults faults;  // once it serves
    Broken broken = Broken::kNothing;
    // Set if history was rewound by a restore.
    struct Rewound {
      client::ClusterIdentity replaced;
      store::Revision revision;  // that the replaced store had come to
    };
    std::optional<Rewound> rewound;
    // It has led and another one does now: it is to be killed and started anew. Called inside an
    // event.
    std::function<void()> on_deposed = [] {};
  };
  ServerProcess(Deps deps, Options options);
  // REQUIRES: Kill() was awaited.
  ~ServerProcess();

  // Serves when it returns.
  rt::Task<Status> Start();
  // The same, without waiting for it: `done` hears how it ended, inside an event.
  void Begin(std::function<void(Status)> done);
  // kill -9, as far as anybody outside can see: from the call on nothing is written.
  rt::Task<Status> Kill();

  // It answers requests.
  bool is_serving() const { return is_serving_; }
  // It has hosts and places, or believes so. The largest reign is the latest.
  bool is_leading() const { return is_leading_; }
  store::Revision reign() const { return reign_; }
  // By its own clock.
  bool holds_lease() const { return candidacy_ == nullptr || candidacy_->leads(); }
  uint64_t life() const { return options_.life; }
  ProcessLoop& loop() { return deps_.loop; }
  const std::string& node() const { return options_.node; }

  client::Client& client() { return *users_client_; }
  WatchedBinder& binder() { return *binder_; }
  WatchedFleet& fleet() { return *fleet_; }
  app::FleetParts& parts() { return *parts_; }
  const client::ClusterIdentity& cluster() const { return cluster_; }
  // What users and checkers ask; cancelled by Kill.
  rt::TaskScope& requests() { return requests_; }
  // REQUIRES: it serves.
  void SetFaults(store::StoreFaults faults) { faulty_->SetFaults(faults); }

  // Another scheduler, as if a second server led.
  void StartSecondScheduler();
  rt::Task<Status> StopSecondScheduler();
  bool has_second_scheduler() const { return second_ != nullptr; }

 private:
  rt::Task<Status> OpenStore();
  rt::Task<Status> OpenOwnStore();
  rt::Task<Status> Rewind();
  rt::Task<Status> Follow();
  // What only one server of a store may have; all that it writes goes through `store` and `client`.
  rt::Task<Status> StartParts(store::Store* store, apiserver::LoopbackClient* client);
  void StartCandidacy();
  rt::Task<Status> Lead();
  rt::Task<Status> StartReign(store::Condition fence);
  rt::Task<Status> BeginTask(std::function<void(Status)> done);

  const Deps deps_;
  const Options options_;
  metrics::Registry metrics_;
  metrics::Registry second_metrics_;
  client::ClusterIdentity cluster_;
  std::unique_ptr<store::MemoryStore> memory_;
  std::unique_ptr<store::Store> handle_;
  std::unique_ptr<store::Store> raw_;  // beside everything that fails
  std::unique_ptr<BrokenStore> broken_store_;
  std::unique_ptr<WatchedStore> watched_;
  std::unique_ptr<store::FaultyStore> faulty_;
  std::unique_ptr<apiserver::WatchCache> cache_;
  std::unique_ptr<apiserver::StoreRegistry> registry_;
  std::unique_ptr<apiserver::LoopbackClient> client_;
  std::unique_ptr<BrokenClient> users_client_;
  // If the store is shared.
  std::unique_ptr<app::ServerList> list_;
  std::unique_ptr<app::Candidacy> candidacy_;
  std::unique_ptr<ReignStore> reign_store_;
  std::unique_ptr<store::FencedStore> fenced_;
  std::unique_ptr<apiserver::StoreRegistry> reign_registry_;
  std::unique_ptr<apiserver::LoopbackClient> reign_client_;

  std::unique_ptr<BrokenClient> controllers_client_;
  std::unique_ptr<BrokenClient> parts_client_;
  std::unique_ptr<controller::BuiltinControllers> controllers_;
  std::unique_ptr<apiserver::Compactor> compactor_;
  std::unique_ptr<BrokenBinder> broken_binder_;
  std::unique_ptr<WatchedBinder> binder_;
  std::unique_ptr<WatchedFleet> fleet_;
  std::unique_ptr<app::FleetParts> parts_;
  std::unique_ptr<net::RpcServer> server_;
  std::unique_ptr<scheduler::Scheduler> second_;
  store::Revision loaded_;
  store::Revision reign_;
  bool is_serving_ = false;
  bool is_leading_ = false;
  rt::TaskScope starting_;
  rt::TaskScope standing_;  // for election
  rt::TaskScope following_;
  rt::TaskScope scope_;  // controllers
  rt::TaskScope second_scope_;
  rt::TaskScope requests_;
};

}  // namespace berth::sim
