// SPDX-License-Identifier: Apache-2.0
// How a poollet finds, keeps and leaves its server.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

using Wish = FakeGateway::Wish;

TEST(Poollet, C19_C21_LeaveKeepSaysGoodbyeAndEverythingRunsOn) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_TRUE(world.host.Stop(LeaveMode::kKeep).ok());
  EXPECT_EQ(world.server.goodbye, "KEEP");
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, C19_C21_LeaveDrainWaitsUntilEverythingIsGone) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  world.server.Desire("m2", {});
  ASSERT_TRUE(world.UntilState("m2", "Running"));
  EXPECT_TRUE(world.host.Stop(LeaveMode::kDrain).ok());
  EXPECT_EQ(world.server.goodbye, "DRAIN");
  EXPECT_EQ(world.host.Objects("m1") + world.host.Objects("m2"), 0);
}

TEST(Poollet, C19_C21_LeaveDrainEndsWhenTheServerSaysThatTheRestStays) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.on_drain = FakeGateway::OnDrain::kKeepAll;
  const Time began = world.loop.Now();
  EXPECT_TRUE(world.host.Stop(LeaveMode::kDrain).ok());
  EXPECT_LT(world.loop.Now() - began, Duration::Seconds(1));
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, C21_LeaveDrainEndsAfterItsTimeAndKeepsWhatIsThere) {
  World world;
  world.host.options.session.drain_limit = Duration::Seconds(30);
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.on_drain = FakeGateway::OnDrain::kSilent;
  const Time began = world.loop.Now();
  EXPECT_TRUE(world.host.Stop(LeaveMode::kDrain).ok());
  EXPECT_GE(world.loop.Now() - began, Duration::Seconds(30));
  EXPECT_LT(world.loop.Now() - began, Duration::Seconds(33));
  EXPECT_EQ(world.server.goodbye, "KEEP") << "the server expects it back";
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, C21_LeaveDrainWithoutAServerEndsToo) {
  World world;
  world.host.options.session.drain_limit = Duration::Seconds(30);
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.Down();
  EXPECT_TRUE(world.host.Stop(LeaveMode::kDrain).ok());
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, C19_LeaveDrainIsSaidAgainOnANewSession) {
  World world;
  world.host.options.session.drain_limit = Duration::Seconds(30);
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_FALSE(world.server.is_leaving);
  world.server.on_drain = FakeGateway::OnDrain::kSilent;
  world.loop.After("test.break", Duration::Seconds(5), [&world] {
    world.server.on_drain = FakeGateway::OnDrain::kRemoveAll;
    world.server.CloseSession();
  });
  EXPECT_TRUE(world.host.Stop(LeaveMode::kDrain).ok());
  EXPECT_TRUE(world.server.is_leaving) << "it is not taken for a host that came back";
  EXPECT_EQ(world.server.goodbye, "DRAIN");
  EXPECT_EQ(world.host.Objects("m1"), 0);
}

TEST(Poollet, R3_5_C39_SessionTheFirstRetryComesWithin50Milliseconds) {
  World world;
  world.StartAndSync();
  world.server.CloseSession();
  EXPECT_TRUE(world.Until([&] { return world.server.sessions == 2; }, Duration::Millis(70)));
}

TEST(Poollet, Session_WhatHappenedWithoutOneIsSaidOfAChangedAssignmentToo) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Pending"));
  world.server.Down();
  ASSERT_TRUE(world.Until([&] { return world.host.Running("m1") == 1; }));
  world.loop.RunFor(Duration::Minutes(1));  // the host has seen it
  // Its owner writes a note: the assignment is another one, its generation is the same.
  world.server.Desire("m1", {.note = "edited"});
  world.server.Up();
  EXPECT_TRUE(world.UntilState("m1", "Running"));
}

TEST(Poollet, Session_WhatSomebodyWaitsForIsSaidAtOnce) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.Until([&] { return world.host.Running("m1") == 1; }));
  const Time booted = world.loop.Now() + SimHost::DefaultFake().times.boot;
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  // The runtime's answers and the network take their part of that.
  EXPECT_LT((world.loop.Now() - booted).millis(), 20);
}

TEST(Poollet, Session_ARefusalIsRememberedWithItsReason) {
  World world;
  world.server.refuses = "AlreadyConnected";
  world.host.Start();
  world.loop.RunFor(Duration::Seconds(5));
  EXPECT_NE(world.host.poollet().session().last_error().find("AlreadyConnected"),
            std::string::npos);
}

TEST(Poollet, Session_AnotherProtocolVersionIsRefusedByBothNumbers) {
  World world;
  world.server.version = 9;
  world.host.Start();
  world.loop.RunFor(Duration::Seconds(1));
  EXPECT_EQ(world.host.poollet().session().last_error(),
            "the server speaks version 9, this poollet 1 to 1");
}

TEST(Poollet, R5_8_SessionAServersRangeIsNamedToo) {
  World world;
  world.server.version = 3;
  world.server.versions = {.min = 2, .max = 3};
  world.host.options.session.versions = {.min = 1, .max = 2};
  world.host.Start();
  world.loop.RunFor(Duration::Seconds(1));
  EXPECT_EQ(world.host.poollet().session().last_error(),
            "the server speaks version 3 of 2 to 3, this poollet 1 to 2");
}

