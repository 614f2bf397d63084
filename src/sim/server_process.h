// SPDX-License-Identifier: Apache-2.0
// A ServerProcess is one life of a server: the real API registry on a memory store, the real
// controllers, gateway and scheduler, on a loop and a network that are simulated. It is started,
// and killed; the next life is another object on the same disk.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry/compactor.h"
#include "apiserver/registry/loopback_client.h"
#include "apiserver/registry/store_registry.h"
#include "app/fleet/fleet_parts.h"
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
#include "sim/watched_binder.h"
#include "sim/watched_fleet.h"
#include "sim/watched_store.h"
#include "store/faults/faulty_store.h"
#include "store/memory/memory_store.h"

namespace berth::sim {

inline constexpr char kServerNode[] = "server";
inline constexpr char kServerAddress[] = "server:7443";

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
  };
  struct Options {
    uint64_t seed = 1;
    store::StoreFaults faults;  // once it serves
    Broken broken = Broken::kNothing;
    // Set if history was rewound by a restore.
    struct Rewound {
      client::ClusterIdentity replaced;
      store::Revision revision;  // that the replaced store had come to
    };
    std::optional<Rewound> rewound;
  };
  ServerProcess(Deps deps, Options options);
  // REQUIRES: Kill() was awaited.
  ~ServerProcess();

  // Serves when it returns.
  rt::Task<Status> Start();
  // kill -9, as far as anybody outside can see: from the call on nothing is written.
  rt::Task<Status> Kill();

  apiserver::LoopbackClient& client() { return *client_; }
  WatchedBinder& binder() { return *binder_; }
  WatchedFleet& fleet() { return *fleet_; }
  app::FleetParts& parts() { return *parts_; }
  const client::ClusterIdentity& cluster() const { return cluster_; }
  // What users and checkers ask; cancelled by Kill.
  rt::TaskScope& requests() { return requests_; }
  void SetFaults(store::StoreFaults faults) { faulty_->SetFaults(faults); }

  // Another scheduler, as if a second server led.
  void StartSecondScheduler();
  rt::Task<Status> StopSecondScheduler();
  bool has_second_scheduler() const { return second_ != nullptr; }

 private:
  rt::Task<Status> OpenStore();
  rt::Task<Status> Rewind();
  rt::Task<Status> Follow();
  rt::Task<Status> StartParts();

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
  std::unique_ptr<BrokenClient> parts_client_;
  std::unique_ptr<controller::BuiltinControllers> controllers_;
  std::unique_ptr<apiserver::Compactor> compactor_;
  std::unique_ptr<WatchedBinder> binder_;
  std::unique_ptr<WatchedFleet> fleet_;
  std::unique_ptr<app::FleetParts> parts_;
  std::unique_ptr<net::RpcServer> server_;
  std::unique_ptr<scheduler::Scheduler> second_;
  store::Revision loaded_;
  rt::TaskScope following_;
  rt::TaskScope scope_;  // controllers
  rt::TaskScope second_scope_;
  rt::TaskScope requests_;
};

}  // namespace berth::sim
