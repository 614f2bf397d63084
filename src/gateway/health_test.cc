// SPDX-License-Identifier: Apache-2.0
// Leases, silence and goodbyes as hosts and people see them (PROTOCOL 3.3, 3.4, 3.6).
#include <gtest/gtest.h>

#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

class HealthTest : public testing::Test {
 protected:
  HealthTest() { world_.Enrol("a"); }
  fleet::PoolHealth Health() { return world_.gateway().Health().at(0); }

  GatewayWorld world_;
  TestHost host_{world_, "a"};
};

TEST_F(HealthTest, R3_3_1_D18_HeartbeatsAreGrantedAndCostNoWrite) {
  ASSERT_NE(host_.Join("pool"), "");
  world_.Pass(Duration::Seconds(3));
  const std::string before = world_.Pool("pool").metadata().resource_version;
  const size_t granted = host_.grants();
  world_.Pass(Duration::Seconds(60));
  EXPECT_GE(host_.grants(), granted + 29);
  EXPECT_EQ(world_.Pool("pool").metadata().resource_version, before);
  EXPECT_EQ(Health().contact, fleet::PoolHealth::Contact::kConnected);
  EXPECT_LE(world_.loop().Now() - Health().last_grant, Duration::Seconds(3));
}

TEST_F(HealthTest, AForgedSessionInAHeartbeatEndsTheRealOne) {
  host_.beats = false;
  ASSERT_NE(host_.Join("pool"), "");
  agent::HostMessage message;
  message.mutable_heartbeat()->mutable_session()->set_start(1);
  message.mutable_heartbeat()->mutable_session()->set_counter(77);
  host_.Send(message);
  EXPECT_TRUE(host_.WaitRefused());
  EXPECT_EQ(host_.refused(), kProtocol);
  EXPECT_EQ(host_.grants(), 0);
}

TEST_F(HealthTest, R3_6_SilenceForTheGraceMakesThePoolUnknownOnceAndAWordMakesItReady) {
  const std::string pool = host_.Join("pool");
  world_.network().Isolate("a");
  world_.Pass(Duration::Seconds(4));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "True Connected");
  world_.Pass(Duration::Seconds(6));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "Unknown Silent");
  EXPECT_TRUE(world_.gateway().Pools().empty());
  const std::string version = world_.Pool("pool").metadata().resource_version;
  world_.Pass(Duration::Seconds(10));
  EXPECT_EQ(world_.Pool("pool").metadata().resource_version, version);
  world_.network().HealAll();
  world_.Pass(Duration::Seconds(5));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "True Connected");
  EXPECT_EQ(world_.gateway().Pools().size(), 1);
}

TEST_F(HealthTest, R5_1_WithoutASessionNothingIsOfferedFromTheFirstMoment) {
  const std::string pool = host_.Join("pool");
  host_.Leave();
  EXPECT_TRUE(world_.Until([&] { return world_.gateway().Pools().empty(); }, Duration::Seconds(1)));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "True Connected");  // the grace has not passed
  world_.Pass(Duration::Seconds(8));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "Unknown Silent");
  EXPECT_EQ(host_.Join("pool"), pool);
  EXPECT_EQ(world_.Condition("pool", "Ready"), "True Connected");
}

TEST_F(HealthTest, C19_AGoodbyeWithKeepIsAPlannedAbsenceOfFiveMinutes) {
  ASSERT_NE(host_.Join("pool"), "");
  agent::HostMessage goodbye;
  goodbye.mutable_goodbye()->set_mode(agent::Goodbye::KEEP);
  host_.Send(goodbye);
  ASSERT_TRUE(world_.Until(
      [&] { return host_.Any([](const auto& message) { return message.has_farewell(); }); }));
  host_.Leave();
  world_.Pass(Duration::Seconds(30));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "False PlannedAbsence");
  EXPECT_EQ(Health().contact, fleet::PoolHealth::Contact::kAway);
  world_.Pass(Duration::Minutes(5));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "Unknown Silent");
  EXPECT_EQ(Health().contact, fleet::PoolHealth::Contact::kSilent);
}

