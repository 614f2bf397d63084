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
  // What the pool says of the lease that its host was granted.
  void StoreLease(int seconds) {
    ASSERT_TRUE(
        world_
            .Patch(world_.Pool("pool"),
                   R"({"status":{"agent":{"leaseSeconds":)" + std::to_string(seconds) + "}}}",
                   client::Subresource::kStatus)
            .ok());
  }
  int StoredLease() {
    return world_.Pool("pool").as<apis::compute::MachinePool>().status.agent->lease_seconds;
  }

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

TEST_F(HealthTest, C19_APlannedAbsenceOutlivesTheServer) {
  ASSERT_NE(host_.Join("pool"), "");
  agent::HostMessage goodbye;
  goodbye.mutable_goodbye()->set_mode(agent::Goodbye::KEEP);
  host_.Send(goodbye);
  ASSERT_TRUE(world_.Until(
      [&] { return host_.Any([](const auto& message) { return message.has_farewell(); }); }));
  host_.Leave();
  world_.Pass(Duration::Minutes(2));
  world_.RestartGateway();
  world_.Pass(Duration::Minutes(2));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "False PlannedAbsence");
  EXPECT_EQ(Health().contact, fleet::PoolHealth::Contact::kAway);
  // Five minutes in all, not five more.
  world_.Pass(Duration::Seconds(70));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "Unknown Silent");
}

TEST_F(HealthTest, C19_APlannedAbsenceIsCountedFromTheGoodbye) {
  const std::string uid = host_.Join("pool");
  ASSERT_NE(uid, "");
  // It was not ready long before that.
  agent::HostMessage message;
  agent::PoolFacts& facts = *message.mutable_batch()->add_facts();
  facts.set_pool_uid(uid);
  facts.set_problem("the runtime is gone");
  host_.Send(message);
  ASSERT_TRUE(world_.Until([&] { return world_.Condition("pool", "Ready") == "False Runtime"; }));
  world_.Pass(Duration::Minutes(10));
  agent::HostMessage goodbye;
  goodbye.mutable_goodbye()->set_mode(agent::Goodbye::KEEP);
  host_.Send(goodbye);
  ASSERT_TRUE(world_.Until(
      [&] { return host_.Any([](const auto& message) { return message.has_farewell(); }); }));
  host_.Leave();
  world_.Pass(Duration::Seconds(5));
  ASSERT_EQ(world_.Condition("pool", "Ready"), "False PlannedAbsence");
  world_.RestartGateway();
  world_.Pass(Duration::Minutes(4));
  EXPECT_EQ(Health().contact, fleet::PoolHealth::Contact::kAway);
}

// A host with a machine that leaves with a drain. The controller that sends machines away is not
// here: tests do what it does.
class DrainTest : public HealthTest {
 protected:
  DrainTest() : pool_uid_(host_.Join("pool")), machine_(world_.MakeMachine("web")) {
    EXPECT_TRUE(world_.Bind(machine_, "pool", pool_uid_).ok());
    EXPECT_TRUE(host_.WaitAssigns(1));
  }
  void Say(agent::Goodbye::Mode mode) {
    agent::HostMessage goodbye;
    goodbye.mutable_goodbye()->set_mode(mode);
    host_.Send(goodbye);
    world_.Pass(Duration::Seconds(2));
  }
  bool HasFarewell() const {
    return host_.Any([](const auto& message) { return message.has_farewell(); });
  }
  bool IsCordoned() {
    return world_.Pool("pool").as<apis::compute::MachinePool>().spec.unschedulable;
  }
  std::string Annotation(std::string_view name) {
    const meta::Object pool = world_.Pool("pool");
    const auto found = pool.metadata().annotations.find(std::string(name));
    return found == pool.metadata().annotations.end() ? "" : found->second;
  }
  std::string Requested() { return Annotation(apis::core::kDrainRequestedAnnotation); }
  void SayItIsDone() {
    ASSERT_TRUE(world_
                    .Patch(world_.Pool("pool"),
                           R"({"metadata":{"annotations":{"berth.dev/drain-done":")" + Requested() +
                               R"("}}})")
                    .ok());
  }

  std::string pool_uid_;
  meta::Object machine_;
};

TEST_F(DrainTest, C19_AGoodbyeWithDrainCordonsAndEndsWhenNothingIsLeft) {
  Say(agent::Goodbye::DRAIN);
  EXPECT_TRUE(IsCordoned());
  EXPECT_NE(Requested(), "");
  EXPECT_TRUE(world_.gateway().Pools().empty());
  EXPECT_FALSE(HasFarewell());
  ASSERT_TRUE(world_
                  .Patch(machine_,
                         R"({"status":{"placement":{"release":"Drain"}}})",
                         client::Subresource::kStatus)
                  .ok());
  ASSERT_TRUE(host_.WaitDeletes(1));
  EXPECT_FALSE(HasFarewell());
  host_.SayGone(machine_.metadata().uid, 1);
  EXPECT_TRUE(world_.Until([&] { return HasFarewell(); }));
}

TEST_F(DrainTest, C19_ADrainEndsWhenWhatIsLeftStaysAndThatIsKept) {
  Say(agent::Goodbye::DRAIN);
  ASSERT_FALSE(HasFarewell());
  SayItIsDone();
  EXPECT_TRUE(world_.Until([&] { return HasFarewell(); }));
  host_.Leave();
  world_.Pass(Duration::Seconds(30));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "False PlannedAbsence");
  EXPECT_EQ(apis::EpochOf(world_.Read(machine_)), 1);
}

