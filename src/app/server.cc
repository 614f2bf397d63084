// SPDX-License-Identifier: Apache-2.0
#include "app/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "apis/registry.h"
#include "apiserver/audit/audit_log.h"
#include "apiserver/authn/authenticator.h"
#include "apiserver/authn/request_limiter.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/authz/pool_authorizer.h"
#include "apiserver/cache/watch_cache.h"
#include "apiserver/fairness/request_gate.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/api_server.h"
#include "apiserver/policy/bootstrap.h"
#include "apiserver/policy/policy_feed.h"
#include "apiserver/registry/cached_pool_objects.h"
#include "apiserver/registry/loopback_client.h"
#include "apiserver/registry/store_registry.h"
#include "apiserver/scheduling/scheduling_service.h"
#include "app/authority/authority_keeper.h"
#include "app/commit_trace.h"
#include "app/leader_parts.h"
#include "app/leading/candidacy.h"
#include "app/leading/server_list.h"
#include "app/leading/servers_in_kubeconfig.h"
#include "app/leading/shared_authority.h"
#include "app/process/open_files.h"
#include "app/process/process_figures.h"
#include "app/server_store.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/uid.h"
#include "cli/files.h"
#include "meta/scheme.h"
#include "net/h2/h2_sessions.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/owned_fd.h"
#include "net/rpc.h"
#include "net/socket.h"
#include "net/splice/threaded_splicer.h"
#include "net/tls.h"
#include "net/url.h"
#include "pki/certificate_authority.h"
#include "pki/kubeconfig.h"
#include "rt/deadline.h"
#include "rt/loop_lag.h"
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

// Of servers that share a store: hosts notice a silent one after three of these.
constexpr Duration kSharedHeartbeat = Duration::Millis(500);
// How often hosts get the present list of servers to remember, and the leader's certificate their
// names.
constexpr Duration kListEvery = Duration::Seconds(2);
// How often a server that does not lead looks where hosts' connections are to go.
constexpr Duration kLookAtLeader = Duration::Millis(250);
// How often the kubeconfig is compared with it.
constexpr Duration kFollowEvery = Duration::Seconds(2);
constexpr Duration kLeaveLimit = Duration::Seconds(2);
// How servers talk to each other.
constexpr Duration kPeerLifetime = Duration::Hours(24);
constexpr Duration kPeerConnectLimit = Duration::Seconds(5);
constexpr size_t kPeerConnectionsMax = 1024;
constexpr std::string_view kPeerUser = "system:berth:server:";

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

  rt::LoopLag lag{loop, "main", metrics};
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
  std::unique_ptr<apiserver::SchedulingService> scheduling;
  std::unique_ptr<apiserver::ApiServer> api;
  std::unique_ptr<net::H2Sessions> grpc;  // on the API's port
  std::unique_ptr<net::HttpServer> http;
  std::unique_ptr<apiserver::LoopbackClient> client;
  std::unique_ptr<AuthorityKeeper> authority_keeper;
  // With a store that others use too.
  std::unique_ptr<ServerList> list;
  std::unique_ptr<Candidacy> candidacy;
  std::unique_ptr<net::ThreadedSplicer> passing;  // hosts' connections, while another server leads
  bool passes_on = false;
  std::vector<std::string> answered;    // names of all servers, in the leader's certificate
  std::unique_ptr<LeaderParts> leader;  // while this server leads; it does so once
  rt::TaskScope scope;                  // upkeep, candidacy

  std::string gateway_address;

  bool is_shared() const { return options.etcd.has_value(); }
  Status ListenForHosts();
  Status CheckAuthority() const;
  rt::Task<Status> OpenStore();
  rt::Task<Status> StartRegistry();
  rt::Task<Status> StartPolicy();
  void MakeScheduling();
  Status StartHttp(apiserver::Hosts hosts);
  rt::Task<Status> LoadAuthority();
  pki::ServerNames OwnNames(const std::vector<std::string>& more) const;
  Status IssueOwnCertificate();
  Result<pki::Credentials> HostCredentials() const;
  void StartAuthorityKeeper();
  std::vector<OldUser> SeenWith(const std::string& name) const;
  Status OnAuthority();
  Result<std::shared_ptr<const net::TlsContext>> MakeTls();
  std::vector<std::string> Gateways() const;
  std::vector<std::string> HostNames() const;
  std::string PeerUrl() const;
  Result<std::unique_ptr<net::HttpClient>> ConnectPeer(const std::string& peer);
  rt::Task<Status> StartLeading(std::optional<Reign> reign);
  rt::Task<Status> StartCandidacy();
  rt::Task<Status> StartPassing();
  rt::Task<Status> FollowServers();
  rt::Task<Status> FollowLeader();
  rt::Task<Status> Lead();
  rt::Task<Status> BeginReign(store::Condition fence);
  rt::Task<Result<std::vector<std::string>>> AllNames();
  Status AnswerFor(std::vector<std::string> names);
  rt::Task<Status> TellServers();
  rt::Task<Status> StartAll();
  rt::Task<Status> LeaveOthers();
  rt::Task<Status> StopAll();
};

