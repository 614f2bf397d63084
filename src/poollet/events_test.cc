// SPDX-License-Identifier: Apache-2.0
// What runtimes say has happened reaches a server, whoever was away when it did.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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

// A host of many guests, which all run; what was said of that is told, and that it was told is in
// the record.
constexpr size_t kGuests = 100;

runtime::FakeHostOptions Large() {
  constexpr int64_t kGiB = int64_t{1} << 30;
  runtime::FakeHostOptions fake = SimHost::DefaultFake();
  fake.capacity = {{std::string(iri::kCpu), int64_t{2 * kGuests * 1000}},
                   {std::string(iri::kMemory), int64_t{2 * kGuests} * kGiB},
                   {std::string(iri::kStorage), 1024 * kGiB}};
  return fake;
}

// Of how many guests the server has heard this.
size_t Heard(const FakeGateway& server, const std::string& reason) {
  std::set<std::string> heard;
  for (const std::string& event : server.events) {
    if (event.ends_with(" " + reason)) heard.insert(event);
  }
  return heard.size();
}

// Whether it hears it of so many.
bool Hears(World& world, const std::string& reason, size_t guests, Duration limit) {
  const Time until = world.loop.Now() + limit;
  while (Heard(world.server, reason) < guests && world.loop.Now() < until) {
    world.loop.RunFor(Duration::Millis(100));
  }
  return Heard(world.server, reason) >= guests;
}

void RunMany(World& world) {
  for (size_t i = 0; i < kGuests; ++i) world.server.Desire("m" + std::to_string(i), {});
  world.StartAndSync();
  ASSERT_TRUE(Hears(world, "Booted", kGuests, Duration::Minutes(1)));
  world.loop.RunFor(Duration::Minutes(1));
  EXPECT_EQ(world.server.events_left_out, 0U);
}

void CutPower(World& world) {
  world.host.Kill();
  world.host.fake().state().PowerCut(world.host.fake().clock());
  world.host.Start();
}

TEST(Poollet, R5_8_AfterAPowerCutTheServerHearsOfEveryGuest) {
  World world(1, Large());
  RunMany(world);
  CutPower(world);
  EXPECT_TRUE(Hears(world, "HostLostPower", kGuests, Duration::Seconds(15)));
  world.loop.RunFor(Duration::Minutes(1));
  EXPECT_EQ(world.server.events_left_out, 0U);
  EXPECT_EQ(TimesHeard(world.server, "m0 HostLostPower"), 1U);
}

TEST(Poollet, R5_8_AServerThatTakesMoreEventsHearsOfEveryGuestAtOnce) {
  World world(1, Large());
  world.server.events_per_second = 1000;
  RunMany(world);
  CutPower(world);
  EXPECT_TRUE(Hears(world, "HostLostPower", kGuests, Duration::Seconds(2)));
  EXPECT_EQ(world.server.events_left_out, 0U);
}

// The server would take it for words about what is others', and end the session.
TEST(Poollet, R5_8_NothingIsToldOfWhatIsGoneMeanwhile) {
  World world(1, Large());
  RunMany(world);
  world.server.events_per_second = 1;  // so that most of them wait
  CutPower(world);
  ASSERT_TRUE(Hears(world, "HostLostPower", 5, Duration::Seconds(15)));
  for (size_t i = 0; i < kGuests; ++i) world.server.Remove("m" + std::to_string(i), 1);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.size() == kGuests; }));
  world.loop.RunFor(Duration::Seconds(1));
  const size_t heard = world.server.events.size();
  world.loop.RunFor(Duration::Minutes(1));
  EXPECT_EQ(world.server.events.size(), heard);
  EXPECT_LT(Heard(world.server, "HostLostPower"), kGuests);
}

TEST(Poollet, R5_8_NothingIsToldOfWhatTheServerDoesNotKnow) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.Forget("m1");
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  Crash(world, "m1");
  world.loop.RunFor(Duration::Minutes(1));
  EXPECT_EQ(TimesHeard(world.server, "m1 Crashed"), 0U);
}

TEST(Poollet, Record_WhatWaitsForItsTurnCountsAsNotToldYet) {
  World world(1, Large());
  RunMany(world);
  CutPower(world);
  ASSERT_TRUE(Hears(world, "HostLostPower", kGuests / 4, Duration::Seconds(15)));
  ASSERT_LT(Heard(world.server, "HostLostPower"), kGuests);
  world.host.Kill();
  world.host.Start();
  EXPECT_TRUE(Hears(world, "HostLostPower", kGuests, Duration::Minutes(1)));
  EXPECT_EQ(world.server.events_left_out, 0U);
}

}  // namespace
}  // namespace berth::poollet
