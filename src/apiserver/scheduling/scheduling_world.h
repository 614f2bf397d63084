// SPDX-License-Identifier: Apache-2.0
// The service and a gateway on one simulated port, with an API server behind them and callers with
// certificates and tokens, for tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apis/k8s/secret.h"
#include "apiserver/authz/default_roles.h"
#include "apiserver/registry/cached_pool_objects.h"
#include "apiserver/registry/placement_world.h"
#include "apiserver/scheduling/scheduling_service.h"
#include "gateway/gateway.h"
#include "gateway/testing/temp_authority.h"
#include "meta/json.h"
#include "net/sim/sim_network.h"
#include "pki/token.h"
#include "rt/scope.h"
#include "rt/sim/sim_blocking_pool.h"

namespace berth::apiserver {

// One stream of a caller; everything that came is in `received`.
template <class T>
class TestStream {
 public:
  TestStream(rt::SimLoop& loop, std::unique_ptr<net::MessageStream> stream)
      : stream_(std::move(stream)), scope_(loop) {}
  ~TestStream() { Close(); }

  void Begin() { scope_.Spawn("test.read", ReadAll()); }
  void Close() {
    if (stream_ == nullptr) return;
    stream_->Abort(Cancelled());
    const Status closed = rt::RunTask(static_cast<rt::SimLoop&>(scope_.loop()), scope_.Close());
    CHECK(closed.ok()) << closed;
    stream_.reset();
  }
  net::MessageStream& stream() { return *stream_; }

  std::vector<T> received;
  std::optional<Status> end;

 private:
  rt::Task<Status> ReadAll() {
    for (;;) {
      auto bytes = co_await stream_->Read();
      if (!bytes.ok() || !bytes->has_value()) {
        end = bytes.ok() ? OkStatus() : bytes.status();
        co_return OkStatus();
      }
      T message;
      CHECK(message.ParseFromString(**bytes));
      received.push_back(std::move(message));
    }
  }

  std::unique_ptr<net::MessageStream> stream_;
  rt::TaskScope scope_;
};

// Somebody with a connection.
struct TestCaller {
  std::unique_ptr<net::RpcDialer> dialer;
  std::unique_ptr<net::RpcChannel> channel;
  std::map<std::string, std::string, std::less<>> metadata;
};

struct SchedulingOptions {
  uint64_t seed = 1;
  RequestLimits limits = SchedulingService::kLimits;
  LevelLimits levels;
  std::string audit_policy;  // "" for none
};

class SchedulingWorld : public PlacementWorld {
 public:
  explicit SchedulingWorld(const SchedulingOptions& options = {})
      : PlacementWorld(options.seed),
        limits_(options.limits),
        network_(loop()),
        gate_(loop(), options.levels, metrics_) {
    network_.AddNode("server", loop());
    OpenAudit(options.audit_policy);
    for (DefaultRole& role : DefaultRoles(scheme())) {
      authorizer_.SetRole({.namespace_ = "", .name = role.name}, std::move(role.rules));
    }
    StartServer();
  }
  ~SchedulingWorld() {
    CloseCallers();
    StopServer();
    const Status closed = Run(audit_->Close());
    CHECK(closed.ok()) << closed;
    std::filesystem::remove_all(folder_);
  }

