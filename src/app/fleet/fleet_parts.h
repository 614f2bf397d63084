// SPDX-License-Identifier: Apache-2.0
// FleetParts puts together what hosts talk to and what places things on them: gateway, scheduler
// and what acts when hosts fall silent or room is reserved. It has no network, store or clock of
// its own, so a server and a simulation run the same parts. On-loop only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "client/binder.h"
#include "client/cache/health_report.h"
#include "client/client.h"
#include "client/cluster.h"
#include "client/rewound.h"
#include "client/tombstones.h"
#include "controller/pool_loss/pool_loss.h"
#include "controller/reservations/reservations.h"
#include "fleet/fleet.h"
#include "gateway/gateway.h"
#include "meta/scheme.h"
#include "net/rpc.h"
#include "pki/certificate_authority.h"
#include "pki/entropy.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"
#include "scheduler/placing/scheduler.h"

namespace berth::app {

struct FleetPartsOptions {
  std::vector<std::string> servers;  // "host:port" of every gateway, for hosts to remember
  size_t cores = 2;                  // of this server
  uint64_t scheduler_seed = 1;       // breaks ties between equal pools
  Duration heartbeat = gateway::kHeartbeat;
  // When the scheduler looks again at what waits, even if nothing happened that could help it.
  Duration recheck = scheduler::PlacerOptions().recheck;
};

class FleetParts {
 public:
  // Everything outlives the parts.
  struct Deps {
    rt::Loop& loop;
    client::Client& client;
    client::Binder& binder;
    client::Tombstones& tombstones;
    client::Rewound& rewound;
    const meta::Scheme& scheme;
    const pki::CertificateAuthority& authority;
    pki::Entropy& entropy;
    metrics::Registry& metrics;
    // What scheduler and controllers see of the fleet, made from the gateway; empty: the gateway.
    std::function<fleet::Fleet&(fleet::Fleet& gateway)> view;
    // Of the gateway (gateway/gateway.h); empty: this server always leads.
    std::function<bool()> leads = {};
  };
  // `cluster` counts this start already. Everything runs when it returns; nothing is served yet.
  FleetParts(Deps deps, const client::ClusterIdentity& cluster, FleetPartsOptions options);
  // REQUIRES: StopPlacing() and then StopSessions() were awaited.
  ~FleetParts();

  // What a server has to serve for hosts.
  net::RpcRoutes routes();
  gateway::Gateway& gateway() { return gateway_; }
  scheduler::Scheduler& scheduler() { return *scheduler_; }
  // How well each part keeps up.
  void Report(client::HealthReport& report) const;

  rt::Task<Status> StopPlacing() { return scope_.Close(); }
  rt::Task<Status> StopSessions() { return gateway_.Close(); }

 private:
  rt::Task<Status> RunPoolLoss(rt::Loop& loop);

  gateway::Gateway gateway_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<controller::PoolLoss> pool_loss_;
  std::unique_ptr<controller::Reservations> reservations_;
  rt::TaskScope scope_;  // scheduler, pool loss, reservations
};

}  // namespace berth::app
