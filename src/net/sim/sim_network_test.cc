// SPDX-License-Identifier: Apache-2.0
// The simulated network keeps the contract of net/rpc.h, its faults are what they say, and the same
// seed gives the same run.
#include "net/sim/sim_network.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "net/conformance/rpc_contract.h"
#include "net/testing/test_pki.h"
#include "rt/deadline.h"
#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

constexpr char kChat[] = "/sim.Test/Chat";
constexpr char kEcho[] = "/sim.Test/Echo";
constexpr Duration kDialLimit = Duration::Seconds(5);

// Real time at which the test certificates are valid, on the world's clock.
TestPki::Validity LongValidity() {
  return {.from = Duration::Hours(-24 * 365 * 20), .until = Duration::Hours(24 * 365 * 20)};
}

class OverSim final : public RpcUnderTest {
 public:
  explicit OverSim(uint64_t seed) : world_(seed), network_(world_) {
    network_.AddNode("server", world_);
    network_.AddNode("client", world_);
    dialer_ = network_.NewDialer("client");
  }
  rt::Loop& loop() override { return world_; }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(world_, std::move(task)); }
  rt::Task<Result<std::unique_ptr<RpcServer>>> Serve(RpcRoutes routes) override {
    const TestIdentity identity = Pki().IssueServer({"server"}, LongValidity());
    SimServerOptions options;
    options.port = ++port_;
    options.certificate_pem = identity.certificate_pem + Pki().ca_pem();
    options.client_ca_pem = Pki().ca_pem();
    options.drain_timeout = Duration::Millis(100);
    co_return network_.Serve("server", options, std::move(routes));
  }
  RpcDialer& dialer() override { return *dialer_; }
  RpcCredentials credentials() override { return Credentials(Pki()); }
  RpcCredentials stranger() override {
    static TestPki other("another CA", LongValidity());
    return Credentials(other);
  }
  std::string dead_address() override { return "server:1"; }

 private:
  static TestPki& Pki() {
    static TestPki pki("test CA", LongValidity());
    return pki;
  }
  static RpcCredentials Credentials(TestPki& issuer) {
    const TestIdentity identity = issuer.IssueClient("host-1", LongValidity());
    return {.ca_pem = Pki().ca_pem(), .certificate_pem = identity.certificate_pem};
  }

  rt::SimLoop world_;
  SimNetwork network_;
  std::unique_ptr<RpcDialer> dialer_;
  uint16_t port_ = 7000;
};

class SimContractTest : public testing::TestWithParam<RpcContract> {};

TEST_P(SimContractTest, Holds) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    OverSim network(seed);
    RunRpcContract(GetParam(), network);
  }
}

INSTANTIATE_TEST_SUITE_P(Contracts,
                         SimContractTest,
                         testing::ValuesIn(RpcContracts()),
                         [](const auto& param) { return std::string(param.param.name); });