  void StartServer() {
    pool_objects_.emplace(cache());
    pools_.emplace(scheme(), *pool_objects_);
    authorizer_.UsePools(*pools_);
    service_.emplace(SchedulingService::Deps{.loop = loop(),
                                             .scheme = scheme(),
                                             .registry = registry(),
                                             .authenticator = authenticator_,
                                             .authorizer = authorizer_,
                                             .gate = gate_,
                                             .audit = *audit_,
                                             .metrics = metrics_},
                     limits_);
    gateway_.emplace(gateway::Gateway::Deps{loop(),
                                            client(),
                                            registry().binder(),
                                            registry().tombstones(),
                                            registry().rewound(),
                                            scheme(),
                                            authority_.get(),
                                            pki::SystemEntropy()},
                     identity_,
                     gateway::GatewayOptions{.servers = {"server:7443"}, .cores = 2});
    gateway_->Start();
    net::RpcRoutes routes;
    gateway_->AddRoutes(routes);
    service_->AddRoutes(routes);
    net::SimServerOptions options;
    options.client_ca_pem = authority_.get().certificate_pem();
    options.expired_client_certificates = net::ExpiredCertificates::kMark;
    auto server = network_.Serve("server", options, std::move(routes));
    CHECK(server.ok()) << server.status();
    server_ = *std::move(server);
    CHECK(loop().RunUntil([this] { return gateway_->synced(); }, Duration::Seconds(10)));
  }
  void StopServer() {
    const Status stopped = Run(server_->Stop());
    CHECK(stopped.ok()) << stopped;
    const Status closed = Run(gateway_->Close());
    CHECK(closed.ok()) << closed;
    server_.reset();
    gateway_.reset();
    service_.reset();
    pools_.reset();
    pool_objects_.reset();
  }
  // Everything but the store is another process.
  void RestartAll() {
    CloseCallers();
    StopServer();
    Restart();
    StartServer();
  }
  void CloseCallers() {
    for (auto& [node, caller] : callers_) CloseCaller(caller);
    callers_.clear();
  }

  // The user has the role in the namespace; "" is the cluster.
  void Grant(const std::string& user, const std::string& role, const std::string& namespace_) {
    authorizer_.SetBinding(
        {.namespace_ = namespace_, .name = user + "-" + role},
        {.role = {.namespace_ = "", .name = role},
         .subjects = {{.kind = SubjectKind::kUser, .name = user, .namespace_ = ""}}});
  }
  void Revoke(const std::string& user, const std::string& role, const std::string& namespace_) {
    authorizer_.RemoveBinding({.namespace_ = namespace_, .name = user + "-" + role});
  }
  std::string MakeToken(const std::string& user) {
    auto token = pki::MakeToken(pki::SystemEntropy(), user, {}, std::nullopt, loop().WallNow());
    CHECK(token.ok()) << token.status();
    apis::k8s::Secret secret;
    secret.metadata.namespace_ = pki::kTokenNamespace;
    secret.metadata.name = token->secret.name;
    secret.type = pki::kTokenSecretType;
    for (const auto& [key, value] : token->secret.data) secret.data[key].bytes = value;
    authenticator_.OnSecretChanged(secret);
    secrets_[token->text] = std::move(secret);
    return token->text;
  }
  void RevokeToken(const std::string& token) { authenticator_.OnSecretDeleted(secrets_.at(token)); }
  // All certificates of the user that were issued until now.
  void RevokeCertificates(const std::string& user) {
    const std::map<std::string, std::string> entries = {
        {"user." + user, FormatRfc3339(loop().WallNow())}};
    authenticator_.SetRevokedUsers(RevokedUsers(entries));
  }
  pki::Credentials CertificateOf(const std::string& user,
                                 std::vector<std::string> groups,
                                 Duration lifetime = Duration::Hours(24)) {
    const pki::ClientSubject subject{
        .user = user, .groups = std::move(groups), .lifetime = lifetime};
    auto issued = authority_.get().IssueClient(subject, loop().WallNow());
    CHECK(issued.ok()) << issued.status();
    return *issued;
  }

  // A connection of its own; each name is one node of the network.
  TestCaller& Caller(const std::string& node,
                     const pki::Credentials& credentials,
                     const std::string& token = "") {
    TestCaller& caller = callers_[node];
    CloseCaller(caller);
    network_.AddNode(node, loop());
    caller.dialer = network_.NewDialer(node);
    const net::RpcCredentials shown{.ca_pem = "",
                                    .ca_pin = "",
                                    .certificate_pem = credentials.certificate_pem,
                                    .key_pem = credentials.key_pem};
    auto channel = Run(caller.dialer->Dial("server:7443", shown, Duration::Seconds(2)));
    CHECK(channel.ok()) << channel.status();
    caller.channel = *std::move(channel);
    if (!token.empty()) caller.metadata["authorization"] = "Bearer " + token;
    return caller;
  }
  TestCaller& UserCaller(const std::string& user, std::vector<std::string> groups = {}) {
    return Caller(user, CertificateOf(user, std::move(groups)));
  }
  TestCaller& Admin() { return UserCaller("admin", {"system:masters"}); }

