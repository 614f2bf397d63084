// SPDX-License-Identifier: Apache-2.0
// Who gets a session, who does not, and what the refused one hears (PROTOCOL 5.3, 9.1; C15, C16).
#include <gtest/gtest.h>

#include "apis/k8s/event.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

class SessionTest : public testing::Test {
 protected:
  // Of one reason, as users see them.
  std::vector<apis::k8s::CoreEvent> EventsNamed(const std::string& reason) {
    const auto all = world_.Run(world_.client().List(apis::k8s::kCoreEventKind, {}));
    CHECK(all.ok()) << all.status();
    std::vector<apis::k8s::CoreEvent> events;
    for (const meta::Object& object : all->items) {
      const auto& event = object.as<apis::k8s::CoreEvent>();
      if (event.reason == reason) events.push_back(event);
    }
    return events;
  }

  GatewayWorld world_;
};

TEST_F(SessionTest, AWelcomeSaysEverythingThatTheHostNeeds) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  ASSERT_TRUE(host.Connect());
  const agent::Welcome welcome = *host.welcome();
  EXPECT_EQ(welcome.version(), 1);
  EXPECT_EQ(welcome.versions().min(), kProtocolMin);
  EXPECT_EQ(welcome.versions().max(), kProtocolMax);
  EXPECT_EQ(welcome.session().start(), 1);
  EXPECT_EQ(welcome.incarnation(), 1);
  EXPECT_EQ(welcome.cluster_id(), world_.identity().id);
  EXPECT_EQ(welcome.lease_ms(), 8000);
  EXPECT_EQ(welcome.heartbeat_ms(), 2000);
  EXPECT_EQ(welcome.servers(0), "server:7443");
  EXPECT_GT(welcome.limits().message_bytes(), 0);
}

TEST_F(SessionTest, C15_WithoutAHostsCertificateThereIsNoSession) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  host.UseCredentials({});
  EXPECT_FALSE(host.Connect());
  EXPECT_EQ(host.refused(), kNoCertificate);
  const auto admin = world_.authority().IssueClient(
      {.user = "berth-admin", .groups = {"system:masters"}}, world_.loop().WallNow());
  host.UseCredentials(*admin);
  EXPECT_FALSE(host.Connect());
  EXPECT_EQ(host.refused(), kNotAHost);
}

TEST_F(SessionTest, C15_AnExpiredCertificateIsRefusedByName) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  world_.Pass(Duration::Hours(25));
  EXPECT_FALSE(host.Connect());
  EXPECT_EQ(host.refused(), kExpired);
  ASSERT_TRUE(host.end().has_value());
  EXPECT_TRUE(host.end()->Is(Reason::kUnauthorized)) << *host.end();
}

TEST_F(SessionTest, C17_AHostThatWasRemovedIsRefused) {
  TestHost host(world_, "never-joined");
  EXPECT_FALSE(host.Connect());
  EXPECT_EQ(host.refused(), kRemoved);
}

TEST_F(SessionTest, R9_1_ARevocationCutsALiveSessionWithinASecondAndKeepsItOut) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  ASSERT_NE(host.Join("pool-a"), "");
  ASSERT_TRUE(world_.Run(client::RevokeHost(world_.client(), "a", world_.loop().WallNow())).ok());
  EXPECT_TRUE(world_.Until([&] { return host.refused() == kRevoked; }, Duration::Seconds(1)));
  EXPECT_EQ(world_.gateway().sessions(), 0);
  EXPECT_FALSE(host.Connect());
  EXPECT_EQ(host.refused(), kRevoked);
  // With a certificate that was issued later it is welcome again.
  world_.Pass(Duration::Seconds(2));
  host.UseCredentials(world_.CredentialsOf("a"));
  EXPECT_TRUE(host.Connect());
}

TEST_F(SessionTest, AVersionThatIsNotSpokenIsRefusedWithBothRanges) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  host.hello.mutable_versions()->set_min(7);
  host.hello.mutable_versions()->set_max(9);
  EXPECT_FALSE(host.Connect());
  EXPECT_EQ(host.refused(), kVersion);
  host.hello.mutable_versions()->set_min(0);
  EXPECT_TRUE(host.Connect());
}

TEST_F(SessionTest, R5_8_AServerThatStopsSendsItsHostsToTheOthers) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  ASSERT_NE(host.Join("pool-a"), "");
  world_.gateway().SetServers({"server:7443", "second:7443", "third:7443"},
                              {"second:7443", "third:7443"});
  ASSERT_TRUE(world_.Run(world_.gateway().Close()).ok());
  ASSERT_TRUE(host.WaitRefused());
  EXPECT_EQ(host.refused(), kDraining);
  ASSERT_GE(host.received.size(), 2);
  const agent::ServerMessage& before = host.received[host.received.size() - 2];
  ASSERT_TRUE(before.has_redirect()) << before.ShortDebugString();
  EXPECT_EQ(before.redirect().servers_size(), 2);
  EXPECT_EQ(before.redirect().servers(0), "second:7443");
  EXPECT_EQ(before.redirect().servers(1), "third:7443");
}

TEST_F(SessionTest, R5_8_AServerThatIsAloneSendsNobodyAway) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  ASSERT_NE(host.Join("pool-a"), "");
  ASSERT_TRUE(world_.Run(world_.gateway().Close()).ok());
  ASSERT_TRUE(host.WaitRefused());
  EXPECT_EQ(host.refused(), kDraining);
  EXPECT_FALSE(host.Any([](const auto& message) { return message.has_redirect(); }));
}

