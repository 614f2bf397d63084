// SPDX-License-Identifier: Apache-2.0
// A gateway on a simulated network, with a whole API server behind it and hosts that say what a
// test tells them, for tests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apis/k8s/secret.h"
#include "apiserver/registry/placement_world.h"
#include "gateway/gateway.h"
#include "gateway/testing/temp_authority.h"
#include "net/sim/sim_network.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::gateway {

class GatewayWorld : public apiserver::PlacementWorld {
 public:
  explicit GatewayWorld(uint64_t seed = 1) : PlacementWorld(seed), network_(loop()) {
    network_.AddNode("server", loop());
    StartGateway();
  }
  ~GatewayWorld() { StopGateway(); }

  void StartGateway() {
    ++identity_.start;
    const Gateway::Deps deps{loop(),
                             between != nullptr ? *between : client(),
                             registry().binder(),
                             registry().tombstones(),
                             registry().rewound(),
                             scheme(),
                             authority_.get(),
                             pki::SystemEntropy(),
                             [this] { return leads; }};
    const GatewayOptions said{.servers = {"server:7443"}, .cores = 2, .versions = versions};
    gateway_.emplace(deps, identity_, said);
    gateway_->Start();
    net::RpcRoutes routes;
    gateway_->AddRoutes(routes);
    net::SimServerOptions options;
    options.client_ca_pem = authority_.get().certificate_pem();
    options.expired_client_certificates = net::ExpiredCertificates::kMark;
    auto server = network_.Serve("server", options, std::move(routes));
    CHECK(server.ok()) << server.status();
    server_ = *std::move(server);
    CHECK(loop().RunUntil([this] { return gateway_->synced(); }, Duration::Seconds(10)));
  }
  void StopGateway() {
    CHECK(Run(server_->Stop()).ok());
    CHECK(Run(gateway_->Close()).ok());
    server_.reset();
    gateway_.reset();
  }
  void RestartGateway() { StopGateway(), StartGateway(); }

  // The host has joined with what the grant says.
  void Enrol(const std::string& host, pki::JoinGrant grant = {}) {
    const client::HostRecord record{
        .grant = std::move(grant), .keys = {"key"}, .joined = loop().WallNow()};
    const auto written = Run(client::EditRecord(
        client(), client::HostRecordName(host), [&](client::RecordEntries& entries) {
          entries = client::FormatHostRecord(record);
          return true;
        }));
    CHECK(written.ok()) << written.status();
  }
  pki::Credentials CredentialsOf(const std::string& host) {
    const pki::ClientSubject subject{.user = "berth:host:" + host,
                                     .groups = {"berth:hosts"},
                                     .lifetime = kHostCertificateLifetime};
    auto issued = authority_.get().IssueClient(subject, loop().WallNow());
    CHECK(issued.ok()) << issued.status();
    return *issued;
  }
  void MakeSecret(const std::string& name, const std::map<std::string, std::string>& entries) {
    apis::k8s::Secret secret;
    secret.metadata.namespace_ = "default";
    secret.metadata.name = name;
    for (const auto& [key, value] : entries) secret.data[key].bytes = value;
    Must(Run(client().Create(meta::Object::Of(apis::k8s::kSecretKind, std::move(secret)), {})));
  }
  meta::Object Pool(const std::string& name) {
    return Must(Run(client().Get(apis::compute::kMachinePoolKind, {"", name})));
  }
  // "True Connected" of a pool's condition; "" if it has none of that type.
  std::string Condition(const std::string& pool, std::string_view type) {
    const meta::Object object = Pool(pool);
    for (const auto& item : object.as<apis::compute::MachinePool>().status.conditions) {
      if (item.type == type) return item.status + " " + item.reason;
    }
    return "";
  }
  template <class F>
  bool Until(F done, Duration limit = Duration::Seconds(5)) {
    return loop().RunUntil(done, limit);
  }
  void Pass(Duration duration) { loop().RunFor(duration); }

  bool leads = true;
  ProtocolVersions versions;          // from the next start of the gateway on
  client::Client* between = nullptr;  // the same; in front of the store
  Gateway& gateway() { return *gateway_; }
  net::SimNetwork& network() { return network_; }
  const pki::CertificateAuthority& authority() const { return authority_.get(); }
  TempAuthority& temp_authority() { return authority_; }
  client::ClusterIdentity& identity() { return identity_; }

 private:
  net::SimNetwork network_;
  TempAuthority authority_{loop().WallNow()};
  client::ClusterIdentity identity_{
      .id = "6a2b7c1e-0f63-4a36-9d21-3b2f8d1f7a10", .incarnation = 1, .start = 0};
  std::optional<Gateway> gateway_;
  std::unique_ptr<net::RpcServer> server_;
};

// The other end of a session. It does nothing by itself but heartbeats, pongs and answers.
class TestHost {
 public:
  TestHost(GatewayWorld& world, std::string name, std::string node = "")
      : world_(world),
        name_(std::move(name)),
        node_(node.empty() ? name_ : std::move(node)),
        credentials_(world.CredentialsOf(name_)) {
    world.network().AddNode(node_, world.loop());
    dialer_ = world.network().NewDialer(node_);
    StartReading();
  }
  ~TestHost() { Leave(); }

