// SPDX-License-Identifier: Apache-2.0
// A host takes snapshots of its volumes, keeps them over every death, and fills volumes from them.
#include <gtest/gtest.h>

#include "berth/agent/v1/agent.pb.h"
#include "iri/annotations.h"
#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;

constexpr int64_t kBytes = 1 << 20;

FakeGateway::Wish VolumeWish() {
  return {.kind = "Volume",
          .class_name = "fast",
          .resources = {{"storage", kBytes}},
          .storage_bytes = kBytes};
}
FakeGateway::Wish SnapshotOf(const std::string& handle) {
  return {.kind = "VolumeSnapshot",
          .class_name = "fast",
          .resources = {{"storage", kBytes}},
          .note = handle};
}

class SnapshotWorld : public World {
 public:
  explicit SnapshotWorld(uint64_t seed = 1, runtime::FakeHostOptions fake = SimHost::DefaultFake())
      : World(seed, std::move(fake)) {
    host.options.host.reconcile.create_settle = Duration::Seconds(5);
    StartAndSync();
    server.Desire("v1", VolumeWish());
    CHECK(UntilState("v1", "Available"));
  }
  std::string VolumeHandle() { return server.heard.at("v1").runtime_id; }
  int64_t Allocated() {
    const Amounts all =
        host.poollet().host().ledger().AllocatedOf(FakeGateway::PoolUid("VolumePool"));
    return AmountOf(all, "storage");
  }
};

TEST(PoolletSnapshot, IsTakenReportedCountedAndRemoved) {
  SnapshotWorld world;
  world.server.Desire("s1", SnapshotOf(world.VolumeHandle()));
  ASSERT_TRUE(world.UntilState("s1", "Ready"));
  const auto& snapshots = world.host.fake().state().snapshots();
  ASSERT_EQ(snapshots.size(), 1U);
  const iri::VolumeSnapshot& made = snapshots.begin()->second.object;
  EXPECT_TRUE(world.VolumeHandle().ends_with("://" + made.volume_id)) << made.volume_id;
  EXPECT_EQ(iri::LabelOf(made.metadata, iri::kSnapshotNameLabel), "name-s1");
  EXPECT_TRUE(world.server.heard.at("s1").runtime_id.ends_with("://" + made.metadata.id));
  EXPECT_EQ(world.server.heard.at("s1").conditions.at("Ready"), "True");
  EXPECT_EQ(world.Allocated(), 2 * kBytes);

  // It outlives its volume.
  world.server.Remove("v1", 1);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("v1"); }));
  world.loop.RunFor(Duration::Minutes(3));
  EXPECT_EQ(world.server.heard.at("s1").state, "Ready");
  EXPECT_EQ(world.host.Objects("s1"), 1);

  world.server.Remove("s1", 1);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("s1"); }));
  EXPECT_EQ(world.host.Objects("s1"), 0);
  EXPECT_EQ(world.Allocated(), 0);
  EXPECT_TRUE(world.Until([&] { return world.host.poollet().host().record().entries.empty(); }));
}

TEST(PoolletSnapshot, WaitsForItsVolumeAndSaysSo) {
  SnapshotWorld world;
  FakeGateway::Wish wish = SnapshotOf("");
  wish.edit = [](pb::Assign& assign) {
    assign.mutable_snapshot()->add_missing("volume data is not available yet");
  };
  world.server.Desire("s1", wish);
  ASSERT_TRUE(world.UntilState("s1", "Pending"));
  EXPECT_EQ(world.server.heard.at("s1").conditions.at("Ready"), "PrerequisiteMissing");
  EXPECT_EQ(world.server.heard.at("s1").conditions.at("PrerequisitesMet"), "PrerequisiteMissing");
  EXPECT_EQ(world.host.Objects("s1"), 0);
  wish = SnapshotOf(world.VolumeHandle());
  wish.generation = 2;
  world.server.Desire("s1", wish);
  EXPECT_TRUE(world.UntilState("s1", "Ready"));
}

TEST(PoolletSnapshot, AVolumeBeginsWithTheSnapshotThatItsBodyNames) {
  SnapshotWorld world;
  world.server.Desire("s1", SnapshotOf(world.VolumeHandle()));
  ASSERT_TRUE(world.UntilState("s1", "Ready"));
  FakeGateway::Wish restored = VolumeWish();
  const std::string handle = world.server.heard.at("s1").runtime_id;
  restored.edit = [handle](pb::Assign& assign) {
    assign.mutable_volume()->set_snapshot_handle(handle);
  };
  world.server.Desire("v2", restored);
  ASSERT_TRUE(world.UntilState("v2", "Available"));
  const std::string id = world.host.fake().state().snapshots().begin()->first;
  for (const auto& [_, volume] : world.host.fake().state().volumes()) {
    const bool is_restored = iri::LabelOf(volume.object.metadata, iri::kVolumeUidLabel) == "v2";
    EXPECT_EQ(volume.object.spec.snapshot_id, is_restored ? id : "");
  }
}