// A server that echoes and a client that chats with it, each on a loop of its own.
class World {
 public:
  explicit World(uint64_t seed, SimNetworkOptions options = {})
      : loop(seed), network(loop, options) {
    network.AddNode("server", server_loop);
    network.AddNode("client", loop);
    network.AddNode("other", loop);
    StartServer();
    dialer = network.NewDialer("client");
  }
  ~World() {
    stream.reset();
    if (channel != nullptr) EXPECT_EQ(rt::RunTask(loop, channel->Close()), OkStatus());
    channel.reset();
    StopServer(*server);
  }
  void StopServer(RpcServer& stopped) {
    rt::TaskScope scope(server_loop);
    scope.Spawn("test.stop", stopped.Stop());
    EXPECT_TRUE(loop.RunUntil([&scope] { return scope.size() == 0; }, Duration::Minutes(1)));
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void StartServer() {
    RpcRoutes routes;
    routes.streams[kChat] = {
        .handler = [this](RpcCall, MessageStream& peer) { return Chat(&peer); }};
    routes.unary[kEcho] = {.handler = Echo};
    server = *network.Serve("server", {}, std::move(routes));
  }
  static rt::Task<Result<std::string>> Echo(RpcCall, std::string request) { co_return request; }
  rt::Task<Status> Chat(MessageStream* peer) {
    ++handlers;
    Status status;
    for (;;) {
      const Result<std::optional<std::string>> message = co_await peer->Read();
      status = message.status();
      if (!message.ok() || !message->has_value()) break;
      heard.push_back(**message);
      if (!peer->TryWrite("echo " + **message)) break;
    }
    --handlers;
    co_return status;
  }
  Status Connect() { return rt::RunTask(loop, ConnectTask()); }
  rt::Task<Status> ConnectTask() {
    RpcCredentials nobody;
    CO_TRY(channel, co_await dialer->Dial("server:7443", nobody, kDialLimit));
    RpcOptions options;
    CO_TRY(stream, co_await channel->Open(kChat, options));
    co_return OkStatus();
  }
  // Sends a message and waits for its echo.
  Result<std::string> Say(const std::string& text, Duration limit) {
    return rt::RunTask(loop, rt::WithDeadline(SayTask(text), limit));
  }
  rt::Task<Result<std::string>> SayTask(std::string text) {
    CO_TRY_STATUS(co_await stream->Write(text));
    CO_TRY(std::optional<std::string> answer, co_await stream->Read());
    co_return answer.value_or("the end");
  }

  rt::SimLoop loop;
  rt::SimLoop::View& server_loop = loop.NewLoop("server");
  SimNetwork network;
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<RpcDialer> dialer;
  std::unique_ptr<RpcChannel> channel;
  std::unique_ptr<MessageStream> stream;
  int handlers = 0;
  std::vector<std::string> heard;
};

TEST(SimNetwork, TheSameSeedGivesTheSameRun) {
  const auto run = [](uint64_t seed) {
    World world(seed, {.spike_chance = 0.1});
    EXPECT_EQ(world.Connect(), OkStatus());
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(world.Say(std::to_string(i), Duration::Seconds(1)).ok());
    }
    return world.loop.trace_hash();
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST(SimNetwork, AShortPartitionDelaysAndLosesNothing) {
  World world(1);
  ASSERT_EQ(world.Connect(), OkStatus());
  ASSERT_TRUE(world.Say("before", Duration::Seconds(1)).ok());
  world.network.Partition("client", "server");
  EXPECT_TRUE(world.stream->TryWrite("during"));
  world.loop.RunFor(Duration::Seconds(10));
  EXPECT_EQ(world.heard, std::vector<std::string>{"before"});
  EXPECT_TRUE(world.channel->usable());
  world.network.Heal("client", "server");
  const auto answer = world.Say("after", Duration::Seconds(5));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(*answer, "echo during");
  EXPECT_EQ(world.heard, (std::vector<std::string>{"before", "during", "after"}));
}

TEST(SimNetwork, ALongPartitionBreaksTheConnectionOnBothEnds) {
  World world(2);
  ASSERT_EQ(world.Connect(), OkStatus());
  ASSERT_TRUE(world.Say("before", Duration::Seconds(1)).ok());
  world.network.Partition("client", "server");
  world.loop.RunFor(Duration::Seconds(31));
  EXPECT_FALSE(world.channel->usable());
  EXPECT_EQ(world.handlers, 0);
  EXPECT_EQ(world.network.connections(), 0U);
  EXPECT_EQ(world.Say("too late", Duration::Seconds(1)).status().reason(), Reason::kUnavailable);
  EXPECT_EQ(world.Connect().reason(), Reason::kUnavailable) << "nobody answers a dial either";
  world.network.Heal("client", "server");
  ASSERT_EQ(world.Connect(), OkStatus());
  EXPECT_TRUE(world.Say("again", Duration::Seconds(1)).ok());
}

TEST(SimNetwork, AOneWayBlockStopsOneDirection) {
  World world(3);
  ASSERT_EQ(world.Connect(), OkStatus());
  ASSERT_TRUE(world.Say("before", Duration::Seconds(1)).ok());
  world.network.Block("server", "client");
  const auto answer = world.Say("heard", Duration::Seconds(5));
  EXPECT_EQ(answer.status().reason(), Reason::kTimeout);
  EXPECT_EQ(world.heard.back(), "heard") << "the server hears, but its answer is held up";
  world.network.Unblock("server", "client");
  EXPECT_EQ(*world.Say("x", Duration::Seconds(5)), "echo heard");
}

TEST(SimNetwork, AResetIsHeardAtOnceByBothEnds) {
  World world(4);
  ASSERT_EQ(world.Connect(), OkStatus());
  ASSERT_TRUE(world.Say("before", Duration::Seconds(1)).ok());
  world.network.ResetConnections("client", "server");
  world.loop.RunFor(Duration::Millis(1));
  EXPECT_FALSE(world.channel->usable());
  EXPECT_EQ(world.handlers, 0);
  EXPECT_EQ(world.network.connections(), 0U);
}

TEST(SimNetwork, APausedNodeGetsAllOnResume) {
  World world(5);
  ASSERT_EQ(world.Connect(), OkStatus());
  ASSERT_TRUE(world.Say("0", Duration::Seconds(1)).ok());
  world.network.Pause("server");
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(world.stream->TryWrite(std::to_string(i)));
  world.loop.RunFor(Duration::Seconds(20));
  EXPECT_EQ(world.heard.size(), 1U);
  world.network.Resume("server");
  world.loop.RunFor(Duration::Seconds(2));
  EXPECT_EQ(world.heard, (std::vector<std::string>{"0", "1", "2", "3"}));
}

TEST(SimNetwork, TheClientsOfANodePausedTooLongGoAndItFindsThemGone) {
  World world(6);
  ASSERT_EQ(world.Connect(), OkStatus());
  ASSERT_TRUE(world.Say("0", Duration::Seconds(1)).ok());
  world.network.Pause("server");
  world.loop.RunFor(Duration::Seconds(31));
  EXPECT_FALSE(world.channel->usable());
  EXPECT_EQ(world.handlers, 1) << "who is paused notices nothing";
  world.network.Resume("server");
  world.loop.RunFor(Duration::Seconds(2));
  EXPECT_EQ(world.handlers, 0);
}

TEST(SimNetwork, ADelaySlowsOneDirection) {
  World world(7);
  ASSERT_EQ(world.Connect(), OkStatus());
  world.network.SetDelay("client", "server", Duration::Millis(300));
  const Time before = world.loop.Now();
  ASSERT_TRUE(world.Say("slow", Duration::Seconds(1)).ok());
  EXPECT_GE(world.loop.Now() - before, Duration::Millis(300));
  EXPECT_LT(world.loop.Now() - before, Duration::Millis(310));
}

TEST(SimNetwork, ARequestThatNeverComesGetsATimeout) {
  World world(11);
  ASSERT_EQ(world.Connect(), OkStatus());
  {
    auto half = rt::RunTask(world.loop, world.channel->Open(kEcho, {}));
    ASSERT_TRUE(half.ok()) << half.status();
    const Time before = world.loop.Now();
    const auto answer =
        rt::RunTask(world.loop, rt::WithDeadline((*half)->Read(), Duration::Minutes(1)));
    EXPECT_EQ(answer.status().reason(), Reason::kTimeout) << answer.status();
    EXPECT_EQ(answer.status().message(), "the request was not complete within 30s");
    EXPECT_LT(world.loop.Now() - before, Duration::Seconds(31));
  }
  EXPECT_TRUE(world.Say("a stream may be silent", Duration::Seconds(1)).ok());
}

TEST(SimNetwork, ACrashWithAResetIsHeardAtOnce) {
  World world(8);
  ASSERT_EQ(world.Connect(), OkStatus());
  ASSERT_TRUE(world.Say("before", Duration::Seconds(1)).ok());
  world.network.Crash("server", CrashStyle::kReset);
  world.loop.RunFor(Duration::Millis(10));
  EXPECT_FALSE(world.channel->usable());
  EXPECT_EQ(world.handlers, 0);
  const Time before = world.loop.Now();
  EXPECT_EQ(world.Connect().reason(), Reason::kUnavailable);
  EXPECT_LT(world.loop.Now() - before, Duration::Millis(100)) << "refused, not ignored";
}

TEST(SimNetwork, ASilentCrashIsNoticedByItsSilence) {
  World world(9);
  ASSERT_EQ(world.Connect(), OkStatus());
  ASSERT_TRUE(world.Say("before", Duration::Seconds(1)).ok());
  world.network.Crash("server", CrashStyle::kSilent);
  world.loop.RunFor(Duration::Seconds(29));
  EXPECT_TRUE(world.channel->usable());
  EXPECT_EQ(world.handlers, 0) << "what ran there is gone at once";
  world.loop.RunFor(Duration::Seconds(2));
  EXPECT_FALSE(world.channel->usable());
  const Time before = world.loop.Now();
  EXPECT_EQ(world.Connect().reason(), Reason::kUnavailable);
  EXPECT_EQ(world.loop.Now() - before, kDialLimit) << "ignored, not refused";
}

TEST(SimNetwork, ARestartedNodeServesAgainAndOldPeersHearOfIt) {
  World world(10);
  ASSERT_EQ(world.Connect(), OkStatus());
  ASSERT_TRUE(world.Say("before", Duration::Seconds(1)).ok());
  world.network.Crash("server", CrashStyle::kSilent);
  world.loop.RunFor(Duration::Seconds(1));
  world.StopServer(*world.server);
  world.network.Restart("server");
  world.StartServer();
  world.loop.RunFor(Duration::Seconds(2));
  EXPECT_FALSE(world.channel->usable());
  world.stream.reset();
  ASSERT_EQ(world.Connect(), OkStatus());
  EXPECT_TRUE(world.Say("again", Duration::Seconds(1)).ok());
}

TEST(SimNetwork, OtherNodesDoNotNoticeAPartition) {
  World world(11);
  ASSERT_EQ(world.Connect(), OkStatus());
  world.network.Partition("other", "server");
  world.loop.RunFor(Duration::Minutes(5));
  EXPECT_TRUE(world.Say("still here", Duration::Seconds(1)).ok());
  world.network.Isolate("server");
  world.loop.RunFor(Duration::Seconds(1));
  EXPECT_FALSE(world.Say("gone", Duration::Seconds(1)).ok());
}

TEST(SimNetwork, AnExpiredCertificateIsMarkedOrRefusedByTheWorldsClock) {
  TestPki pki("test CA", LongValidity());
  const TestIdentity identity = pki.IssueClient(
      "host-1",
      {.from = Duration::Hours(-24 * 365 * 20), .until = Duration::Hours(-24 * 365 * 10)});
  for (const auto policy : {ExpiredCertificates::kMark, ExpiredCertificates::kRefuse}) {
    World world(12);
    CertificateState seen = CertificateState::kNone;
    RpcRoutes routes;
    routes.streams[kChat] = {.handler = [&world, &seen](RpcCall call, MessageStream& peer) {
      seen = call.peer.certificate_state;
      return world.Chat(&peer);
    }};
    SimServerOptions options;
    options.port = 1;
    options.client_ca_pem = pki.ca_pem();
    options.expired_client_certificates = policy;
    auto server = *world.network.Serve("server", options, std::move(routes));
    RpcCredentials credentials{.certificate_pem = identity.certificate_pem};
    auto channel = rt::RunTask(world.loop, world.dialer->Dial("server:1", credentials, kDialLimit));
    if (policy == ExpiredCertificates::kRefuse) {
      EXPECT_EQ(channel.status().reason(), Reason::kUnauthorized) << channel.status();
    } else {
      ASSERT_TRUE(channel.ok()) << channel.status();
      world.channel = *std::move(channel);
      world.stream = *rt::RunTask(world.loop, world.channel->Open(kChat, {}));
      EXPECT_TRUE(world.Say("let me in", Duration::Seconds(1)).ok());
      EXPECT_EQ(seen, CertificateState::kExpired);
    }
    world.StopServer(*server);
  }
}

}  // namespace
}  // namespace berth::net
