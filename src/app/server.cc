// SPDX-License-Identifier: Apache-2.0
#include "app/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "apis/k8s/certificate_signing_request.h"
#include "apis/registry.h"
#include "apiserver/audit/audit_log.h"
#include "apiserver/authn/authenticator.h"
#include "apiserver/authn/request_limiter.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/authz/pool_authorizer.h"
#include "apiserver/cache/watch_cache.h"
#include "apiserver/fairness/request_gate.h"
#include "apiserver/http/api_server.h"
#include "apiserver/policy/bootstrap.h"
#include "apiserver/policy/policy_feed.h"
#include "apiserver/registry/cached_pool_objects.h"
#include "apiserver/registry/cluster_identity.h"
#include "apiserver/registry/compactor.h"
#include "apiserver/registry/loopback_client.h"
#include "apiserver/registry/store_registry.h"
#include "apiserver/scheduling/scheduling_service.h"
#include "app/commit_trace.h"
#include "app/fleet_server.h"
#include "app/server_store.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cli/files.h"
#include "client/certificates/signers.h"
#include "controller/builtin/builtin_controllers.h"
#include "controller/certificates/certificate_signer.h"
#include "meta/scheme.h"
#include "net/http_server.h"
#include "net/owned_fd.h"
#include "net/socket.h"
#include "net/tls.h"
#include "net/url.h"
#include "pki/certificate_authority.h"
#include "pki/kubeconfig.h"
#include "rt/join_all.h"
#include "rt/scope.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"

namespace berth::app {
namespace {

Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Unavailable("data folder " + path + ": " + error.message());
  if (chmod(path.c_str(), 0700) != 0)
    return Unavailable("data folder " + path + ": " + std::strerror(errno));
  return OkStatus();
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data())
                                                        : std::string("localhost");
}

// What controllers leave to the first hosts and the first placements after a start.
constexpr Duration kControllersPause = Duration::Millis(300);

