// SPDX-License-Identifier: Apache-2.0
// Machines that may be moved live by leases (PROTOCOL 3): without a grant they die, and nobody
// revives them by mistake.
#include <gtest/gtest.h>

#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

TEST(Poollet, P7_AMoveMachineStartsOnlyUnderALeaseOfThisSession) {
  World world;
  world.server.grants = false;
  world.StartAndSync();
  world.server.Desire("m1", {.moves = true});
  ASSERT_TRUE(world.Until([&] {
    const auto found = world.server.heard.find("m1");
    return found != world.server.heard.end() && found->second.conditions.at("Ready") == "NoLease";
  }));
  EXPECT_EQ(world.host.Objects("m1"), 0);
  world.server.grants = true;
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_TRUE(world.host.fake().state().leases().contains("m1"));
}

TEST(Poollet, R3_2_R3_3_2_LeaseWithoutGrantsAMoveMachineDiesAndAKeepMachineLives) {
  World world;
  world.StartAndSync();
  world.server.Desire("moves", {.moves = true});
  world.server.Desire("keeps", {});
  ASSERT_TRUE(world.UntilState("moves", "Running"));
  ASSERT_TRUE(world.UntilState("keeps", "Running"));
  world.network.Partition("server", "host");
  world.loop.RunFor(Duration::Seconds(9));
  EXPECT_EQ(world.host.Running("moves"), 0);
  EXPECT_EQ(world.host.Running("keeps"), 1);
  // Back, and confirmed: it may start again.
  world.network.HealAll();
  ASSERT_TRUE(world.Until([&] { return world.host.Running("moves") == 1; }));
}

TEST(Poollet, R3_3_5_LeaseAGrantOnANewSessionDoesNotReviveWhatIsNotConfirmed) {
  World world;
  world.StartAndSync();
  world.server.Desire("moves", {.moves = true});
  ASSERT_TRUE(world.UntilState("moves", "Running"));
  world.server.confirms = false;
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  world.loop.RunFor(Duration::Seconds(10));
  EXPECT_EQ(world.host.Running("moves"), 0) << "the server may be moving it";
}

TEST(Poollet, Seq20_WhileHistoryIsOpenAMoveMachineRunsOnButIsNotStarted) {
  World world;
  world.StartAndSync();
  world.server.Desire("runs", {.moves = true});
  world.server.Desire("crashes", {.moves = true});
  ASSERT_TRUE(world.UntilState("runs", "Running"));
  ASSERT_TRUE(world.UntilState("crashes", "Running"));
  world.server.incarnation = 2;
  world.server.is_open = true;
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  EXPECT_EQ(world.server.known.at("runs").proof, "given 1");
  EXPECT_TRUE(world.server.known.at("runs").leased);
  world.host.fake().state().CrashGuest(world.host.fake().clock(), world.Id("crashes"));
  world.loop.RunFor(Duration::Seconds(30));
  EXPECT_EQ(world.host.Running("runs"), 1) << "its lease goes on";
  EXPECT_EQ(world.host.Running("crashes"), 0) << "it may run elsewhere";
  world.server.Settle();
  ASSERT_TRUE(world.Until([&] { return world.host.Running("crashes") == 1; }));
}

TEST(Poollet, R3_3_2_LeaseADeadPoolletDoesNotKeepAMoveMachineAlive) {
  World world;
  world.StartAndSync();
  world.server.Desire("moves", {.moves = true});
  ASSERT_TRUE(world.UntilState("moves", "Running"));
  world.host.Kill();
  world.loop.RunFor(Duration::Seconds(9));
  EXPECT_EQ(world.host.Running("moves"), 0);
}

TEST(Poollet, Seq16_AMoveMachineThatWasBoundDuringAPartitionDoesNotStartLate) {
  World world;
  world.server.grants = false;  // the server has fenced this session already
  world.StartAndSync();
  world.server.Desire("m1", {.moves = true});
  world.loop.RunFor(Duration::Seconds(20));
  EXPECT_EQ(world.host.Running("m1"), 0);
}

}  // namespace
}  // namespace berth::poollet