  // Opens a stream, without a word.
  Status Open() {
    Leave();
    const net::RpcCredentials credentials{.ca_pem = "",
                                          .ca_pin = "",
                                          .certificate_pem = credentials_.certificate_pem,
                                          .key_pem = credentials_.key_pem};
    auto channel = world_.Run(dialer_->Dial("server:7443", credentials, Duration::Seconds(2)));
    if (!channel.ok()) return channel.status();
    channel_ = *std::move(channel);
    auto stream = world_.Run(channel_->Open("/berth.agent.v1.AgentService/Connect", {}));
    if (!stream.ok()) return stream.status();
    stream_ = *std::move(stream);
    received.clear();
    end_.reset();
    scope_.emplace(world_.loop());
    scope_->Spawn("host.read", ReadAll());
    return OkStatus();
  }
  // Opens a stream and says hello; true once the welcome is there.
  bool Connect() {
    if (!Open().ok()) return false;
    agent::HostMessage message;
    *message.mutable_hello() = hello;
    Send(message);
    world_.Until([this] { return welcome().has_value() || end_.has_value(); },
                 Duration::Seconds(20));
    if (beats) scope_->Spawn("host.beat", Beat());
    return welcome().has_value();
  }
  // Connects and announces one MachinePool; its UID, or "" if that was refused.
  std::string Join(const std::string& pool,
                   const std::map<std::string, int64_t>& capacity = {{"cpu", 8000}}) {
    if (!Connect()) return "";
    agent::Announce announce;
    *announce.add_pools() = PoolNamed(pool, capacity);
    for (const auto& [uid, item] : known) *announce.add_known() = item;
    announce.set_last(true);
    Announce(announce);
    if (!WaitSynced()) return "";
    return PoolUid(pool);
  }
  static agent::PoolAnnounce PoolNamed(const std::string& name,
                                       const std::map<std::string, int64_t>& capacity) {
    agent::PoolAnnounce pool;
    pool.set_kind("MachinePool");
    pool.set_name(name);
    pool.set_provider_id("test://" + name);
    pool.add_classes()->set_name("small");
    (*pool.mutable_classes(0)->mutable_capabilities())["cpu"] = 1000;
    for (const auto& [dimension, amount] : capacity) {
      (*pool.mutable_capacity()->mutable_capacity())[dimension] = amount;
    }
    return pool;
  }
  void Announce(const agent::Announce& announce) {
    agent::HostMessage message;
    *message.mutable_announce() = announce;
    Send(message);
  }
  bool WaitSynced() {
    return world_.Until([this] {
      return end_.has_value() || Any([](const auto& m) { return m.has_synced(); });
    }) && !end_.has_value();
  }
  std::string PoolUid(const std::string& name) const { return AnswerTo(name).uid(); }
  std::string PoolRefusal(const std::string& name) const { return AnswerTo(name).refused(); }

  void Send(const agent::HostMessage& message) {
    if (stream_) (void)stream_->TryWrite(message.SerializeAsString());
  }
  void SendRaw(std::string bytes) {
    if (stream_) (void)stream_->TryWrite(std::move(bytes));
  }
  void Say(const std::function<void(agent::HostBatch&)>& fill) {
    agent::HostMessage message;
    fill(*message.mutable_batch());
    Send(message);
  }
  void Report(const agent::Assign& assign, const std::string& state) {
    Say([&](agent::HostBatch& batch) {
      agent::ObjectStatus& status = *batch.add_statuses();
      status.set_uid(assign.uid());
      status.set_incarnation(assign.incarnation());
      status.set_placement(assign.placement());
      status.set_kind(assign.kind());
      status.set_state(state);
      status.set_runtime_id("test://1");
    });
  }
  void SayGone(const std::string& uid, uint64_t placement, uint64_t incarnation = 1) {
    Say([&](agent::HostBatch& batch) {
      agent::Gone& gone = *batch.add_gone();
      gone.set_uid(uid);
      gone.set_incarnation(incarnation);
      gone.set_placement(placement);
    });
  }
  void SendHeartbeat() {
    agent::HostMessage message;
    *message.mutable_heartbeat()->mutable_session() = welcome()->session();
    message.mutable_heartbeat()->set_number(++beat_);
    Send(message);
  }
  // Remembers what was assigned, as a poollet's record does.
  void Remember(const agent::Assign& assign) {
    agent::Known item;
    item.set_uid(assign.uid());
    item.set_incarnation(assign.incarnation());
    item.set_placement(assign.placement());
    item.set_hash(assign.hash());
    item.set_pool_uid(assign.pool_uid());
    known[assign.uid()] = std::move(item);
  }
  // After the message that it waits for. One that does not read takes nothing (net/rpc.h).
  void StopReading() { may_read_.Reset(); }
  void StartReading() { may_read_.Set(); }
  // Breaks the connection off.
  void Leave() {
    if (stream_) stream_->Abort(Unavailable("the test breaks it off"));
    if (scope_) CHECK(world_.Run(scope_->Close()).ok());
    scope_.reset();
    stream_.reset();
    if (channel_) CHECK(world_.Run(channel_->Close()).ok());
    channel_.reset();
  }