bool IsWildcard(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

Result<std::optional<apiserver::AuditPolicy>> ReadAuditPolicy(const std::string& path) {
  if (path.empty()) return std::optional<apiserver::AuditPolicy>();
  Result<std::string> text = cli::ReadFile(path);
  if (!text.ok()) return text.status().Wrap("--audit-policy");
  Result<apiserver::AuditPolicy> policy = apiserver::AuditPolicy::Parse(*text);
  if (!policy.ok()) return policy.status().Wrap("--audit-policy " + path);
  return std::optional(*std::move(policy));
}

std::vector<const meta::KindInfo*> StoredKinds(const meta::Scheme& scheme) {
  std::vector<const meta::KindInfo*> kinds;
  for (const meta::KindInfo* kind : scheme.kinds()) {
    if (kind->storage == meta::Storage::kStored) kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace

// Members are declared in the order in which they start; Stop() goes backwards.
struct Server::Parts {
  Parts(rt::AsioLoop& the_loop, ServerOptions the_options)
      : loop(the_loop),
        options(std::move(the_options)),
        kubeconfig_path(options.data_dir + "/kubeconfig"),
        scheme(apis::AllKinds(), options.domains),
        authenticator(metrics),
        authorizer(scheme),
        limiter({}, metrics),
        gate(loop, {}, metrics),
        scope(the_loop) {}

  rt::AsioLoop& loop;
  const ServerOptions options;
  std::string url;
  const std::string kubeconfig_path;
  metrics::Registry metrics;
  const meta::Scheme scheme;
  rt::ThreadPool blocking{{.threads = 1, .queue_max = 1024, .name = "blocking"}};

  std::shared_ptr<net::OwnedFd> gateway_listener;
  std::unique_ptr<CommitTrace> commit_trace;
  std::optional<pki::CertificateAuthority> authority;
  pki::Credentials credentials;
  std::unique_ptr<ServerStore> store;
  std::unique_ptr<apiserver::WatchCache> cache;
  std::unique_ptr<apiserver::StoreRegistry> registry;

  apiserver::Authenticator authenticator;
  apiserver::Authorizer authorizer;
  std::optional<apiserver::CachedPoolObjects> pool_objects;
  std::optional<apiserver::PoolAuthorizer> pool_authorizer;
  apiserver::RequestLimiter limiter;
  apiserver::RequestGate gate;
  std::unique_ptr<apiserver::AuditLog> audit;
  std::unique_ptr<apiserver::PolicyFeed> policy;
  std::unique_ptr<apiserver::LoopbackClient> client;
  std::unique_ptr<controller::BuiltinControllers> controllers;
  std::unique_ptr<controller::CertificateSigner> signer;
  std::unique_ptr<apiserver::Compactor> compactor;
  std::unique_ptr<apiserver::SchedulingService> scheduling;
  std::unique_ptr<FleetServer> fleet;
  std::unique_ptr<apiserver::ApiServer> api;
  std::unique_ptr<net::HttpServer> http;
  rt::TaskScope scope;  // controllers

  Status ListenForHosts();
  rt::Task<Status> OpenStore();
  rt::Task<Status> StartRegistry();
  rt::Task<Status> StartPolicy();
  void StartControllers();
  rt::Task<Status> RunControllers();
  bool MayBootstrap(const apis::k8s::CertificateSigningRequestSpec& request,
                    const client::PoolSubject& pool) const;
  Status StartHttp();
  Status LoadAuthority();
  Result<std::shared_ptr<const net::TlsContext>> MakeTls();
  rt::Task<Status> StartFleet();
  rt::Task<Status> StartAll();
  rt::Task<Status> StopAll();
};

// First of all: a thousand hosts that are refused try again every few milliseconds, while those who
// are connected wait.
Status Server::Parts::ListenForHosts() {
  TRY(const int fd, net::ListenTcp(options.gateway_host, options.gateway_port));
  gateway_listener = std::make_shared<net::OwnedFd>(fd);
  return OkStatus();
}

rt::Task<Status> Server::Parts::OpenStore() {
  if (!options.commit_trace.empty()) {
    CO_TRY(commit_trace, CommitTrace::Open(options.commit_trace));
  }
  CO_TRY(store, co_await ServerStore::Open(loop, options, commit_trace.get()));
  co_return OkStatus();
}

rt::Task<Status> Server::Parts::StartRegistry() {
  apiserver::WatchCacheOptions cache_options;
  CO_TRY(cache,
         co_await apiserver::WatchCache::Start(
             loop, store->handle(), StoredKinds(scheme), cache_options));
  registry = std::make_unique<apiserver::StoreRegistry>(loop, store->handle(), *cache, scheme);
  pool_objects.emplace(*cache);
  pool_authorizer.emplace(scheme, *pool_objects);
  authorizer.UsePools(*pool_authorizer);
  co_return OkStatus();
}

rt::Task<Status> Server::Parts::StartPolicy() {
  CO_TRY_STATUS(co_await apiserver::EnsureDefaults(*registry, scheme));
  CO_TRY(policy, co_await apiserver::PolicyFeed::Start(loop, *registry, authorizer, authenticator));
  apiserver::AuditFile::Options file;
  file.path = options.data_dir + "/audit.log";
  CO_TRY(auto audit_policy, ReadAuditPolicy(options.audit_policy));
  CO_TRY(
      audit,
      apiserver::AuditLog::Open(std::move(file), loop, blocking, metrics, std::move(audit_policy)));
  co_return OkStatus();
}

void Server::Parts::StartControllers() {
  const apiserver::Identity identity{
      .user = "system:berth", .groups = {"system:masters"}, .uid = {}};
  client = std::make_unique<apiserver::LoopbackClient>(*registry, scheme, identity);
  controllers = std::make_unique<controller::BuiltinControllers>(loop, *client, scheme);
  signer = std::make_unique<controller::CertificateSigner>(
      loop, *client, *authority, [this](const auto& request, const client::PoolSubject& pool) {
        return MayBootstrap(request, pool);
      });
  compactor = std::make_unique<apiserver::Compactor>(store->handle());
  scope.Spawn("compactor", compactor->Run());
  scope.Spawn("store.upkeep", store->Upkeep());
}

// They read everything too, which can wait until the first hosts are back.
rt::Task<Status> Server::Parts::RunControllers() {
  CO_TRY_STATUS(co_await fleet->placing().Wait());
  CO_TRY_STATUS(co_await rt::Sleep(kControllersPause));
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(controllers->Run());
  tasks.push_back(signer->Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

bool Server::Parts::MayBootstrap(const apis::k8s::CertificateSigningRequestSpec& request,
                                 const client::PoolSubject& pool) const {
  const meta::KindInfo& kind = apis::k8s::kCertificateSigningRequestKind;
  return authorizer.AllowsByRoles({.user = request.username, .groups = request.groups},
                                  {.is_resource = true,
                                   .verb = "create",
                                   .group = std::string(kind.group),
                                   .version = std::string(kind.version),
                                   .resource = std::string(kind.plural),
                                   .subresource = std::string(pool.subresource),
                                   .name = pool.pool});
}

Status Server::Parts::LoadAuthority() {
  const WallTime now = loop.WallNow();
  TRY(authority, pki::CertificateAuthority::LoadOrCreate(options.data_dir + "/pki", now));
  std::vector<std::string> names = options.names;
  if (IsWildcard(options.host) || IsWildcard(options.gateway_host)) {
    for (auto& address : pki::HostAddresses()) names.push_back(std::move(address));
  }
  if (!IsWildcard(options.gateway_host)) names.push_back(options.gateway_host);
  TRY(credentials,
      authority->ServerCredentials(pki::ServerNamesFor(options.host, HostName(), names), now));
  return OkStatus();
}

Result<std::shared_ptr<const net::TlsContext>> Server::Parts::MakeTls() {
  net::TlsServerOptions tls;
  tls.certificate_pem = credentials.certificate_pem;
  tls.key_pem = credentials.key_pem;
  tls.client_certificates = net::ClientCertificates::kOptional;
  tls.client_ca_pem = authority->certificate_pem();
  return net::TlsContext::NewServer(tls);
}

rt::Task<Status> Server::Parts::StartFleet() {
  CO_TRY(auto cluster, co_await apiserver::CountStart(loop, store->handle()));
  FleetServerOptions fleet_options;
  fleet_options.host = options.gateway_host;
  fleet_options.port = options.gateway_port;
  fleet_options.listener = gateway_listener;
  fleet_options.certificate_pem = credentials.certificate_pem;
  fleet_options.key_pem = credentials.key_pem;
  fleet_options.names = options.names;
  if (fleet_options.names.empty() && IsWildcard(options.gateway_host)) {
    fleet_options.names = pki::HostAddresses();
  }
  scheduling = std::make_unique<apiserver::SchedulingService>(apiserver::SchedulingService::Deps{
      .loop = loop,
      .scheme = scheme,
      .registry = *registry,
      .authenticator = authenticator,
      .authorizer = authorizer,
      .audit = [this](const apiserver::AuditRecord& record) { audit->Record(record); },
      .metrics = metrics});
  const FleetServer::Deps deps{.loop = loop,
                               .client = *client,
                               .scheme = scheme,
                               .authority = *authority,
                               .metrics = metrics,
                               .scheduling = *scheduling};
  CO_TRY(fleet, co_await FleetServer::Start(deps, std::move(cluster), std::move(fleet_options)));
  controllers->UseBulk(&fleet->bulk());
  scope.Spawn("controllers", RunControllers());
  co_return OkStatus();
}

Status Server::Parts::StartHttp() {
  api = std::make_unique<apiserver::ApiServer>(
      apiserver::ApiServer::Deps{.loop = loop,
                                 .scheme = scheme,
                                 .registry = *registry,
                                 .authenticator = authenticator,
                                 .authorizer = authorizer,
                                 .limiter = limiter,
                                 .gate = gate,
                                 .audit = *audit,
                                 .metrics = metrics,
                                 .readiness = [this] { return store->health(); },
                                 .advice = &fleet->advice(),
                                 .rooms = &fleet->rooms(),
                                 .fleet = &fleet->fleet()});
  net::HttpServerOptions http_options;
  http_options.address = options.host;
  http_options.port = options.port;
  TRY(http_options.tls, MakeTls());
  TRY(http, net::HttpServer::Start(loop, std::move(http_options), [this](net::HttpRequest request) {
        return api->Handle(std::move(request));
      }));
  const std::string host = IsWildcard(options.host) ? "127.0.0.1" : options.host;
  url = "https://" + net::FormatHostPort(host, http->port());
  return pki::WriteAdminKubeconfig(kubeconfig_path, url, *authority, loop.WallNow());
}

rt::Task<Status> Server::Parts::StartAll() {
  CO_TRY_STATUS(MakeFolder(options.data_dir));
  CO_TRY_STATUS(ListenForHosts());
  CO_TRY_STATUS(co_await OpenStore());
  CO_TRY_STATUS(co_await StartRegistry());
  CO_TRY_STATUS(co_await StartPolicy());
  CO_TRY_STATUS(LoadAuthority());
  StartControllers();
  CO_TRY_STATUS(co_await StartFleet());
  co_return StartHttp();
}

rt::Task<Status> Server::Parts::StopAll() {
  // Each step has nothing above it that still uses it.
  if (http != nullptr) CO_TRY_STATUS(co_await http->Stop());
  if (fleet != nullptr) CO_TRY_STATUS(co_await fleet->Stop());
  CO_TRY_STATUS(co_await scope.Close());
  if (policy != nullptr) CO_TRY_STATUS(co_await policy->Close());
  if (audit != nullptr) CO_TRY_STATUS(co_await audit->Close());
  if (cache != nullptr) CO_TRY_STATUS(co_await cache->Close());
  if (store != nullptr) CO_TRY_STATUS(co_await store->Close());
  co_return OkStatus();
}

rt::Task<Result<std::unique_ptr<Server>>> Server::Start(rt::AsioLoop& loop, ServerOptions options) {
  auto parts = std::make_unique<Parts>(loop, std::move(options));
  const Status started = co_await parts->StartAll();
  if (!started.ok()) {
    const Status stopped = co_await parts->StopAll();
    if (!stopped.ok()) LOG_WARNING("while stopping: {}", stopped.ToString());
    co_return started;
  }
  co_return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Server::~Server() = default;

rt::Task<Status> Server::Stop() { co_return co_await parts_->StopAll(); }
const std::string& Server::url() const { return parts_->url; }
const std::string& Server::gateway_address() const { return parts_->fleet->address(); }
const std::string& Server::kubeconfig_path() const { return parts_->kubeconfig_path; }

}  // namespace berth::app
