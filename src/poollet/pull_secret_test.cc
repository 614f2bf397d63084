// SPDX-License-Identifier: Apache-2.0
// Credentials of registries go from the assignment to the runtime, and nowhere else.
#include <gtest/gtest.h>

#include "berth/agent/v1/agent.pb.h"
#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;

FakeGateway::Wish VolumeWish(const std::string& secret, int64_t generation = 1) {
  FakeGateway::Wish wish{.kind = "Volume",
                         .class_name = "fast",
                         .resources = {{"storage", 1 << 20}},
                         .generation = generation,
                         .storage_bytes = 1 << 20};
  wish.edit = [secret](pb::Assign& assign) {
    assign.mutable_volume()->set_image_pull_secret(secret);
  };
  return wish;
}

TEST(PoolletPullSecret, P9_TheRuntimeHasItBeforeTheObjectAndTheRecordNever) {
  World world;
  world.StartAndSync();
  world.server.Desire("v1", VolumeWish("who-i-am"));
  ASSERT_TRUE(world.UntilState("v1", "Available"));
  EXPECT_EQ(world.host.fake().state().pull_secrets().at("v1"), "who-i-am");
  const RecordEntry entry = world.host.poollet().host().record().entries.at("v1");
  EXPECT_TRUE(entry.had_secrets);
  EXPECT_EQ(entry.assign.find("who-i-am"), std::string::npos);
  FakeGateway::Wish machine;
  machine.edit = [](pb::Assign& assign) {
    assign.mutable_machine()->set_image_pull_secret("me-too");
  };
  world.server.Desire("m1", machine);
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_EQ(world.host.fake().state().pull_secrets().at("m1"), "me-too");
}

TEST(PoolletPullSecret, P9_ANewOneIsGivenWhileTheObjectWaits) {
  auto fake = SimHost::DefaultFake();
  fake.times.volume = Duration::Minutes(5);
  World world(1, fake);
  world.StartAndSync();
  world.server.Desire("v1", VolumeWish("old"));
  ASSERT_TRUE(world.UntilState("v1", "Pending"));
  ASSERT_TRUE(world.Until([&] { return world.host.fake().state().pull_secrets().contains("v1"); }));
  world.server.Desire("v1", VolumeWish("new", 2));
  EXPECT_TRUE(
      world.Until([&] { return world.host.fake().state().pull_secrets().at("v1") == "new"; }));
}

}  // namespace
}  // namespace berth::poollet
