// SPDX-License-Identifier: Apache-2.0
#include "app/fleet_server.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "app/fleet/fleet_parts.h"
#include "base/log.h"
#include "base/strings.h"
#include "client/records/cluster_record.h"
#include "net/h2/h2_server.h"
#include "net/relay/threaded_server.h"
#include "net/rpc.h"
#include "net/url.h"
#include "pki/entropy.h"
#include "rt/loop_lag.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

// How often a start looks whether everything was read, and for how long others wait for a scheduler
// that cannot lead.
constexpr Duration kLookForSync = Duration::Millis(1);
constexpr Duration kPlacingLimit = Duration::Seconds(2);

}  // namespace

// Members are declared in the order in which they start; Stop() goes backwards.
struct FleetServer::Parts {
  Parts(Deps the_deps, FleetServerOptions the_options)
      : deps(the_deps), options(std::move(the_options)), scope(the_deps.loop) {}

  Deps deps;
  const FleetServerOptions options;
  std::string address;
  std::vector<std::string> own;     // "host:port" where hosts reach this server
  std::vector<std::string> others;  // and where they reach the other ones
  std::unique_ptr<FleetParts> fleet;
  std::unique_ptr<rt::LoopLag> lag;  // of the server's thread
  std::unique_ptr<net::ThreadedServer> server;
  rt::Event placing;
  rt::TaskScope scope;

  rt::Task<Status> StartAll(client::ClusterIdentity cluster);
  Result<std::shared_ptr<const net::TlsContext>> MakeTls(const pki::Credentials& credentials) const;
  Result<net::H2ServerOptions> ServerOptions() const;
  rt::Task<Status> OpenDoors();
  rt::Task<Status> StopAll();
};

Result<std::shared_ptr<const net::TlsContext>> FleetServer::Parts::MakeTls(
    const pki::Credentials& credentials) const {
  net::TlsServerOptions tls;
  // Hosts that join pin the authority: they must see its certificate.
  tls.certificate_pem = credentials.certificate_pem + deps.authority.certificate_pem();
  tls.key_pem = credentials.key_pem;
  tls.client_certificates = net::ClientCertificates::kOptional;
  tls.client_ca_pem = deps.authority.certificate_pem();
  tls.expired_client_certificates = net::ExpiredCertificates::kMark;
  return net::NewH2ServerTls(std::move(tls));
}

Result<net::H2ServerOptions> FleetServer::Parts::ServerOptions() const {
  net::H2ServerOptions server_options;
  server_options.address = options.host;
  server_options.port = options.port;
  server_options.listener = options.listener;
  server_options.doors = net::Acceptor::Doors::kWhenOpened;
  TRY(server_options.tls,
      MakeTls({.certificate_pem = options.certificate_pem, .key_pem = options.key_pem}));
  return server_options;
}

rt::Task<Status> FleetServer::Parts::StartAll(client::ClusterIdentity cluster) {
  CO_TRY_STATUS(co_await client::PublishCluster(deps.client, cluster));
  CO_TRY(net::H2ServerOptions server_options, ServerOptions());
  FleetPartsOptions parts_options;
  parts_options.cores = std::max(1U, std::thread::hardware_concurrency());
  parts_options.heartbeat = options.heartbeat;
  fleet = std::make_unique<FleetParts>(FleetParts::Deps{.loop = deps.loop,
                                                        .client = deps.client,
                                                        .binder = deps.client,
                                                        .tombstones = deps.client,
                                                        .rewound = deps.client,
                                                        .scheme = deps.scheme,
                                                        .authority = deps.authority,
                                                        .entropy = pki::SystemEntropy(),
                                                        .metrics = deps.metrics,
                                                        .view = {},
                                                        .leads = options.leads},
                                       cluster,
                                       std::move(parts_options));
  net::RpcRoutes routes = fleet->routes();
  deps.scheduling.AddRoutes(routes);
  CO_TRY(server,
         co_await net::ThreadedServer::Start(
             &deps.loop, std::move(server_options), std::move(routes)));
  lag = std::make_unique<rt::LoopLag>(server->loop(), "hosts", deps.metrics);
  const std::string host = options.names.empty() ? options.host : options.names.front();
  address = net::FormatHostPort(host, server->port());
  for (const std::string& name : options.names) {
    own.push_back(net::FormatHostPort(name, server->port()));
  }
  if (own.empty()) own.push_back(address);
  fleet->gateway().SetServers(own);
  scope.Spawn("fleet.doors", OpenDoors());
  co_return OkStatus();
}

// A handshake is 2 ms of the network's thread. Those of a whole fleet that returns would only take
// processors from the gateway while it reads what it has to know before it can welcome anybody.
rt::Task<Status> FleetServer::Parts::OpenDoors() {
  while (!fleet->gateway().synced()) CO_TRY_STATUS(co_await rt::Sleep(kLookForSync));
  server->Open();
  LOG_INFO("hosts may connect to {}", address);
  const Time limit = deps.loop.Now() + kPlacingLimit;
  while (!fleet->scheduler().ready() && deps.loop.Now() < limit) {
    CO_TRY_STATUS(co_await rt::Sleep(kLookForSync));
  }
  placing.Set();
  co_return OkStatus();
}

rt::Task<Status> FleetServer::Parts::StopAll() {
  CO_TRY_STATUS(co_await scope.Close());
  if (fleet != nullptr) {
    CO_TRY_STATUS(co_await fleet->StopPlacing());
    // Sessions end first, and with them the calls that the server waits for.
    CO_TRY_STATUS(co_await fleet->StopSessions());
  }
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
rt::Event& FleetServer::placing() { return parts_->placing; }
fleet::Fleet& FleetServer::fleet() { return parts_->fleet->gateway(); }
void FleetServer::SetServers(std::vector<std::string> servers) {
  std::vector<std::string> others = servers;
  std::erase_if(others, [this](const std::string& server) {
    return std::ranges::find(parts_->own, server) != parts_->own.end();
  });
  if (others != std::exchange(parts_->others, others) && !others.empty()) {
    LOG_INFO("hosts are told of these servers, too: {}", Join(others, ", "));
  }
  parts_->fleet->gateway().SetServers(std::move(servers), std::move(others));
}
void FleetServer::SetServerAddresses(const std::vector<std::string>& addresses) {
  parts_->fleet->gateway().SetServerAddresses(addresses);
}
std::vector<client::HeldCertificate> FleetServer::Certificates() const {
  return parts_->fleet->gateway().Certificates();
}
Status FleetServer::OnAuthority(const pki::Credentials& credentials) {
  TRY(auto tls, parts_->MakeTls(credentials));
  parts_->server->SetTls(std::move(tls));
  parts_->fleet->gateway().OnAuthority();
  return OkStatus();
}
client::BulkCreator& FleetServer::bulk() { return parts_->fleet->scheduler().bulk(); }
client::PlacementAdvice& FleetServer::advice() { return parts_->fleet->scheduler().advice(); }
const client::PoolRooms& FleetServer::rooms() const { return parts_->fleet->scheduler().rooms(); }
void FleetServer::Report(client::HealthReport& report) const { parts_->fleet->Report(report); }

}  // namespace berth::app