TEST(PoolletSnapshot, AVolumeBeginsAsACopyOfTheVolumeThatItsBodyNames) {
  SnapshotWorld world;
  FakeGateway::Wish copy = VolumeWish();
  const std::string handle = world.VolumeHandle();
  copy.edit = [handle](pb::Assign& assign) {
    assign.mutable_volume()->set_snapshot_handle(handle);
  };
  world.server.Desire("v2", copy);
  ASSERT_TRUE(world.UntilState("v2", "Available"));
  for (const auto& [id, volume] : world.host.fake().state().volumes()) {
    const bool is_copy = iri::LabelOf(volume.object.metadata, iri::kVolumeUidLabel) == "v2";
    EXPECT_EQ(handle.ends_with("://" + volume.object.spec.snapshot_id), is_copy);
  }
  EXPECT_EQ(world.Allocated(), 2 * kBytes);
}

// Another one in its place would show another moment.
TEST(PoolletSnapshot, OneThatTheRuntimeHasLostIsNotTakenAgain) {
  SnapshotWorld world;
  world.server.Desire("s1", SnapshotOf(world.VolumeHandle()));
  ASSERT_TRUE(world.UntilState("s1", "Ready"));
  ASSERT_TRUE(world.Until(
      [&] { return world.host.poollet().host().record().entries.at("s1").was_available; }));
  const std::string id = world.host.fake().state().snapshots().begin()->first;
  ASSERT_TRUE(world.host.fake().state().DeleteSnapshot(world.host.fake().clock(), id).ok());
  ASSERT_TRUE(world.UntilState("s1", "Failed"));
  EXPECT_EQ(world.server.heard.at("s1").conditions.at("Ready"), "SnapshotLost");
  EXPECT_EQ(world.host.Objects("s1"), 0);
}

TEST(PoolletSnapshot, OneThatTheRuntimeCannotTakeIsGivenBack) {
  SnapshotWorld world;
  world.server.Desire("s1", SnapshotOf("fake://no-such-volume"));
  ASSERT_TRUE(world.Until([&] { return world.server.refused.contains("s1"); }));
  EXPECT_EQ(world.server.refused.at("s1"), "RuntimeRefused");
  EXPECT_EQ(world.Allocated(), kBytes) << "the volume's";
}

TEST(PoolletSnapshot, P3_OneThatDoesNotFitIsRefused) {
  SnapshotWorld world;
  FakeGateway::Wish wish = SnapshotOf(world.VolumeHandle());
  wish.resources["storage"] = world.host.fake().state().options().capacity.at("storage");
  world.server.Offer(1, 1, "s1", wish);
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("1/1"); }));
  EXPECT_EQ(world.server.answers.at("1/1").missing.at("storage"), kBytes);
}

// Kills the poollet after `events` more events, brings it back, and sees whether there is one
// snapshot in the end and none after its removal. False once the work was over before the kill.
bool KillAfter(uint64_t events, const runtime::FakeHostOptions& fake) {
  SnapshotWorld world(events, fake);
  world.server.Desire("s1", SnapshotOf(world.VolumeHandle()));
  const uint64_t kill_at = world.loop.events() + events;
  CHECK(world.Until([&] { return world.loop.events() >= kill_at; }));
  const auto heard = world.server.heard.find("s1");
  const bool was_ready = heard != world.server.heard.end() && heard->second.state == "Ready";
  world.host.Kill();
  world.host.Start();
  const bool is_made = world.Until(
      [&] {
        const auto found = world.server.heard.find("s1");
        return found != world.server.heard.end() && found->second.state == "Ready" &&
               world.host.Objects("s1") == 1;
      },
      Duration::Minutes(3));
  EXPECT_TRUE(is_made) << "killed after " << events << " events";
  world.loop.RunFor(Duration::Seconds(20));
  EXPECT_EQ(world.host.Objects("s1"), 1) << "killed after " << events << " events";
  // And on the way back: killed again while it is removed.
  world.server.Remove("s1", 1);
  world.loop.RunFor(Duration::Millis(static_cast<int64_t>(events % 40)));
  world.host.Kill();
  world.host.Start();
  EXPECT_TRUE(world.Until([&] { return world.server.gone.contains("s1"); }, Duration::Minutes(3)));
  EXPECT_EQ(world.host.Objects("s1"), 0);
  if (fake.flavor == runtime::FakeFlavor::kBerth) {  // others count parts of a whole
    EXPECT_EQ(world.Allocated(), kBytes) << "killed after " << events << " events";
  }
  return !was_ready;
}

TEST(PoolletSnapshot, Seq10_Seq11_Seq12_KilledAfterAnyEventThereIsOneSnapshot) {
  uint64_t events = 1;
  while (KillAfter(events, SimHost::DefaultFake())) events += 2;
  EXPECT_GT(events, 10U) << "the kills covered the whole way";
}

TEST(PoolletSnapshot, D15_OnAForeignRuntimeSurplusGoesBeforeItIsReady) {
  auto fake = SimHost::DefaultFake();
  fake.flavor = runtime::FakeFlavor::kForeign;
  uint64_t events = 1;
  while (KillAfter(events, fake)) events += 7;
  EXPECT_GT(events, 10U);
}

}  // namespace
}  // namespace berth::poollet
