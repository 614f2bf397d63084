// SPDX-License-Identifier: Apache-2.0
// Consoles, commands, logs and ports through the tunnel to the host (PROTOCOL 5.8).
#include <gtest/gtest.h>

#include <algorithm>

#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

TEST(Poollet, R5_8_AConsoleEchoesUntilItsInputIsOver) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.tunnel_input["t"] = {"one ", "two ", ""};
  world.server.OpenTunnel("t", "m1", 1, "console");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.contains("t"); }));
  EXPECT_EQ(world.server.tunnels.at("t"), "console of m1\r\none two 0");
}

TEST(Poollet, R5_8_LogsShellsAndPortsComeThroughTheTunnelToo) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.OpenTunnel("logs", "m1", 1, "logs");
  world.server.OpenTunnel("exec", "m1", 1, "exec");
  world.server.tunnel_input["port"] = {"ping", ""};
  world.server.OpenTunnel("port", "m1", 1, "portforward");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.size() == 3; }));
  EXPECT_TRUE(world.server.tunnels.at("logs").ends_with(" Booted the guest runs\n0"));
  EXPECT_EQ(world.server.tunnels.at("exec"), "ran \n0");
  EXPECT_EQ(world.server.tunnels.at("port"), "ping0");
}

TEST(Poollet, R5_8_AConsoleEndsWithItsGuestAndWithItsSession) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.OpenTunnel("a", "m1", 1, "console");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnel_bytes["a"] > 0; }));
  world.host.fake().state().CrashGuest(world.host.fake().clock(), world.Id("m1"));
  world.host.fake().Refresh();
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.contains("a"); }));
  EXPECT_TRUE(world.server.tunnels.at("a").ends_with("the guest is gone"));
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.OpenTunnel("b", "m1", 1, "console");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnel_bytes["b"] > 0; }));
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
}

TEST(Poollet, R5_8_AConsoleThatNobodyReadsHoldsUpNothingElse) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  // More than all windows and queues on the way back together, and none of it is read.
  world.server.reads_tunnels = false;
  world.server.tunnel_input["flood"] =
      std::vector<std::string>(64, std::string(size_t{64} << 10, 'x'));
  world.server.OpenTunnel("flood", "m1", 1, "console");
  world.server.Desire("m2", {});
  EXPECT_TRUE(world.UntilState("m2", "Running"));
  world.loop.RunFor(Duration::Seconds(30));
  EXPECT_TRUE(world.server.is_synced());
  EXPECT_FALSE(world.server.tunnels.contains("flood"));
}

TEST(Poollet, Tunnel_WhatCannotBeShownIsSaidSo) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.OpenTunnel("ticket-1", "m1", 1, "hologram");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.contains("ticket-1"); }));
  EXPECT_EQ(world.server.tunnels.at("ticket-1"), "the runtime of this host offers no hologram");
  world.server.OpenTunnel("ticket-2", "m1", 9, "console");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.contains("ticket-2"); }));
  EXPECT_EQ(world.server.tunnels.at("ticket-2"), "m1 is not on this host at placement 9");
}

TEST(Poollet, R5_8_OneTunnelTooManyIsRefusedAtOnceWithTheReason) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  for (int i = 0; i < 32; ++i) {
    const std::string ticket = "t" + std::to_string(i);
    world.server.OpenTunnel(ticket, "m1", 1, "console");
    ASSERT_TRUE(world.Until([&] { return world.server.tunnel_bytes[ticket] > 0; })) << i;
  }
  world.server.OpenTunnel("too-many", "m1", 1, "console");
  ASSERT_TRUE(
      world.Until([&] { return world.server.tunnels.contains("too-many"); }, Duration::Seconds(1)));
  EXPECT_TRUE(world.server.tunnels.at("too-many").starts_with("the host carries 32 consoles"));
  EXPECT_EQ(world.server.tunnels.size(), 1U) << "the others go on";
  // They end with their guest; then there is room again.
  world.host.fake().state().CrashGuest(world.host.fake().clock(), world.Id("m1"));
  world.host.fake().Refresh();
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.size() == 33; }));
  ASSERT_TRUE(
      world.Until([&] { return std::ranges::count(world.server.events, "m1 Booted") == 2; }));
  world.server.OpenTunnel("again", "m1", 1, "console");
  EXPECT_TRUE(world.Until([&] { return world.server.tunnel_bytes["again"] > 0; }));
  EXPECT_FALSE(world.server.tunnels.contains("again"));
}

}  // namespace
}  // namespace berth::poollet