// First of all: a thousand hosts that are refused try again every few milliseconds, while those who
// are connected wait. One of several servers has nothing for hosts before it knows who leads: there
// it is good that they are refused.
Status Server::Parts::ListenForHosts() {
  TRY(const int fd, net::BindTcp(options.gateway_host, options.gateway_port));
  gateway_listener = std::make_shared<net::OwnedFd>(fd);
  if (!is_shared()) TRY_STATUS(net::Listen(fd));
  gateway_address = Gateways().front();
  return OkStatus();
}

// "host:port" of this server, under all its names.
std::vector<std::string> Server::Parts::Gateways() const {
  const auto bound = net::ParseHostPort(net::LocalAddress(gateway_listener->get()), 0);
  const uint16_t port = bound.ok() ? bound->port : options.gateway_port;
  std::vector<std::string> hosts = options.names;
  if (hosts.empty() && IsWildcard(options.gateway_host)) hosts = pki::HostAddresses();
  if (hosts.empty()) hosts.push_back(options.gateway_host);
  for (std::string& host : hosts) host = net::FormatHostPort(host, port);
  return hosts;
}

// By which hosts may call this server, with the addresses that its connections come from. Every
// certificate has those of the loopback.
std::vector<std::string> Server::Parts::HostNames() const {
  const pki::ServerNames names = OwnNames(pki::HostAddresses());
  const pki::ServerNames loopback = pki::ServerNamesFor("", "");
  std::vector<std::string> out;
  std::ranges::set_difference(names.dns_names, loopback.dns_names, std::back_inserter(out));
  std::ranges::set_difference(names.addresses, loopback.addresses, std::back_inserter(out));
  return out;
}

// Where other servers find this one.
std::string Server::Parts::PeerUrl() const {
  std::vector<std::string> hosts = options.names;
  if (hosts.empty() && IsWildcard(options.host)) hosts = pki::HostAddresses();
  const bool is_known = !hosts.empty() && IsWildcard(options.host);
  return is_known ? "https://" + net::FormatHostPort(hosts.front(), http->port()) : url;
}

// As one of the servers, which may ask in the name of others as every administrator may.
Result<std::unique_ptr<net::HttpClient>> Server::Parts::ConnectPeer(const std::string& peer) {
  const pki::ClientSubject subject{.user = std::string(kPeerUser) + store->id(),
                                   .groups = {std::string(apiserver::kMastersGroup)},
                                   .lifetime = kPeerLifetime};
  TRY(const pki::Credentials own, authority->IssueClient(subject, loop.WallNow()));
  net::HttpClientOptions client_options;
  client_options.url = peer;
  client_options.connect_timeout = kPeerConnectLimit;
  client_options.connections_max = kPeerConnectionsMax;
  TRY(client_options.tls,
      net::TlsContext::NewClient({.ca_pem = authority->certificate_pem(),
                                  .certificate_pem = own.certificate_pem,
                                  .key_pem = own.key_pem}));
  return net::HttpClient::New(loop, std::move(client_options));
}

