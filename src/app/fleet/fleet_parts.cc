// SPDX-License-Identifier: Apache-2.0
#include "app/fleet/fleet_parts.h"

#include <utility>

#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kLookForPlacing = Duration::Millis(10);
constexpr Duration kPlacingLimit = Duration::Seconds(2);

}  // namespace

FleetParts::FleetParts(Deps deps, const client::ClusterIdentity& cluster, FleetPartsOptions options)
    : gateway_(gateway::Gateway::Deps{.loop = deps.loop,
                                      .client = deps.client,
                                      .binder = deps.binder,
                                      .tombstones = deps.tombstones,
                                      .rewound = deps.rewound,
                                      .scheme = deps.scheme,
                                      .authority = deps.authority,
                                      .entropy = deps.entropy,
                                      .leads = deps.leads},
               cluster,
               {.servers = std::move(options.servers),
                .cores = options.cores,
                .heartbeat = options.heartbeat}),
      scope_(deps.loop) {
  gateway_.Start();
  fleet::Fleet& fleet = deps.view ? deps.view(gateway_) : gateway_;
  scheduler::SchedulerOptions scheduler_options;
  scheduler_options.holder = cluster.id + '-' + std::to_string(cluster.start);
  // This server leads, or is the only one: whoever led before is dead, or writes nothing any more.
  scheduler_options.take_over = client::TakeOver::kAtOnce;
  scheduler_options.seed = options.scheduler_seed;
  scheduler_options.placer.recheck = options.recheck;
  scheduler_ =
      std::make_unique<scheduler::Scheduler>(scheduler::Scheduler::Deps{.loop = deps.loop,
                                                                        .client = deps.client,
                                                                        .binder = deps.binder,
                                                                        .fleet = fleet,
                                                                        .scheme = deps.scheme,
                                                                        .metrics = deps.metrics},
                                             std::move(scheduler_options));
  scope_.Spawn("scheduler", scheduler_->Run());
  pool_loss_ =
      std::make_unique<controller::PoolLoss>(controller::PoolLoss::Deps{.loop = deps.loop,
                                                                        .client = deps.client,
                                                                        .binder = deps.binder,
                                                                        .fleet = fleet,
                                                                        .scheme = deps.scheme});
  scope_.Spawn("pool loss", RunPoolLoss(deps.loop));
  reservations_ = std::make_unique<controller::Reservations>(controller::Reservations::Deps{
      .loop = deps.loop, .client = deps.client, .binder = deps.binder, .scheme = deps.scheme});
  scope_.Spawn("reservations", reservations_->Run());
}

FleetParts::~FleetParts() = default;

// It reads every machine, and has nothing to decide for seconds: placing goes first.
rt::Task<Status> FleetParts::RunPoolLoss(rt::Loop& loop) {
  const Time limit = loop.Now() + kPlacingLimit;
  while (!scheduler_->ready() && loop.Now() < limit) {
    CO_TRY_STATUS(co_await rt::Sleep(kLookForPlacing));
  }
  co_return co_await pool_loss_->Run();
}

void FleetParts::Report(client::HealthReport& report) const {
  gateway_.Report(report);
  scheduler_->Report(report);
  pool_loss_->Report(report);
  reservations_->Report(report);
}

net::RpcRoutes FleetParts::routes() {
  net::RpcRoutes routes;
  gateway_.AddRoutes(routes);
  return routes;
}

}  // namespace berth::app