  std::optional<agent::Welcome> welcome() const {
    for (const auto& message : received) {
      if (message.has_welcome()) return message.welcome();
    }
    return std::nullopt;
  }
  std::string refused() const {
    for (const auto& message : received) {
      if (message.has_refused()) return message.refused().reason();
    }
    return "";
  }
  bool WaitRefused() {
    return world_.Until([this] { return !refused().empty(); }, Duration::Seconds(20));
  }
  template <class F>
  bool Any(F matches) const {
    for (const auto& message : received) {
      if (matches(message)) return true;
    }
    return false;
  }
  // Everything of one kind that came in batches.
  template <class T, class F>
  std::vector<T> All(F list) const {
    std::vector<T> all;
    for (const auto& message : received) {
      for (const T& item : list(message.batch())) all.push_back(item);
    }
    return all;
  }
  std::vector<agent::Assign> assigns() const {
    return All<agent::Assign>([](const auto& batch) { return batch.assigns(); });
  }
  std::vector<agent::Delete> deletes() const {
    return All<agent::Delete>([](const auto& batch) { return batch.deletes(); });
  }
  std::vector<agent::Confirm> confirms() const {
    return All<agent::Confirm>([](const auto& batch) { return batch.confirms(); });
  }
  std::vector<agent::Gone> forgets() const {
    return All<agent::Gone>([](const auto& batch) { return batch.forget(); });
  }
  bool WaitAssigns(size_t count) {
    return world_.Until([this, count] { return assigns().size() >= count; });
  }
  bool WaitDeletes(size_t count) {
    return world_.Until([this, count] { return deletes().size() >= count; });
  }
  size_t grants() const {
    size_t count = 0;
    for (const auto& message : received) count += message.batch().has_grant() ? 1 : 0;
    return count;
  }
  const std::optional<Status>& end() const { return end_; }
  net::RpcChannel& channel() { return *channel_; }
  const std::string& node() const { return node_; }

  agent::Hello hello = [] {
    agent::Hello fresh;
    fresh.mutable_versions()->set_min(1);
    fresh.mutable_versions()->set_max(1);
    fresh.set_poollet_version("test");
    return fresh;
  }();
  bool beats = true;
  bool pongs = true;
  // What it says to offers, and how long it takes.
  std::optional<agent::Answer> answer;
  Duration answer_delay;
  std::map<std::string, agent::Known> known;
  std::vector<agent::ServerMessage> received;
  void UseCredentials(pki::Credentials credentials) { credentials_ = std::move(credentials); }

 private:
  // To the announcement of a pool.
  agent::PoolWelcome AnswerTo(const std::string& pool) const {
    for (auto& said : All<agent::PoolWelcome>([](const auto& batch) { return batch.pools(); })) {
      if (said.name() == pool) return said;
    }
    return {};
  }
  rt::Task<Status> ReadAll() {
    for (;;) {
      CO_TRY_STATUS(co_await may_read_.Wait());
      auto bytes = co_await stream_->Read();
      if (bytes.status().Is(Reason::kCancelled)) co_return bytes.status();
      if (!bytes.ok() || !bytes->has_value()) {
        end_ = bytes.ok() ? OkStatus() : bytes.status();
        co_return OkStatus();
      }
      agent::ServerMessage message;
      CHECK(message.ParseFromString(**bytes));
      if (message.has_ping() && pongs) {
        agent::HostMessage pong;
        pong.mutable_pong()->set_number(message.ping().number());
        Send(pong);
      }
      for (const agent::Offer& offer : message.batch().offers()) {
        if (answer) scope_->Spawn("host.answer", AnswerLater(offer));
      }
      received.push_back(std::move(message));
    }
  }
  rt::Task<Status> AnswerLater(agent::Offer offer) {
    if (answer_delay > Duration()) CO_TRY_STATUS(co_await rt::Sleep(answer_delay));
    agent::HostMessage message;
    agent::Answer& said = *message.mutable_batch()->add_answers();
    said = *answer;
    *said.mutable_id() = offer.id();
    Send(message);
    co_return OkStatus();
  }
  rt::Task<Status> Beat() {
    for (;;) {
      if (beats && welcome()) SendHeartbeat();
      CO_TRY_STATUS(co_await rt::Sleep(kHeartbeat));
    }
  }

  GatewayWorld& world_;
  const std::string name_;
  const std::string node_;
  pki::Credentials credentials_;
  std::unique_ptr<net::RpcDialer> dialer_;
  std::unique_ptr<net::RpcChannel> channel_;
  std::unique_ptr<net::MessageStream> stream_;
  std::optional<Status> end_;
  rt::Event may_read_;
  uint64_t beat_ = 0;
  std::optional<rt::TaskScope> scope_;  // of one connection
};

}  // namespace berth::gateway