// Before anything is made in a folder that may not be the one that was meant. Servers that share a
// store take its authority: they look when they open it (server_store.cc).
Status Server::Parts::CheckAuthority() const {
  if (options.no_authority == pki::NoAuthority::kMakesOne || is_shared()) return OkStatus();
  const std::string folder = options.data_dir + "/pki";
  return pki::CertificateAuthority::LoadOrCreate(folder, loop.WallNow(), options.no_authority)
      .status();
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
  cache_options.unreadable = &metrics.GetGauge(
      "berth_unreadable_objects", "Objects in the store that cannot be read and are passed over.");
  CO_TRY(cache,
         co_await apiserver::WatchCache::Start(
             loop, store->handle(), StoredKinds(scheme), cache_options));
  registry = std::make_unique<apiserver::StoreRegistry>(loop, store->handle(), *cache, scheme);
  pool_objects.emplace(*cache);
  pool_authorizer.emplace(scheme, *pool_objects);
  authorizer.UsePools(*pool_authorizer);
  const apiserver::Identity identity{
      .user = "system:berth", .groups = {"system:masters"}, .uid = {}};
  client = std::make_unique<apiserver::LoopbackClient>(*registry, scheme, identity);
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

// Whether this server leads or not: it needs the registry, not the hosts.
void Server::Parts::MakeScheduling() {
  scheduling = std::make_unique<apiserver::SchedulingService>(
      apiserver::SchedulingService::Deps{.loop = loop,
                                         .scheme = scheme,
                                         .registry = *registry,
                                         .authenticator = authenticator,
                                         .authorizer = authorizer,
                                         .gate = gate,
                                         .audit = *audit,
                                         .metrics = metrics});
  net::RpcRoutes routes;
  scheduling->AddRoutes(routes);
  grpc = std::make_unique<net::H2Sessions>(net::H2SessionsOptions(), std::move(routes));
}

rt::Task<Status> Server::Parts::LoadAuthority() {
  const WallTime now = loop.WallNow();
  const std::string folder = options.data_dir + "/pki";
  if (is_shared())
    CO_TRY_STATUS(co_await ShareAuthority(&store->handle(), folder, now, options.no_authority));
  CO_TRY(authority, pki::CertificateAuthority::LoadOrCreate(folder, now, options.no_authority));
  co_return IssueOwnCertificate();
}

pki::ServerNames Server::Parts::OwnNames(const std::vector<std::string>& more) const {
  std::vector<std::string> names = options.names;
  if (IsWildcard(options.host) || IsWildcard(options.gateway_host)) {
    for (auto& address : pki::HostAddresses()) names.push_back(std::move(address));
  }
  if (!IsWildcard(options.gateway_host)) names.push_back(options.gateway_host);
  names.insert(names.end(), more.begin(), more.end());
  return pki::ServerNamesFor(options.host, HostName(), names);
}

Status Server::Parts::IssueOwnCertificate() {
  authenticator.SetAuthorities(authority->names());
  TRY(credentials, authority->ServerCredentials(OwnNames({}), loop.WallNow()));
  return OkStatus();
}

// What the leader shows to hosts, which may have called another server (docs/adr/0041).
Result<pki::Credentials> Server::Parts::HostCredentials() const {
  if (answered.empty()) return credentials;
  return authority->IssueServer(OwnNames(answered), loop.WallNow());
}

void Server::Parts::StartAuthorityKeeper() {
  authority_keeper = std::make_unique<AuthorityKeeper>(
      AuthorityKeeper::Deps{.loop = loop,
                            .client = *client,
                            .authority = *authority,
                            .shared = is_shared() ? &store->handle() : nullptr,
                            .id = store->id(),
                            .seen = [this](const std::string& name) { return SeenWith(name); },
                            .on_change = [this] { return OnAuthority(); }});
  scope.Spawn("server.authority", authority_keeper->Run());
}

// People and programs, not the servers themselves.
std::vector<OldUser> Server::Parts::SeenWith(const std::string& name) const {
  std::vector<OldUser> users;
  for (apiserver::SeenUser& seen : authenticator.SeenUsers(name, loop.WallNow())) {
    if (seen.user.starts_with(kPeerUser)) continue;
    users.push_back(
        {.user = std::move(seen.user), .last_seen = seen.last_seen, .until = seen.until});
  }
  return users;
}

// Connections from now on see it; those that are open stay, as long as who opened them is trusted.
Status Server::Parts::OnAuthority() {
  TRY_STATUS(IssueOwnCertificate());
  TRY(auto tls, MakeTls());
  http->SetTls(std::move(tls));
  api->ConnectAnew();
  if (leader != nullptr) {
    TRY(const pki::Credentials shown, HostCredentials());
    TRY_STATUS(leader->OnAuthority(shown));
  }
  return pki::WriteAdminKubeconfig(kubeconfig_path, url, *authority, loop.WallNow());
}

Result<std::shared_ptr<const net::TlsContext>> Server::Parts::MakeTls() {
  net::TlsServerOptions tls;
  tls.certificate_pem = credentials.certificate_pem;
  tls.key_pem = credentials.key_pem;
  tls.client_certificates = net::ClientCertificates::kOptional;
  tls.client_ca_pem = authority->certificate_pem();
  // HTTP/2 is for gRPC, whose clients ask for nothing else. All others have HTTP/1.1.
  tls.alpn = {"http/1.1", "h2"};
  return net::TlsContext::NewServer(tls);
}

rt::Task<Status> Server::Parts::StartLeading(std::optional<Reign> reign) {
  FleetServerOptions fleet;
  fleet.host = options.gateway_host;
  fleet.port = options.gateway_port;
  fleet.listener = gateway_listener;
  CO_TRY(const pki::Credentials shown, HostCredentials());
  fleet.certificate_pem = shown.certificate_pem;
  fleet.key_pem = shown.key_pem;
  fleet.names = options.names;
  if (fleet.names.empty() && IsWildcard(options.gateway_host)) fleet.names = pki::HostAddresses();
  if (is_shared()) fleet.heartbeat = kSharedHeartbeat;
  const LeaderParts::Deps deps{.loop = loop,
                               .store = store->handle(),
                               .cache = *cache,
                               .registry = *registry,
                               .scheme = scheme,
                               .authorizer = authorizer,
                               .scheduling = *scheduling,
                               .authority = *authority,
                               .metrics = metrics};
  CO_TRY(leader, co_await LeaderParts::Start(deps, std::move(fleet), std::move(reign)));
  co_return OkStatus();
}

rt::Task<Status> Server::Parts::StartCandidacy() {
  ServerPlace place{
      .id = store->id(), .url = PeerUrl(), .gateways = Gateways(), .names = HostNames()};
  list = std::make_unique<ServerList>(loop, *client, std::move(place));
  CandidacyOptions wish{.id = store->id(),
                        .run = NewUid(loop.random()),
                        .url = PeerUrl(),
                        .on_leader =
                            [this](const std::string& other) {
                              if (leader == nullptr) api->UseHosts({.leader = other});
                            },
                        .on_deposed = options.on_deposed};
  candidacy = std::make_unique<Candidacy>(
      Candidacy::Deps{.loop = loop, .store = store->handle(), .client = *client}, std::move(wish));
  scope.Spawn("server.list", list->Run());
  scope.Spawn("server.kubeconfig", FollowServers());
  CO_TRY_STATUS(co_await StartPassing());
  scope.Spawn("server.candidacy", candidacy->Run());
  scope.Spawn("server.leader", FollowLeader());
  scope.Spawn("server.lead", Lead());
  co_return OkStatus();
}

rt::Task<Status> Server::Parts::StartPassing() {
  const auto count = [this](const std::string& end) -> metrics::Counter& {
    return metrics.GetCounter("berth_passed_on_connections_total",
                              "Connections of hosts to a server that does not lead.",
                              {{"end", end}});
  };
  const net::SpliceFigures figures{
      .open = metrics.GetGauge("berth_passed_on_connections",
                               "Connections of hosts that are passed on to the server that leads."),
      .passed = count("passed"),
      .refused = count("refused"),
      .unreachable = count("unreachable")};
  net::SplicerOptions splicing;
  // Two each: clients, the store and the election need theirs.
  const uint64_t open_files = RaiseOpenFiles();
  if (open_files > 0) {
    splicing.connections_max = std::min<size_t>(splicing.connections_max, open_files / 4);
  }
  CO_TRY_STATUS(net::Listen(gateway_listener->get()));
  CO_TRY(passing, co_await net::ThreadedSplicer::Start(gateway_listener.get(), splicing, figures));
  passes_on = true;
  co_return OkStatus();
}

// Until this server leads itself. While nothing can be read no connection is begun, and none ends:
// the leader may be well.
rt::Task<Status> Server::Parts::FollowLeader() {
  net::SpliceTarget target;
  while (passes_on) {
    if (const auto other = candidacy->other()) {
      auto way = co_await list->WayToLeader(other->id);
      if (way.status().Is(Reason::kCancelled)) co_return way.status();
      if (target.name != other->holder) target.addresses.clear();
      target.name = other->holder;
      target.until = other->until;
      if (way.ok() && !way->empty()) target.addresses = *std::move(way);
      if (passes_on) passing->SetTarget(target);
    }
    CO_TRY_STATUS(co_await rt::Sleep(kLookAtLeader));
  }
  co_return OkStatus();
}

// The kubeconfig names the servers that there are.
rt::Task<Status> Server::Parts::FollowServers() {
  for (;;) {
    const auto others = co_await list->OtherUrls();
    if (others.status().Is(Reason::kCancelled)) co_return others.status();
    if (others.ok()) {
      const Status named = NameServers(kubeconfig_path, url, *others);
      if (!named.ok()) LOG_DEBUG("{}: {}", kubeconfig_path, named.message());
    }
    CO_TRY_STATUS(co_await rt::Sleep(kFollowEvery));
  }
}

// From the election on. Whatever goes wrong here is somebody else's chance.
rt::Task<Status> Server::Parts::Lead() {
  const auto fence = co_await candidacy->Elected();
  if (!fence.ok()) co_return fence.status();
  const Status started = co_await BeginReign(*fence);
  if (started.Is(Reason::kCancelled)) co_return started;
  if (!started.ok()) {
    LOG_ERROR("leading: {}", started.message());
    candidacy->Depose();
    co_return started;
  }
  api->UseHosts(leader->hosts());
  authority_keeper->Lead([this] { return leader->Certificates(); });
  for (;;) {
    const Status told = co_await TellServers();
    if (told.Is(Reason::kCancelled)) co_return told;
    if (!told.ok()) LOG_DEBUG("server list: {}", told.message());
    CO_TRY_STATUS(co_await rt::Sleep(kListEvery));
  }
}

// Who comes to the port of the hosts meanwhile waits: it listens on.
rt::Task<Status> Server::Parts::BeginReign(store::Condition fence) {
  // The thread itself ends with the server: a name that it looks up cannot be cut short, and a new
  // leader has no time to wait for that.
  passes_on = false;
  CO_TRY_STATUS(co_await passing->Stop());
  auto names = co_await AllNames();
  if (names.status().Is(Reason::kCancelled)) co_return names.status();
  if (names.ok()) answered = *std::move(names);
  Reign reign{.fence = std::move(fence),
              .leads = [this] { return candidacy->leads(); },
              .on_deposed = [this] { candidacy->Depose(); }};
  CO_TRY_STATUS(co_await StartLeading(std::move(reign)));
  // The authority may have changed meanwhile.
  CO_TRY(const pki::Credentials shown, HostCredentials());
  co_return leader->OnAuthority(shown);
}

// None that was known is forgotten while there is room: its server may be back in a moment.
rt::Task<Result<std::vector<std::string>>> Server::Parts::AllNames() {
  CO_TRY(const std::vector<std::string> present, co_await list->Names());
  std::vector<std::string> all = present;
  std::ranges::copy(answered, std::back_inserter(all));
  std::ranges::sort(all);
  const auto twice = std::ranges::unique(all);
  all.erase(twice.begin(), twice.end());
  co_return all.size() <= kServerNamesMax ? all : present;
}

Status Server::Parts::AnswerFor(std::vector<std::string> names) {
  std::vector<std::string> before = std::exchange(answered, std::move(names));
  if (answered == before) return OkStatus();
  const auto shown = HostCredentials();
  Status status = shown.ok() ? leader->OnAuthority(*shown) : shown.status();
  if (!status.ok()) answered = std::move(before);
  return status;
}

// Hosts are told of all servers, and servers for whom this one answers.
rt::Task<Status> Server::Parts::TellServers() {
  CO_TRY(auto gateways, co_await list->Gateways());
  leader->SetServers(std::move(gateways));
  CO_TRY(auto names, co_await AllNames());
  leader->SetServerAddresses(names);
  CO_TRY_STATUS(AnswerFor(std::move(names)));
  co_return co_await list->AnswerFor(answered);
}

Status Server::Parts::StartHttp(apiserver::Hosts hosts) {
  api = std::make_unique<apiserver::ApiServer>(apiserver::ApiServer::Deps{
      .loop = loop,
      .scheme = scheme,
      .registry = *registry,
      .authenticator = authenticator,
      .authorizer = authorizer,
      .limiter = limiter,
      .gate = gate,
      .audit = *audit,
      .metrics = metrics,
      .measure =
          [this] {
            MeasureProcess(metrics);
            if (leader != nullptr) leader->Measure();
          },
      .readiness = [this] { return store->health(); },
      .hosts = std::move(hosts),
      .connect = [this](const std::string& peer) { return ConnectPeer(peer); }});
  net::HttpServerOptions http_options;
  http_options.address = options.host;
  http_options.port = options.port;
  TRY(http_options.tls, MakeTls());
  http_options.h2 = grpc.get();
  http_options.refusal = apiserver::RefusalAnswer;
  TRY(http, net::HttpServer::Start(loop, std::move(http_options), [this](net::HttpRequest request) {
        return api->Handle(std::move(request));
      }));
  const std::string host = IsWildcard(options.host) ? "127.0.0.1" : options.host;
  url = "https://" + net::FormatHostPort(host, http->port());
  return pki::WriteAdminKubeconfig(kubeconfig_path, url, *authority, loop.WallNow());
}

rt::Task<Status> Server::Parts::StartAll() {
  CO_TRY_STATUS(CheckAuthority());
  CO_TRY_STATUS(MakeFolder(options.data_dir));
  CO_TRY_STATUS(ListenForHosts());
  CO_TRY_STATUS(co_await OpenStore());
  CO_TRY_STATUS(co_await StartRegistry());
  CO_TRY_STATUS(co_await StartPolicy());
  MakeScheduling();
  CO_TRY_STATUS(co_await LoadAuthority());
  scope.Spawn("store.upkeep", store->Upkeep());
  if (!is_shared()) {
    CO_TRY_STATUS(co_await StartLeading(std::nullopt));
    CO_TRY_STATUS(StartHttp(leader->hosts()));
    StartAuthorityKeeper();
    authority_keeper->Lead([this] { return leader->Certificates(); });
    co_return OkStatus();
  }
  CO_TRY_STATUS(StartHttp({}));
  StartAuthorityKeeper();
  co_return co_await StartCandidacy();
}

// The next leader need not wait for the lease to end. The store may be gone: then it has to.
rt::Task<Status> Server::Parts::LeaveOthers() {
  const Status left = co_await rt::WithDeadline(candidacy->Leave(), kLeaveLimit);
  if (!left.ok()) LOG_WARNING("leaving: {}", left.message());
  const Status gone = co_await rt::WithDeadline(list->Leave(), kLeaveLimit);
  if (!gone.ok()) LOG_WARNING("leaving: {}", gone.message());
  co_return OkStatus();
}

rt::Task<Status> Server::Parts::StopAll() {
  // Each step has nothing above it that still uses it.
  if (http != nullptr) CO_TRY_STATUS(co_await http->Stop());
  CO_TRY_STATUS(co_await scope.Close());
  if (std::exchange(passes_on, false)) CO_TRY_STATUS(co_await passing->Stop());
  if (leader != nullptr) CO_TRY_STATUS(co_await leader->Stop());
  if (candidacy != nullptr) CO_TRY_STATUS(co_await LeaveOthers());
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
const std::string& Server::gateway_address() const { return parts_->gateway_address; }
uint16_t Server::port() const { return parts_->http->port(); }
uint16_t Server::gateway_port() const {
  const auto address = net::ParseHostPort(parts_->gateway_address, 0);
  return address.ok() ? address->port : 0;
}
const std::string& Server::kubeconfig_path() const { return parts_->kubeconfig_path; }

}  // namespace berth::app
