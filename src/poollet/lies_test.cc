// SPDX-License-Identifier: Apache-2.0
// Runtimes that say what is not so: whatever they leave out or make twice, two copies of a machine
// never run (6.4), and what is really gone comes back.
#include <gtest/gtest.h>

#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

using runtime::FakeFlavor;

runtime::FakeHostOptions FakeOf(FakeFlavor flavor) {
  auto fake = SimHost::DefaultFake();
  fake.flavor = flavor;
  return fake;
}

// Passes the time; the most copies of the machine that ran at once.
int MostRunning(World& world, const std::string& uid, Duration time) {
  int most = 0;
  const Time end = world.loop.Now() + time;
  static_cast<void>(world.Until(
      [&] {
        most = std::max(most, world.host.Running(uid));
        return world.loop.Now() >= end;
      },
      time));
  return most;
}

TEST(PoolletLies, R6_4_AMachineThatIsNotListedIsNotMadeAnew) {
  for (const FakeFlavor flavor : {FakeFlavor::kForeign, FakeFlavor::kBerth}) {
    World world(1, FakeOf(flavor));
    world.StartAndSync();
    world.server.Desire("m1", {});
    ASSERT_TRUE(world.UntilState("m1", "Running"));
    const std::string id = world.Id("m1");
    world.host.fake().state().options().lies.list_omits = 1;
    EXPECT_EQ(MostRunning(world, "m1", Duration::Minutes(3)), 1);
    EXPECT_EQ(world.host.Objects("m1"), 1);
    EXPECT_EQ(world.server.heard.at("m1").conditions.at("Ready"), "NotListed");
    world.host.fake().state().options().lies = {};
    EXPECT_TRUE(world.UntilState("m1", "Running"));
    EXPECT_EQ(world.Id("m1"), id);
  }
}

TEST(PoolletLies, R6_4_AMachineThatIsNotListedIsNotMadeAnewByTheNextLifeOfThePoollet) {
  World world(2, FakeOf(FakeFlavor::kForeign));
  world.host.options.host.reconcile.create_settle = Duration::Seconds(5);
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.host.fake().state().options().lies.list_omits = 1;
  world.host.Kill();
  world.host.Start();
  EXPECT_EQ(MostRunning(world, "m1", Duration::Minutes(2)), 1);
  EXPECT_EQ(world.host.Objects("m1"), 1);
  world.host.fake().state().options().lies = {};
  EXPECT_TRUE(world.UntilState("m1", "Running"));
}

TEST(PoolletLies, R6_4_ListsThatLeaveThingsOutAndDeathsMakeNoSecondCopy) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    auto fake = FakeOf(seed % 2 == 0 ? FakeFlavor::kForeign : FakeFlavor::kBerth);
    fake.lies.list_omits = 0.3;
    fake.faults.create_answer_lost = 0.3;
    fake.faults.answer_lost = 0.1;
    World world(seed, fake);
    world.host.options.host.reconcile.create_settle = Duration::Seconds(5);
    world.host.options.host.reconcile.create_attempts = 1000;
    world.host.Start();
    world.server.Desire("m1", {});
    Random random(seed);
    for (int round = 0; round < 20; ++round) {
      const Duration time = Duration::Millis(random.Between(1, 8000));
      EXPECT_LE(MostRunning(world, "m1", time), 1) << "seed " << seed;
      world.host.Kill();
      world.host.Start();
    }
    world.host.fake().state().options().lies = {};
    world.host.fake().state().options().faults = {};
    EXPECT_TRUE(world.UntilState("m1", "Running")) << "seed " << seed;
    EXPECT_TRUE(world.Until([&] { return world.host.Objects("m1") == 1; })) << "seed " << seed;
    EXPECT_EQ(world.host.Running("m1"), 1) << "seed " << seed;
  }
}

TEST(PoolletLies, R6_4_ARuntimeThatMakesASecondOneAgainstItsWordStartsNone) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto fake = FakeOf(FakeFlavor::kBerth);
    fake.lies.creates_duplicates = true;
    fake.lies.list_omits = 1;
    fake.faults.create_answer_lost = 1;
    World world(seed, fake);
    world.StartAndSync();
    world.server.Desire("m1", {});
    EXPECT_LE(MostRunning(world, "m1", Duration::Seconds(10)), 1) << "seed " << seed;
    EXPECT_GT(world.host.Objects("m1"), 1) << "seed " << seed;
    world.host.fake().state().options().faults = {};
    world.host.fake().state().options().lies.list_omits = 0.3;
    EXPECT_LE(MostRunning(world, "m1", Duration::Seconds(20)), 1) << "seed " << seed;
    world.host.fake().state().options().lies = {};
    EXPECT_TRUE(world.UntilState("m1", "Running")) << "seed " << seed;
    EXPECT_TRUE(world.Until([&] { return world.host.Objects("m1") == 1; })) << "seed " << seed;
  }
}

TEST(PoolletLies, ADeadGuestThatIsSaidToRunIsStartedOnceTheRuntimeSaysSo) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  auto& state = world.host.fake().state();
  state.options().lies.reports_running = true;
  state.CrashGuest(world.host.fake().clock(), world.Id("m1"));
  world.host.fake().Refresh();
  world.loop.RunFor(Duration::Minutes(2));
  EXPECT_EQ(world.server.heard.at("m1").state, "Running") << "nobody else can know";
  EXPECT_EQ(world.host.Running("m1"), 0);
  state.options().lies = {};
  EXPECT_TRUE(world.Until([&] { return world.host.Running("m1") == 1; }));
  EXPECT_EQ(world.host.Objects("m1"), 1);
}

TEST(PoolletLies, R6_4_WhatIsReallyGoneIsMadeAgainAtOnce) {
  for (const FakeFlavor flavor : {FakeFlavor::kForeign, FakeFlavor::kBerth}) {
    World world(3, FakeOf(flavor));
    world.StartAndSync();
    world.server.Desire("m1", {});
    ASSERT_TRUE(world.UntilState("m1", "Running"));
    const std::string id = world.Id("m1");
    world.host.fake().Crash();
    world.host.fake().Restart(runtime::FakeHost::Memory::kLost);
    ASSERT_TRUE(world.Until([&] { return world.host.Objects("m1") == 1 && world.Id("m1") != id; },
                            Duration::Seconds(20)));
    EXPECT_TRUE(world.Until([&] { return world.host.Running("m1") == 1; }));
  }
}

TEST(PoolletLies, P4_ACreateThatCouldNotBeWrittenDownIsNotSent) {
  World world;
  world.StartAndSync();
  world.loop.RunFor(Duration::Seconds(1));
  SimDisk& disk = world.host.disk();
  const uint64_t writes = disk.writes();
  disk.OnWrite([&disk] { disk.FailWrites(Internal("no space left")); });
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.Until([&] { return world.server.acks.contains("m1"); }));
  world.loop.RunFor(Duration::Minutes(1));
  ASSERT_EQ(disk.writes(), writes + 1) << "the assignment, and not that a create begins";
  EXPECT_EQ(world.host.Objects("m1"), 0);
  disk.OnWrite(nullptr);
  disk.FailWrites(OkStatus());
  EXPECT_TRUE(world.UntilState("m1", "Running"));
}

}  // namespace
}  // namespace berth::poollet
