// SPDX-License-Identifier: Apache-2.0
// Whoever dies, whenever: one object per uid, nothing lost, no capacity forgotten.
#include <gtest/gtest.h>

#include "berth/agent/v1/agent.pb.h"
#include "poollet/poollet.h"
#include "poollet/testing/fake_gateway.h"
#include "poollet/testing/sim_host.h"
#include "rt/sim/run_task.h"

namespace berth::poollet {
namespace {

struct World {
  explicit World(uint64_t seed, runtime::FakeHostOptions fake = SimHost::DefaultFake())
      : loop(seed),
        network(loop),
        server(loop, network),
        host(loop, network, seed, std::move(fake)) {
    host.options.host.reconcile.create_settle = Duration::Seconds(5);
  }
  bool Until(const std::function<bool()>& done, Duration limit = Duration::Minutes(3)) {
    return loop.RunUntil(done, limit);
  }
  rt::SimLoop loop;
  net::SimNetwork network;
  FakeGateway server;
  SimHost host;
};

std::string Describe(World& world) {
  std::string text = " sessions=" + std::to_string(world.server.sessions) +
                     " acks=" + std::to_string(world.server.acks.size()) +
                     " error=" + world.host.poollet().session().last_error();
  for (const auto& [uid, heard] : world.server.heard) {
    text += "\n  " + uid + " " + heard.state;
    for (const auto& [type, word] : heard.conditions) text += " " + type + "=" + word;
    text += " objects=" + std::to_string(world.host.Objects(uid)) +
            " running=" + std::to_string(world.host.Running(uid));
  }
  for (const auto& [uid, reason] : world.server.refused)
    text += "\n  refused " + uid + " " + reason;
  return text;
}

// Kills the poollet after `events` more events of the world, brings it back, and sees whether all
// is well in the end. False once the work was over before the kill.
bool KillAfter(uint64_t events, runtime::FakeHostOptions fake) {
  World world(events, std::move(fake));
  world.host.Start();
  CHECK(world.Until([&] { return world.server.is_synced(); }));
  world.server.Desire("m1", {});
  const uint64_t kill_at = world.loop.events() + events;
  int most = 0;
  const bool finished = world.Until([&] {
    most = std::max(most, world.host.Running("m1"));
    return world.loop.events() >= kill_at;
  });
  CHECK(finished);
  const bool was_running = world.host.Running("m1") == 1 && world.server.heard.contains("m1") &&
                           world.server.heard.at("m1").state == "Running";
  world.host.Kill();
  world.host.Start();
  EXPECT_TRUE(world.Until([&] {
    most = std::max(most, world.host.Running("m1"));
    return world.host.Running("m1") == 1 && world.host.Objects("m1") == 1 &&
           world.server.heard.contains("m1") && world.server.heard.at("m1").state == "Running";
  })) << "killed after "
      << events << " events";
  EXPECT_TRUE(world.Until([&] { return world.host.Objects("m1") == 1; }));
  world.loop.RunFor(Duration::Seconds(20));
  EXPECT_EQ(world.host.Objects("m1"), 1) << "killed after " << events << " events";
  EXPECT_LE(most, 1) << "killed after " << events << " events: two copies ran";
  // And the way back.
  world.server.Remove("m1", 1);
  EXPECT_TRUE(world.Until([&] { return world.server.gone.contains("m1"); }));
  EXPECT_EQ(world.host.Objects("m1"), 0);
  EXPECT_TRUE(world.host.poollet()
                  .host()
                  .ledger()
                  .AllocatedOf(FakeGateway::PoolUid("MachinePool"))
                  .empty());
  return !was_running;
}

TEST(PoolletCrash, Seq10_Seq11_Seq12_KilledAfterAnyEventThereIsOneObject) {
  uint64_t events = 1;
  while (KillAfter(events, SimHost::DefaultFake())) ++events;
  EXPECT_GT(events, 20U) << "the kills covered the whole way";
}

// The host lost its power, and the poollet is killed `events` events after it is back, perhaps
// while it gives a machine its ignition again; the runtime dies with it in every other world. False
// once the machine ran before the kill.
bool KilledWhileItGivesIgnition(uint64_t events) {
  World world(events);
  world.host.Start();
  CHECK(world.Until([&] { return world.server.is_synced(); }));
  FakeGateway::Wish wish;
  wish.edit = [](berth::agent::v1::Assign& assign) {
    assign.mutable_machine()->set_ignition("secret");
  };
  world.server.Desire("m1", wish);
  CHECK(world.Until([&] { return world.host.Running("m1") == 1; }));
  world.host.Kill();
  world.host.fake().state().PowerCut(world.host.fake().clock());
  world.host.Start();
  bool ran_bare = false;
  const auto look = [&] {
    const auto& machines = world.host.fake().state().machines();
    const bool is_bare = machines.begin()->second.object.spec.ignition_data.empty();
    ran_bare = ran_bare || (is_bare && world.host.Running("m1") > 0);
  };
  const uint64_t kill_at = world.loop.events() + events;
  CHECK(world.Until([&] {
    look();
    return world.loop.events() >= kill_at;
  }));
  const bool was_running = world.host.Running("m1") == 1;
  world.host.Kill();
  if (events % 2 == 0) {
    world.host.fake().Crash();
    world.host.fake().Restart();
  }
  world.host.Start();
  EXPECT_TRUE(world.Until([&] {
    look();
    return world.host.Running("m1") == 1 && world.server.heard.contains("m1") &&
           world.server.heard.at("m1").state == "Running";
  })) << "killed after "
      << events << " events" << Describe(world);
  EXPECT_FALSE(ran_bare) << "killed after " << events << " events";
  EXPECT_EQ(world.host.Objects("m1"), 1);
  return !was_running;
}

TEST(PoolletCrash, P9_KilledAfterAnyEventNoGuestRunsWithoutItsIgnition) {
  uint64_t events = 1;
  while (KilledWhileItGivesIgnition(events)) ++events;
  EXPECT_GT(events, 20U) << "the kills covered the whole way";
}

// Kills the poollet after `events` more events, with a create perhaps on its way that lands later,
// and deletes the machine in its next life. False once the machine was there before the kill.
bool DeletedAfterKill(uint64_t events, int& landed_late) {
  auto fake = SimHost::DefaultFake();
  fake.times.call_min = Duration::Millis(50);
  fake.times.call_max = Duration::Millis(50);
  fake.times.late_create = Duration::Seconds(3);
  World world(events, std::move(fake));
  world.host.Start();
  CHECK(world.Until([&] { return world.server.is_synced(); }));
  world.server.Desire("m1", {});
  const uint64_t kill_at = world.loop.events() + events;
  CHECK(world.Until([&] { return world.loop.events() >= kill_at; }));
  const bool was_there = world.host.Objects("m1") == 1;
  world.host.Kill();
  world.server.Remove("m1", 1);
  world.host.Start();
  int most = 0;
  EXPECT_TRUE(world.Until([&] {
    most = std::max(most, world.host.Objects("m1"));
    return world.server.gone.contains("m1");
  }));
  world.loop.RunFor(Duration::Seconds(30));
  EXPECT_EQ(world.host.Objects("m1"), 0) << "killed after " << events << " events";
  landed_late += !was_there && most == 1 ? 1 : 0;
  return !was_there;
}

TEST(PoolletCrash, Seq12_ACreateThatLandsAfterThePoolletsDeathGoesWithItsObject) {
  uint64_t events = 1;
  int landed_late = 0;
  while (DeletedAfterKill(events, landed_late)) ++events;
  EXPECT_GT(landed_late, 0) << "of " << events << " kills none met a create on its way";
}

TEST(PoolletCrash, Seq12_OnAForeignRuntimeTwoCopiesNeverRun) {
  auto fake = SimHost::DefaultFake();
  fake.flavor = runtime::FakeFlavor::kForeign;
  uint64_t events = 1;
  while (KillAfter(events, fake)) events += 3;
  EXPECT_GT(events, 20U);
}

TEST(PoolletCrash, D15_LostAnswersOfAForeignRuntimeLeaveOneObject) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    auto fake = SimHost::DefaultFake();
    fake.flavor = runtime::FakeFlavor::kForeign;
    fake.faults.create_answer_lost = 0.5;
    fake.faults.answer_lost = 0.2;
    fake.faults.call_fails = 0.1;
    fake.lies.list_omits = 0.1;
    World world(seed, fake);
    world.host.options.host.reconcile.create_settle = Duration::Seconds(2);
    world.host.Start();
    ASSERT_TRUE(world.Until([&] { return world.server.is_synced(); }));
    for (int i = 0; i < 5; ++i) world.server.Desire("m" + std::to_string(i), {});
    bool twice = false;
    ASSERT_TRUE(world.Until([&] {
      int running = 0;
      for (int i = 0; i < 5; ++i) {
        const int copies = world.host.Running("m" + std::to_string(i));
        twice = twice || copies > 1;
        running += copies;
      }
      return running == 5;
    })) << "seed "
        << seed << Describe(world);
    world.host.fake().state().options().faults = {};
    world.host.fake().state().options().lies = {};
    EXPECT_TRUE(world.Until([&] {
      for (int i = 0; i < 5; ++i) {
        if (world.host.Objects("m" + std::to_string(i)) != 1) return false;
      }
      return true;
    })) << "seed "
        << seed;
    EXPECT_FALSE(twice) << "seed " << seed << Describe(world);
  }
}