TEST_F(DrainTest, C19_AHostThatWaitsNoLongerSaysKeepAndItsDrainIsOver) {
  Say(agent::Goodbye::DRAIN);
  Say(agent::Goodbye::KEEP);
  EXPECT_TRUE(HasFarewell());
  EXPECT_NE(Requested(), "");
  EXPECT_EQ(Annotation(apis::core::kDrainDoneAnnotation), Requested());
}

TEST_F(DrainTest, C19_AHostThatComesBackTakesNewOnesAgain) {
  Say(agent::Goodbye::DRAIN);
  SayItIsDone();
  ASSERT_TRUE(world_
                  .Patch(world_.Pool("pool"),
                         R"({"status":{"conditions":[{"type":"Drained","status":"False"}]}})",
                         client::Subresource::kStatus)
                  .ok());
  ASSERT_EQ(host_.Join("pool"), pool_uid_);
  EXPECT_FALSE(IsCordoned());
  EXPECT_EQ(Requested(), "");
  EXPECT_EQ(Annotation(apis::core::kDrainDoneAnnotation), "");
  EXPECT_EQ(world_.Condition("pool", apis::core::kPoolDrained), "");
  EXPECT_EQ(world_.gateway().Pools().size(), 1);
}

TEST_F(DrainTest, C19_WhoWasCordonedByAnOperatorStaysSo) {
  world_.Cordon("pool");
  Say(agent::Goodbye::DRAIN);
  ASSERT_NE(Requested(), "");
  ASSERT_EQ(host_.Join("pool"), pool_uid_);
  EXPECT_EQ(Requested(), "");
  EXPECT_TRUE(IsCordoned());
}

TEST_F(DrainTest, C19_AHostThatIsStillLeavingIsNotTakenForOneThatCameBack) {
  Say(agent::Goodbye::DRAIN);
  const std::string requested = Requested();
  host_.hello.set_leaving(true);
  ASSERT_EQ(host_.Join("pool"), pool_uid_);
  EXPECT_TRUE(IsCordoned());
  EXPECT_EQ(Requested(), requested);
  EXPECT_TRUE(world_.gateway().Pools().empty());
  SayItIsDone();
  EXPECT_TRUE(world_.Until([&] { return HasFarewell(); }));
}

TEST_F(DrainTest, C19_VolumesDoNotHoldALeavingHost) {
  host_.Leave();
  ASSERT_TRUE(world_.Unbind(machine_, 1).ok());
  ASSERT_TRUE(host_.Connect());
  agent::Announce announce;
  *announce.add_pools() = TestHost::PoolNamed("pool", {{"cpu", 8000}});
  *announce.add_pools() = TestHost::PoolNamed("disks", {{"storage", 1000}});
  announce.mutable_pools(1)->set_kind("VolumePool");
  announce.set_last(true);
  host_.Announce(announce);
  ASSERT_TRUE(host_.WaitSynced());
  const meta::Object volume = world_.MakeVolume("data");
  ASSERT_TRUE(world_
                  .Bind(GatewayWorld::RequestFor({GatewayWorld::ItemFor(
                      volume, "disks", host_.PoolUid("disks"), {{"storage", 10}})}))
                  .ok());
  ASSERT_TRUE(host_.WaitAssigns(1));
  Say(agent::Goodbye::DRAIN);
  EXPECT_TRUE(HasFarewell());
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

TEST_F(HealthTest, R3_3_6_ANewServerKnowsTheLeaseOfTheLastSession) {
  ASSERT_NE(host_.Join("pool"), "");
  EXPECT_EQ(StoredLease(), 8);
  // As from the time when the fleet was larger.
  StoreLease(40);
  host_.Leave();
  world_.RestartGateway();
  world_.Pass(Duration::Seconds(8));
  EXPECT_EQ(Health().lease, Duration::Seconds(40));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "True Connected");
  world_.Pass(Duration::Seconds(24));
  EXPECT_EQ(world_.Condition("pool", "Ready"), "Unknown Silent");
}

// Somebody has written it past the API: the host is lost some time all the same.
TEST_F(HealthTest, R3_3_6_ALeaseThatNoServerCanHaveGrantedIsBounded) {
  ASSERT_NE(host_.Join("pool"), "");
  StoreLease(2147483647);
  world_.RestartGateway();
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(Health().lease, kLeaseMax);
}

TEST_F(HealthTest, R3_3_6_AShorterLeaseIsToldOnlyOnceTheLongerOneIsOver) {
  ASSERT_NE(host_.Join("pool"), "");
  StoreLease(40);
  host_.Leave();
  world_.RestartGateway();
  // Its guests may live on with what the first server granted, whatever becomes of the second.
  ASSERT_NE(host_.Join("pool"), "");
  EXPECT_EQ(StoredLease(), 40);
  world_.Pass(Duration::Seconds(45));
  ASSERT_NE(host_.Join("pool"), "");
  EXPECT_EQ(StoredLease(), 8);
}

// It would be as long as it once was for ever: every server begins with what the store says.
TEST_F(HealthTest, R3_3_6_ALongerLeaseThatIsOverIsForgottenDuringTheSessionAndOnce) {
  ASSERT_NE(host_.Join("pool"), "");
  StoreLease(40);
  host_.Leave();
  world_.RestartGateway();
  ASSERT_NE(host_.Join("pool"), "");
  world_.Pass(Duration::Seconds(35));
  EXPECT_EQ(StoredLease(), 40);
  world_.Pass(Duration::Seconds(10));
  EXPECT_EQ(StoredLease(), 8);
  const std::string version = world_.Pool("pool").metadata().resource_version;
  world_.Pass(Duration::Minutes(1));
  EXPECT_EQ(world_.Pool("pool").metadata().resource_version, version) << "heartbeats cost none";
  host_.Leave();
  world_.RestartGateway();
  EXPECT_EQ(Health().lease, Duration::Seconds(8));
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