  template <class T, class R>
  std::unique_ptr<TestStream<T>> Open(TestCaller& caller, const char* method, const R& request) {
    net::RpcOptions options;
    options.metadata = caller.metadata;
    auto stream =
        Run(caller.channel->Open(std::string(SchedulingService::kName) + method, options));
    CHECK(stream.ok()) << stream.status();
    auto opened = std::make_unique<TestStream<T>>(loop(), *std::move(stream));
    CHECK(opened->stream().TryWrite(request.SerializeAsString()));
    opened->stream().WritesDone();
    opened->Begin();
    return opened;
  }
  template <class R>
  Result<proto::WorkloadStatus> Call(TestCaller& caller, const char* method, const R& request) {
    net::RpcOptions options;
    options.metadata = caller.metadata;
    auto answer = Run(caller.channel->Call(
        std::string(SchedulingService::kName) + method, request.SerializeAsString(), options));
    if (!answer.ok()) return answer.status();
    proto::WorkloadStatus status;
    CHECK(status.ParseFromString(*answer));
    return status;
  }
  template <class F>
  bool Until(F done, Duration limit = Duration::Seconds(5)) {
    return loop().RunUntil(done, limit);
  }

  // What the audit log has got since it was looked at last: a record per line.
  std::vector<meta::Value> TakeAudited() {
    loop().RunFor(AuditLog::kFlushInterval + Duration::Seconds(1));
    std::ifstream file(folder_ + "/audit.log");
    std::vector<meta::Value> records;
    size_t lines = 0;
    for (std::string line; std::getline(file, line); ++lines) {
      if (lines < audited_lines_) continue;
      auto record = meta::ParseJson(line);
      CHECK(record.ok()) << line << record.status();
      records.push_back(*std::move(record));
    }
    audited_lines_ = lines;
    return records;
  }

  net::SimNetwork& network() { return network_; }
  SchedulingService& service() { return *service_; }
  Authorizer& authorizer() { return authorizer_; }
  RequestGate& gate() { return gate_; }

 private:
  void OpenAudit(const std::string& policy_text) {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-audit-XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr) << pattern;
    folder_ = pattern;
    std::optional<AuditPolicy> policy;
    if (!policy_text.empty()) {
      auto parsed = AuditPolicy::Parse(policy_text);
      CHECK(parsed.ok()) << parsed.status();
      policy = *std::move(parsed);
    }
    AuditFile::Options file;
    file.path = folder_ + "/audit.log";
    auto audit = AuditLog::Open(std::move(file), loop(), pool_, metrics_, std::move(policy));
    CHECK(audit.ok()) << audit.status();
    audit_ = *std::move(audit);
  }
  void CloseCaller(TestCaller& caller) {
    if (caller.channel == nullptr) return;
    const Status closed = Run(caller.channel->Close());
    CHECK(closed.ok()) << closed;
    caller.channel.reset();
  }

  const RequestLimits limits_;
  net::SimNetwork network_;
  metrics::Registry metrics_;
  RequestGate gate_;
  std::string folder_;
  rt::SimBlockingPool pool_;
  std::unique_ptr<AuditLog> audit_;
  size_t audited_lines_ = 0;
  gateway::TempAuthority authority_{loop().WallNow()};
  client::ClusterIdentity identity_{
      .id = "6a2b7c1e-0f63-4a36-9d21-3b2f8d1f7a10", .incarnation = 1, .start = 1};
  Authenticator authenticator_{metrics_};
  Authorizer authorizer_{scheme()};
  std::optional<CachedPoolObjects> pool_objects_;
  std::optional<PoolAuthorizer> pools_;
  std::optional<SchedulingService> service_;
  std::optional<gateway::Gateway> gateway_;
  std::unique_ptr<net::RpcServer> server_;
  std::map<std::string, TestCaller> callers_;
  std::map<std::string, apis::k8s::Secret> secrets_;
};

}  // namespace berth::apiserver