// Machines come and go while poollet, runtime and sessions die at random.
TEST(PoolletCrash, C37_EverythingConvergesAfterRandomDeaths) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    auto fake = SimHost::DefaultFake();
    fake.faults.create_answer_lost = 0.1;
    fake.faults.answer_lost = 0.05;
    if (seed % 3 == 0) fake.flavor = runtime::FakeFlavor::kForeign;
    World world(seed, fake);
    world.host.options.host.reconcile.create_settle = Duration::Seconds(2);
    world.host.options.host.reconcile.create_attempts = 1000;
    world.host.Start();
    Random random(seed);
    std::map<std::string, uint64_t> wanted;  // uid to placement
    bool twice = false;
    for (int round = 0; round < 60; ++round) {
      const std::string uid = "m" + std::to_string(random.Below(6));
      if (wanted.contains(uid)) {
        world.server.Remove(uid, wanted.at(uid));
        wanted.erase(uid);
      } else if (!world.host.is_up() || world.host.Objects(uid) == 0) {
        const uint64_t placement = static_cast<uint64_t>(round) * 2 + 1;
        world.server.Desire(uid, {.placement = placement});
        wanted[uid] = placement;
      }
      world.loop.RunFor(Duration::Millis(random.Between(1, 1500)));
      switch (random.Below(5)) {
        case 0:
          if (world.host.is_up()) world.host.Kill();
          break;
        case 1:
          world.host.fake().Crash();
          world.loop.RunFor(Duration::Millis(random.Between(1, 500)));
          world.host.fake().Restart();
          break;
        case 2: world.server.CloseSession(); break;
        default: break;
      }
      world.loop.RunFor(Duration::Millis(random.Between(1, 500)));
      if (!world.host.is_up()) world.host.Start();
      for (int i = 0; i < 6; ++i) twice = twice || world.host.Running("m" + std::to_string(i)) > 1;
    }
    world.host.fake().state().options().faults = {};
    EXPECT_FALSE(twice) << "seed " << seed;
    EXPECT_TRUE(world.Until([&] {
      for (int i = 0; i < 6; ++i) {
        const std::string uid = "m" + std::to_string(i);
        // What was refused on the way, or is gone (an earlier copy was being removed), is here
        // again only when the server says so again.
        const bool want = wanted.contains(uid);
        const auto gone = world.server.gone.find(uid);
        const bool is_gone =
            want && gone != world.server.gone.end() && gone->second == wanted.at(uid);
        if (is_gone || world.server.refused.contains(uid)) continue;
        if (world.host.Objects(uid) != (want ? 1 : 0)) return false;
        if (want && world.host.Running(uid) != 1) return false;
      }
      return world.server.is_synced();
    })) << "seed "
        << seed << Describe(world);
  }
}

TEST(PoolletCrash, TheSameSeedGivesTheSameRun) {
  const auto run = [](uint64_t seed) {
    World world(seed);
    world.host.Start();
    for (int i = 0; i < 5; ++i) world.server.Desire("m" + std::to_string(i), {});
    world.loop.RunFor(Duration::Seconds(30));
    world.host.Kill();
    return world.loop.trace_hash();
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

}  // namespace
}  // namespace berth::poollet