TEST(Poollet, R5_8_SessionAVersionThatTheServerDoesNotSpeakIsNotBelieved) {
  World world;
  world.server.version = 1;
  world.server.versions = {.min = 2, .max = 3};
  world.host.options.session.versions = {.min = 1, .max = 2};
  world.host.Start();
  world.loop.RunFor(Duration::Seconds(1));
  EXPECT_EQ(world.host.poollet().session().last_error(),
            "the server speaks version 1 of 2 to 3, this poollet 1 to 2");
}

TEST(Poollet, Session_AServerOfAnotherClusterIsNotObeyed) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.cluster_id = "22222222-2222-4222-8222-222222222222";
  world.server.CloseSession();
  world.loop.RunFor(Duration::Seconds(5));
  EXPECT_FALSE(world.server.is_synced());
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, Session_AnAnnounceIsSentInChunks) {
  World world;
  world.StartAndSync();
  const Wish tiny = {.resources = {{"cpu", 1}}};
  std::vector<std::string> uids;
  for (int i = 0; i < 200; ++i) uids.push_back("machine-number-" + std::to_string(i));
  for (const std::string& uid : uids) world.server.Desire(uid, tiny);
  // A refusal takes the place of an ack that was not said yet.
  const auto is_answered = [&](const std::string& uid) {
    return world.server.acks.contains(uid) || world.server.refused.contains(uid);
  };
  ASSERT_TRUE(world.Until([&] { return std::ranges::all_of(uids, is_answered); }));
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  EXPECT_GT(world.server.announce_chunks, 1U);
  EXPECT_EQ(world.server.known.size(), 200U);
}

TEST(Poollet, Session_ARedirectIsFollowed) {
  World world;
  FakeGateway other(world.loop, world.network, "other");
  world.StartAndSync();
  world.server.Redirect("other:7443");
  EXPECT_TRUE(world.Until([&] { return other.is_synced(); }, Duration::Seconds(1)));
  world.host.Kill();
}

TEST(Poollet, Session_OfSeveralServersTheOneThatLetsItInIsFoundAtOnce) {
  World world;
  FakeGateway second(world.loop, world.network, "second");
  FakeGateway third(world.loop, world.network, "third");
  second.Down();
  third.Down();
  world.host.options.host.servers = {"server:7443", "second:7443", "third:7443"};
  world.StartAndSync();
  third.Up();
  world.server.Down();
  EXPECT_TRUE(world.Until([&] { return third.is_synced(); }, Duration::Millis(200)));
  world.host.Kill();
}

TEST(Poollet, Session_ASilentServerIsLeftForAnother) {
  World world;
  FakeGateway other(world.loop, world.network, "other");
  world.host.options.host.servers = {"server:7443", "other:7443"};
  world.StartAndSync();
  world.server.grants = false;
  EXPECT_TRUE(world.Until([&] { return other.is_synced(); }, Duration::Seconds(10)));
  // It is passed over for a while. When the other one is lost too, it may be the one that leads.
  world.server.grants = true;
  other.Down();
  EXPECT_TRUE(world.Until([&] { return world.server.is_synced(); }, Duration::Seconds(4)));
  world.host.Kill();
}

TEST(Poollet, Session_ASilentServerKeepsAHostFromNoneOfTheOthers) {
  World world;
  FakeGateway second(world.loop, world.network, "second");
  FakeGateway third(world.loop, world.network, "third");
  third.Down();
  world.host.options.host.servers = {"server:7443", "second:7443", "third:7443"};
  world.StartAndSync();
  // The next one to be asked says nothing, and the last one leads only a moment later.
  world.network.Isolate("second");
  world.server.Down();
  world.loop.RunFor(Duration::Millis(700));
  third.Up();
  EXPECT_TRUE(world.Until([&] { return third.is_synced(); }, Duration::Millis(800)));
  // Nobody is left knocking at the silent one.
  world.network.Rejoin("second");
  world.loop.RunFor(Duration::Seconds(5));
  EXPECT_EQ(second.sessions, 0U);
  EXPECT_EQ(world.network.connections(), 1U);
  world.host.Kill();
}

TEST(Poollet, Session_ASlowServerIsWaitedForWhileTheOthersRefuse) {
  World world;
  FakeGateway second(world.loop, world.network, "second");
  second.Down();
  world.host.options.host.servers = {"server:7443", "second:7443"};
  world.network.SetDelay("server", "host", Duration::Millis(1'500));
  world.host.Start();
  EXPECT_TRUE(world.Until([&] { return world.server.sessions == 1; }, Duration::Seconds(2)));
  EXPECT_TRUE(world.Until([&] { return world.server.is_synced(); }, Duration::Seconds(8)));
  EXPECT_EQ(world.server.sessions, 1U);
  world.host.Kill();
}

TEST(Poollet, Session_ManyWordsOfOneTurnAreFewMessages) {
  World world;
  world.StartAndSync();
  world.loop.RunFor(Duration::Seconds(2));
  const size_t before = world.server.batches;
  for (uint64_t i = 1; i <= 50; ++i) world.server.Offer(1, i, "u" + std::to_string(i), {});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.size() == 50; }));
  EXPECT_LE(world.server.batches - before, 50U);
}

}  // namespace
}  // namespace berth::poollet