TEST_F(HealthTest, C19_AGoodbyeWithDrainCordonsAndEndsWhenNothingIsLeft) {
  const std::string pool = host_.Join("pool");
  const meta::Object machine = world_.MakeMachine("web");
  ASSERT_TRUE(world_.Bind(machine, "pool", pool).ok());
  ASSERT_TRUE(host_.WaitAssigns(1));
  agent::HostMessage goodbye;
  goodbye.mutable_goodbye()->set_mode(agent::Goodbye::DRAIN);
  host_.Send(goodbye);
  world_.Pass(Duration::Seconds(2));
  EXPECT_TRUE(world_.Pool("pool").as<apis::compute::MachinePool>().spec.unschedulable);
  EXPECT_TRUE(world_.gateway().Pools().empty());
  const auto farewell = [](const auto& message) { return message.has_farewell(); };
  EXPECT_FALSE(host_.Any(farewell));
  ASSERT_TRUE(world_.Unbind(machine, 1).ok());
  EXPECT_TRUE(world_.Until([&] { return host_.Any(farewell); }));
}

TEST_F(HealthTest, R3_3_3_AFencedHostGetsNoGrantUntilItConnectsAgain) {
  const std::string pool = host_.Join("pool");
  world_.Pass(Duration::Seconds(3));
  const fleet::PoolHealth health = world_.gateway().Fence(pool);
  EXPECT_EQ(health.pool_uid, pool);
  EXPECT_LE(world_.loop().Now() - health.last_grant, Duration::Seconds(3));
  EXPECT_EQ(health.lease, Duration::Seconds(8));
  const size_t granted = host_.grants();
  EXPECT_TRUE(host_.WaitRefused());
  EXPECT_EQ(host_.refused(), kFenced);
  world_.Pass(Duration::Seconds(10));
  EXPECT_EQ(host_.grants(), granted);
  ASSERT_EQ(host_.Join("pool"), pool);
  world_.Pass(Duration::Seconds(3));
  EXPECT_GT(host_.grants(), 0);
}

TEST_F(HealthTest, R3_3_6_ANewServerCountsFromItsOwnStart) {
  const std::string pool = host_.Join("pool");
  host_.Leave();
  world_.RestartGateway();
  const Time start = world_.loop().Now();
  world_.Pass(Duration::Seconds(3));
  EXPECT_EQ(Health().pool_uid, pool);
  EXPECT_EQ(Health().contact, fleet::PoolHealth::Contact::kSilent);
  EXPECT_LE(start - Health().last_grant, Duration::Seconds(1));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "True Connected");
  world_.Pass(Duration::Seconds(5));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "Unknown Silent");
}

TEST_F(HealthTest, R3_3_6_AServerThatDoesNotLeadGrantsNothingAndWelcomesNobody) {
  const std::string pool = host_.Join("pool");
  world_.Pass(Duration::Seconds(3));
  world_.leads = false;
  const size_t granted = host_.grants();
  // It is told with its next heartbeat, so that it looks for the one that leads.
  world_.Pass(Duration::Seconds(3));
  EXPECT_EQ(host_.grants(), granted);
  EXPECT_EQ(host_.refused(), kUnavailable);
  EXPECT_EQ(world_.gateway().sessions(), 0);
  host_.Leave();
  EXPECT_FALSE(host_.Connect());
  EXPECT_EQ(host_.refused(), kUnavailable);
  world_.leads = true;
  EXPECT_EQ(host_.Join("pool"), pool);
  world_.Pass(Duration::Seconds(3));
  EXPECT_GT(host_.grants(), 0);
}

TEST_F(HealthTest, CutEndsTheSessionWithItsReason) {
  ASSERT_NE(host_.Join("pool"), "");
  world_.gateway().Cut("a", "Isolated");
  EXPECT_TRUE(host_.WaitRefused());
  EXPECT_EQ(host_.refused(), "Isolated");
  EXPECT_EQ(world_.gateway().sessions(), 0);
}

}  // namespace
}  // namespace berth::gateway