TEST_F(SessionTest, Seq20_AHostThatHasSeenALaterHistoryStaysAway) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  host.hello.set_incarnation(2);
  EXPECT_FALSE(host.Connect());
  EXPECT_EQ(host.refused(), kOlderHistory);
}

TEST_F(SessionTest, MalformedAndMisplacedMessagesEndTheSessionWithTheReason) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  ASSERT_TRUE(host.Open().ok());
  host.SendRaw("\xff\xff\xff");
  EXPECT_TRUE(host.WaitRefused());
  EXPECT_EQ(host.refused(), kProtocol);

  ASSERT_TRUE(host.Connect());
  host.SendRaw("\xff\xff\xff");
  EXPECT_TRUE(host.WaitRefused());
  EXPECT_EQ(host.refused(), kProtocol);

  ASSERT_TRUE(host.Connect());
  host.Say([](agent::HostBatch& batch) { batch.add_acks(); });  // before any announcement
  EXPECT_TRUE(host.WaitRefused());
  EXPECT_EQ(host.refused(), kProtocol);

  ASSERT_NE(host.Join("pool-a"), "");
  agent::Announce again;
  again.set_last(true);
  host.Announce(again);
  EXPECT_TRUE(host.WaitRefused());
  EXPECT_EQ(host.refused(), kProtocol);
}

TEST_F(SessionTest, AHostThatSaysNothingIsNotWaitedFor) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  ASSERT_TRUE(host.Open().ok());
  EXPECT_TRUE(host.WaitRefused());
  EXPECT_EQ(host.refused(), kProtocol);
}

TEST_F(SessionTest, C16_R5_3_ALiveDuplicateIsRefusedAndTheIncumbentStays) {
  world_.Enrol("a");
  TestHost first(world_, "a", "node-1");
  TestHost second(world_, "a", "node-2");
  const std::string pool = first.Join("pool-a");
  ASSERT_NE(pool, "");
  EXPECT_FALSE(second.Connect());
  EXPECT_EQ(second.refused(), kAlreadyConnected);
  EXPECT_TRUE(second.end()->Is(Reason::kAlreadyExists)) << *second.end();
  EXPECT_EQ(first.refused(), "");
  EXPECT_EQ(world_.gateway().sessions(), 1);
  // The key may have been copied: operators find it where they look for the pool.
  std::vector<apis::k8s::CoreEvent> events;
  ASSERT_TRUE(world_.Until([&] { return !(events = EventsNamed("AlreadyConnected")).empty(); }));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].involved_object.kind, "MachinePool");
  EXPECT_EQ(events[0].involved_object.name, "pool-a");
  EXPECT_EQ(events[0].involved_object.uid, pool);
  EXPECT_EQ(events[0].type, apis::k8s::kEventWarning);
  EXPECT_NE(events[0].message.find("host a"), std::string::npos) << events[0].message;
}

TEST_F(SessionTest, R5_3_AnIncumbentThatDoesNotAnswerIsSuperseded) {
  world_.Enrol("a");
  TestHost first(world_, "a", "node-1");
  TestHost second(world_, "a", "node-2");
  ASSERT_NE(first.Join("pool-a"), "");
  world_.network().Isolate("node-1");  // half open: nobody's TCP has noticed
  const Time asked = world_.loop().Now();
  EXPECT_NE(second.Join("pool-a"), "");
  EXPECT_GE(world_.loop().Now() - asked, kChallenge);
  EXPECT_EQ(world_.gateway().sessions(), 1);
  world_.Pass(Duration::Seconds(3));
  EXPECT_TRUE(EventsNamed("AlreadyConnected").empty());
  world_.network().HealAll();
  EXPECT_TRUE(world_.Until([&] { return first.refused() == kSuperseded; }));
}

TEST_F(SessionTest, C16_TheSameIdentityMayReturnAfterItsSessionEnded) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  const std::string uid = host.Join("pool-a");
  ASSERT_NE(uid, "");
  const uint64_t before = host.welcome()->session().counter();
  host.Leave();
  EXPECT_TRUE(world_.Until([&] { return world_.gateway().sessions() == 0; }));
  EXPECT_EQ(host.Join("pool-a"), uid);
  EXPECT_GT(host.welcome()->session().counter(), before);
}

TEST_F(SessionTest, SessionsOfALaterServerAreLarger) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  ASSERT_NE(host.Join("pool-a"), "");
  const agent::SessionId before = host.welcome()->session();
  world_.RestartGateway();
  EXPECT_EQ(host.refused(), "");
  ASSERT_NE(host.Join("pool-a"), "");
  EXPECT_GT(host.welcome()->session().start(), before.start());
}

TEST_F(SessionTest, AHostileHostIsCutOffAndSlowsNobodyElse) {
  world_.Enrol("a");
  world_.Enrol("b");
  TestHost bad(world_, "a");
  TestHost good(world_, "b");
  ASSERT_NE(bad.Join("pool-a"), "");
  ASSERT_NE(good.Join("pool-b"), "");
  for (int i = 0; i < 5000; ++i) {
    bad.Say([](agent::HostBatch& batch) { batch.add_acks()->set_uid("nobody's"); });
  }
  EXPECT_TRUE(world_.Until([&] { return bad.refused() == kLimits; }));
  const size_t before = good.grants();
  world_.Pass(Duration::Seconds(5));
  EXPECT_GT(good.grants(), before);
  EXPECT_EQ(good.refused(), "");
}

}  // namespace
}  // namespace berth::gateway
