// SPDX-License-Identifier: Apache-2.0
#include "app/fleet_server.h"

#include <unistd.h>

#include <thread>
#include <utility>

#include "base/log.h"
#include "client/records/cluster_record.h"
#include "controller/pool_loss/pool_loss.h"
#include "controller/reservations/reservations.h"
#include "gateway/gateway.h"
#include "net/h2/h2_server.h"
#include "net/rpc.h"
#include "net/url.h"
#include "pki/entropy.h"
#include "rt/scope.h"
#include "scheduler/placing/scheduler.h"

namespace berth::app {

// Members are declared in the order in which they start; Stop() goes backwards.
struct FleetServer::Parts {
  Parts(Deps the_deps, FleetServerOptions the_options)
      : deps(the_deps), options(std::move(the_options)), scope(deps.loop) {}

  Deps deps;
  const FleetServerOptions options;
  std::string address;
  std::unique_ptr<gateway::Gateway> gateway;
  std::unique_ptr<net::H2Server> server;
  std::unique_ptr<scheduler::Scheduler> scheduler;
  std::unique_ptr<controller::PoolLoss> pool_loss;
  std::unique_ptr<controller::Reservations> reservations;
  rt::TaskScope scope;  // scheduler, pool loss, reservations

  rt::Task<Status> StartAll(client::ClusterIdentity cluster);
  Status StartGateway(const client::ClusterIdentity& cluster);
  void StartScheduler(const client::ClusterIdentity& cluster);
  rt::Task<Status> StopAll();
};

Status FleetServer::Parts::StartGateway(const client::ClusterIdentity& cluster) {
  net::TlsServerOptions tls;
  // Hosts that join pin the authority: they must see its certificate.
  tls.certificate_pem = options.certificate_pem + deps.authority.certificate_pem();
  tls.key_pem = options.key_pem;
  tls.client_certificates = net::ClientCertificates::kOptional;
  tls.client_ca_pem = deps.authority.certificate_pem();
  tls.expired_client_certificates = net::ExpiredCertificates::kMark;
  net::H2ServerOptions server_options;
  server_options.address = options.host;
  server_options.port = options.port;
  TRY(server_options.tls, net::NewH2ServerTls(std::move(tls)));
  gateway::GatewayOptions gateway_options;
  gateway_options.cores = std::max(1U, std::thread::hardware_concurrency());
  gateway =
      std::make_unique<gateway::Gateway>(gateway::Gateway::Deps{.loop = deps.loop,
                                                                .client = deps.client,
                                                                .binder = deps.client,
                                                                .tombstones = deps.client,
                                                                .scheme = deps.scheme,
                                                                .authority = deps.authority,
                                                                .entropy = pki::SystemEntropy()},
                                         cluster,
                                         std::move(gateway_options));
  net::RpcRoutes routes;
  gateway->AddRoutes(routes);
  deps.scheduling.AddRoutes(routes);
  gateway->Start();
  TRY(server, net::H2Server::Start(deps.loop, std::move(server_options), std::move(routes)));
  const std::string host = options.names.empty() ? options.host : options.names.front();
  address = net::FormatHostPort(host, server->port());
  std::vector<std::string> servers;
  for (const std::string& name : options.names) {
    servers.push_back(net::FormatHostPort(name, server->port()));
  }
  if (servers.empty()) servers.push_back(address);
  gateway->SetServers(std::move(servers));
  return OkStatus();
}

void FleetServer::Parts::StartScheduler(const client::ClusterIdentity& cluster) {
  scheduler::SchedulerOptions scheduler_options;
  scheduler_options.holder = cluster.id + '-' + std::to_string(cluster.start);
  // The store is this process' own: whoever led before is dead.
  scheduler_options.take_over = client::TakeOver::kAtOnce;
  scheduler =
      std::make_unique<scheduler::Scheduler>(scheduler::Scheduler::Deps{.loop = deps.loop,
                                                                        .client = deps.client,
                                                                        .binder = deps.client,
                                                                        .fleet = *gateway,
                                                                        .scheme = deps.scheme,
                                                                        .metrics = deps.metrics},
                                             std::move(scheduler_options));
  scope.Spawn("scheduler", scheduler->Run());
  pool_loss =
      std::make_unique<controller::PoolLoss>(controller::PoolLoss::Deps{.loop = deps.loop,
                                                                        .client = deps.client,
                                                                        .binder = deps.client,
                                                                        .fleet = *gateway,
                                                                        .scheme = deps.scheme});
  scope.Spawn("pool loss", pool_loss->Run());
  reservations = std::make_unique<controller::Reservations>(controller::Reservations::Deps{
      .loop = deps.loop, .client = deps.client, .binder = deps.client, .scheme = deps.scheme});
  scope.Spawn("reservations", reservations->Run());
}

rt::Task<Status> FleetServer::Parts::StartAll(client::ClusterIdentity cluster) {
  CO_TRY_STATUS(co_await client::PublishCluster(deps.client, cluster));
  CO_TRY_STATUS(StartGateway(cluster));
  StartScheduler(cluster);
  co_return OkStatus();
}

rt::Task<Status> FleetServer::Parts::StopAll() {
  CO_TRY_STATUS(co_await scope.Close());
  // Sessions end first, and with them the calls that the server waits for.
  if (gateway != nullptr) CO_TRY_STATUS(co_await gateway->Close());
  if (server != nullptr) CO_TRY_STATUS(co_await server->Stop());
  co_return OkStatus();
}

rt::Task<Result<std::unique_ptr<FleetServer>>> FleetServer::Start(Deps deps,
                                                                  client::ClusterIdentity cluster,
                                                                  FleetServerOptions options) {
  auto parts = std::make_unique<Parts>(deps, std::move(options));
  const Status started = co_await parts->StartAll(std::move(cluster));
  if (!started.ok()) {
    const Status stopped = co_await parts->StopAll();
    if (!stopped.ok()) LOG_WARNING("while stopping: {}", stopped.ToString());
    co_return started;
  }
  co_return std::unique_ptr<FleetServer>(new FleetServer(std::move(parts)));
}

FleetServer::FleetServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
FleetServer::~FleetServer() = default;

rt::Task<Status> FleetServer::Stop() { co_return co_await parts_->StopAll(); }
const std::string& FleetServer::address() const { return parts_->address; }
fleet::Fleet& FleetServer::fleet() { return *parts_->gateway; }
client::BulkCreator& FleetServer::bulk() { return parts_->scheduler->bulk(); }
client::PlacementAdvice& FleetServer::advice() { return parts_->scheduler->advice(); }
const client::PoolRooms& FleetServer::rooms() const { return parts_->scheduler->rooms(); }

}  // namespace berth::app
