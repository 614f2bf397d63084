// SPDX-License-Identifier: Apache-2.0
// What runtimes say has happened reaches a server, whoever was away when it did.
#include <gtest/gtest.h>

#include <algorithm>

#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

void Crash(World& world, const std::string& uid) {
  world.host.fake().state().CrashGuest(world.host.fake().clock(), world.Id(uid));
}

size_t TimesHeard(const FakeGateway& server, const std::string& event) {
  return static_cast<size_t>(std::ranges::count(server.events, event));
}

TEST(Poollet, Record_WhatHappenedWhileItWasDeadIsTold) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.host.Kill();
  world.loop.RunFor(Duration::Seconds(5));
  Crash(world, "m1");
  world.loop.RunFor(Duration::Seconds(5));
  world.host.Start();
  EXPECT_TRUE(world.Until([&] { return TimesHeard(world.server, "m1 Crashed") == 1; },
                          Duration::Seconds(2)));
  // And only once, however often it dies.
  world.loop.RunFor(Duration::Minutes(1));
  world.host.Kill();
  world.host.Start();
  world.loop.RunFor(Duration::Minutes(1));
  EXPECT_EQ(TimesHeard(world.server, "m1 Crashed"), 1U);
}

TEST(Poollet, Record_WhatNoServerHeardIsToldByTheNextLife) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.loop.RunFor(Duration::Minutes(1));
  world.server.Down();
  Crash(world, "m1");
  world.loop.RunFor(Duration::Minutes(1));
  world.host.Kill();
  world.host.Start();
  world.loop.RunFor(Duration::Minutes(1));
  world.server.Up();
  EXPECT_TRUE(world.Until([&] { return TimesHeard(world.server, "m1 Crashed") == 1; }));
}

}  // namespace
}  // namespace berth::poollet
