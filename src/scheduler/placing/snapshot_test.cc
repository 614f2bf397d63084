// SPDX-License-Identifier: Apache-2.0
// A snapshot goes where its volume is, a volume that begins with one, or with a copy of another
// volume, goes where that is, and whoever waits for the other says for what.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "apis/storage/volume_pool.h"
#include "apis/storage/volume_snapshot.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

using apis::storage::kVolumeKind;
using apis::storage::kVolumeSnapshotKind;
using apis::storage::Volume;
using apis::storage::VolumeSnapshot;

class SnapshotPlacingTest : public testing::Test {
 protected:
  static constexpr const char* kNamespace = SchedulerWorld::kNamespace;

  SnapshotPlacingTest() {
    for (const char* name : {"alpha", "beta", "gamma"}) {
      pools_.push_back(world_.MakeVolumePool(name, std::string("host-") + name, "Host"));
    }
    world_.StartScheduler();
    for (const std::string& pool : pools_) world_.JoinVolumePool(pool);
  }
  void MakeSnapshot(const std::string& name, const std::string& volume) {
    VolumeSnapshot snapshot;
    snapshot.metadata.namespace_ = kNamespace;
    snapshot.metadata.name = name;
    snapshot.spec.volume_ref.name = volume;
    const auto made = world_.api().Run(world_.api().client().Create(
        meta::Object::Of(kVolumeSnapshotKind, std::move(snapshot)), {}));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  void MakeRestored(
      const std::string& name,
      const std::string& snapshot,
      const std::function<void(Volume&)>& edit = [](Volume&) {}) {
    Volume volume;
    volume.metadata.namespace_ = kNamespace;
    volume.metadata.name = name;
    volume.spec.volume_class_ref = apis::core::LocalObjectReference{"disk"};
    volume.spec.resources = {{"storage", meta::Quantity(1LL << 30)}};
    volume.spec.data_source.emplace().volume_snapshot_ref =
        apis::core::LocalObjectReference{snapshot};
    edit(volume);
    const auto made = world_.api().Run(
        world_.api().client().Create(meta::Object::Of(kVolumeKind, std::move(volume)), {}));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  void MakeCopy(
      const std::string& name,
      const std::string& source,
      const std::function<void(Volume&)>& edit = [](Volume&) {}) {
    MakeRestored(name, "", [&](Volume& volume) {
      volume.spec.data_source.emplace().volume_ref = apis::core::LocalObjectReference{source};
      edit(volume);
    });
  }
  void SetVolumeState(const std::string& name, const std::string& state) {
    Volume volume = world_.GetVolume(name);
    volume.status.state = state;
    client::WriteOptions options;
    options.subresource = client::Subresource::kStatus;
    const auto written = world_.api().Run(
        world_.api().client().Update(meta::Object::Of(kVolumeKind, std::move(volume)), options));
    CHECK(written.ok()) << written.status();
  }
  VolumeSnapshot GetSnapshot(const std::string& name) {
    const auto got =
        world_.api().Run(world_.api().client().Get(kVolumeSnapshotKind, {kNamespace, name}));
    CHECK(got.ok()) << got.status();
    return got->as<VolumeSnapshot>();
  }
  void SetState(const std::string& name, const std::string& state, int64_t bytes = 1LL << 30) {
    VolumeSnapshot snapshot = GetSnapshot(name);
    snapshot.status.state = state;
    snapshot.status.snapshot_id = "test://s";
    snapshot.status.size = meta::Quantity(bytes);
    client::WriteOptions options;
    options.subresource = client::Subresource::kStatus;
    const auto written = world_.api().Run(world_.api().client().Update(
        meta::Object::Of(kVolumeSnapshotKind, std::move(snapshot)), options));
    CHECK(written.ok()) << written.status();
  }
  template <class T>
  static std::string PlaceOf(const T& object) {
    return object.status.placement ? object.status.placement->pool : std::string();
  }
  template <class T>
  static std::string WhyOf(const T& object) {
    for (const auto& condition : object.status.conditions) {
      if (condition.type == "Scheduled" && condition.status == "False") return condition.message;
    }
    return "";
  }
  bool WaitVolume(const std::string& name) {
    return world_.Until([&] { return !PlaceOf(world_.GetVolume(name)).empty(); });
  }
  bool WaitSnapshot(const std::string& name) {
    return world_.Until([&] { return !PlaceOf(GetSnapshot(name)).empty(); });
  }
  bool VolumeSays(const std::string& name, const std::string& text) {
    return world_.Until([&] { return WhyOf(world_.GetVolume(name)) == text; });
  }
  bool SnapshotSays(const std::string& name, const std::string& text) {
    return world_.Until([&] { return WhyOf(GetSnapshot(name)) == text; });
  }

  SchedulerWorld world_{7};
  std::vector<std::string> pools_;
};

TEST_F(SnapshotPlacingTest, ItGoesWhereItsVolumeIsAndTakesItsRoom) {
  MakeSnapshot("nightly", "data");
  EXPECT_TRUE(SnapshotSays("nightly", "there is no Volume data"));
  world_.MakeVolume("data", 2);
  ASSERT_TRUE(WaitVolume("data"));
  ASSERT_TRUE(WaitSnapshot("nightly"));
  const VolumeSnapshot snapshot = GetSnapshot("nightly");
  EXPECT_EQ(PlaceOf(snapshot), PlaceOf(world_.GetVolume("data")));
  EXPECT_EQ(snapshot.spec.volume_pool_ref->name, PlaceOf(snapshot));
  EXPECT_EQ(snapshot.status.placement->resources.at("storage").Value(), 2LL << 30);
  EXPECT_EQ(snapshot.metadata.finalizers.size(), 1U);
  const auto& offers = world_.fleet().offers(snapshot.status.placement->pool_uid);
  ASSERT_FALSE(offers.empty());
  EXPECT_EQ(offers.back().item.kind, fleet::ObjectKind::kVolumeSnapshot);
}

TEST_F(SnapshotPlacingTest, ItGoesWhereItsVolumeIsWhateverKeepsOthersAway) {
  world_.MakeVolume("data");
  ASSERT_TRUE(WaitVolume("data"));
  for (const char* name : {"alpha", "beta", "gamma"}) {
    const auto patched = world_.api().Run(world_.api().client().Patch(
        apis::storage::kVolumePoolKind,
        {"", name},
        client::PatchType::kMerge,
        R"({"spec":{"taints":[{"key":"restricted.berth.dev/disks","effect":"NoSchedule"}]}})",
        {}));
    ASSERT_TRUE(patched.ok()) << patched.status();
  }
  world_.RunFor(Duration::Seconds(1));
  MakeSnapshot("nightly", "data");
  ASSERT_TRUE(WaitSnapshot("nightly"));
  EXPECT_EQ(PlaceOf(GetSnapshot("nightly")), PlaceOf(world_.GetVolume("data")));
}

TEST_F(SnapshotPlacingTest, AVolumeGoesWhereItsSnapshotIsOnceThatIsReady) {
  MakeRestored("restored", "nightly");
  EXPECT_TRUE(VolumeSays("restored", "there is no VolumeSnapshot nightly"));
  world_.MakeVolume("data");
  MakeSnapshot("nightly", "data");
  EXPECT_TRUE(VolumeSays("restored", "VolumeSnapshot nightly is not ready yet"));
  ASSERT_TRUE(WaitSnapshot("nightly"));
  SetState("nightly", "Ready");
  ASSERT_TRUE(WaitVolume("restored"));
  EXPECT_EQ(PlaceOf(world_.GetVolume("restored")), PlaceOf(GetSnapshot("nightly")));
}

TEST_F(SnapshotPlacingTest, AVolumeThatCannotHoldItOrMustBeElsewhereSaysSo) {
  world_.MakeVolume("data");
  MakeSnapshot("nightly", "data");
  ASSERT_TRUE(WaitSnapshot("nightly"));
  SetState("nightly", "Ready", 3LL << 30);
  MakeRestored("small", "nightly");
  EXPECT_TRUE(VolumeSays(
      "small",
      "spec.resources[storage] is 1073741824 bytes, VolumeSnapshot nightly needs 3221225472"));
  const std::string here = PlaceOf(GetSnapshot("nightly"));
  const std::string elsewhere = here == "alpha" ? "beta" : "alpha";
  MakeRestored("away", "nightly", [&](Volume& volume) {
    volume.spec.resources = {{"storage", meta::Quantity(3LL << 30)}};
    volume.spec.volume_pool_ref = apis::core::LocalObjectReference{elsewhere};
  });
  EXPECT_TRUE(VolumeSays(
      "away",
      "spec.volumePoolRef is " + elsewhere + ", but VolumeSnapshot nightly is on pool " + here));
  SetState("nightly", "Failed");
  MakeRestored("late", "nightly");
  EXPECT_TRUE(VolumeSays("late", "VolumeSnapshot nightly could not be taken"));
}

TEST_F(SnapshotPlacingTest, AMachineWaitsUntilItsVolumeIsWhereItsSnapshotIs) {
  world_.Join(world_.MakePool("alpha"));
  world_.Join(world_.MakePool("beta"));
  world_.Join(world_.MakePool("gamma"));
  world_.MakeVolume("data");
  MakeSnapshot("nightly", "data");
  ASSERT_TRUE(WaitSnapshot("nightly"));
  MakeRestored("restored", "nightly");
  apis::compute::Machine machine = world_.Machine("db");
  apis::compute::MachineVolume disk;
  disk.name = "root";
  disk.volume_ref = apis::core::LocalObjectReference{.name = "restored"};
  machine.spec.volumes.push_back(disk);
  world_.MakeMachine(std::move(machine));
  ASSERT_TRUE(world_.Until([&] {
    return world_.WhyNot("db") ==
           "Volume restored is placed first, where VolumeSnapshot nightly is";
  })) << world_.WhyNot("db");
  SetState("nightly", "Ready");
  ASSERT_TRUE(world_.IsPlaced("db"));
  EXPECT_EQ(world_.PoolOf("db"), PlaceOf(GetSnapshot("nightly"))) << "volumes are their host's";
}

TEST_F(SnapshotPlacingTest, ACopyGoesWhereItsSourceIsOnceThatIsAvailable) {
  MakeCopy("copy", "data");
  EXPECT_TRUE(VolumeSays("copy", "there is no Volume data"));
  world_.MakeVolume("data");
  ASSERT_TRUE(WaitVolume("data"));
  EXPECT_TRUE(VolumeSays("copy", "Volume data is not available yet"));
  SetVolumeState("data", "Available");
  ASSERT_TRUE(WaitVolume("copy"));
  EXPECT_EQ(PlaceOf(world_.GetVolume("copy")), PlaceOf(world_.GetVolume("data")));
  // And the copy of the copy.
  MakeCopy("second", "copy");
  EXPECT_TRUE(VolumeSays("second", "Volume copy is not available yet"));
  SetVolumeState("copy", "Available");
  ASSERT_TRUE(WaitVolume("second"));
  EXPECT_EQ(PlaceOf(world_.GetVolume("second")), PlaceOf(world_.GetVolume("data")));
}

TEST_F(SnapshotPlacingTest, ACopyThatCannotBeMadeSaysWhy) {
  world_.MakeVolume("data", 2);
  ASSERT_TRUE(WaitVolume("data"));
  SetVolumeState("data", "Available");
  MakeCopy("small", "data");
  EXPECT_TRUE(VolumeSays(
      "small", "spec.resources[storage] is 1073741824 bytes, Volume data needs 2147483648"));
  const std::string here = PlaceOf(world_.GetVolume("data"));
  const std::string elsewhere = here == "alpha" ? "beta" : "alpha";
  MakeCopy("away", "data", [&](Volume& volume) {
    volume.spec.resources = {{"storage", meta::Quantity(2LL << 30)}};
    volume.spec.volume_pool_ref = apis::core::LocalObjectReference{elsewhere};
  });
  EXPECT_TRUE(VolumeSays(
      "away", "spec.volumePoolRef is " + elsewhere + ", but Volume data is on pool " + here));
  MakeRestored("sealed", "", [](Volume& volume) {
    volume.spec.data_source.reset();
    volume.spec.encryption.emplace().secret_ref.name = "key";
  });
  ASSERT_TRUE(WaitVolume("sealed"));
  SetVolumeState("sealed", "Available");
  MakeCopy("open", "sealed");
  EXPECT_TRUE(VolumeSays("open",
                         "Volume sealed is encrypted, and so is its copy: spec.encryption must "
                         "name a Secret with the same key"));
  MakeCopy("kept", "sealed", [](Volume& volume) {
    volume.spec.encryption.emplace().secret_ref.name = "same-key";
  });
  EXPECT_TRUE(WaitVolume("kept"));
  // Two that wait for each other wait, and say so.
  MakeCopy("chicken", "egg");
  MakeCopy("egg", "chicken");
  EXPECT_TRUE(VolumeSays("egg", "Volume chicken has no pool yet"));
  EXPECT_TRUE(VolumeSays("chicken", "Volume egg has no pool yet"));
}

TEST_F(SnapshotPlacingTest, AMachineWaitsUntilItsVolumeIsWhereItsSourceIs) {
  for (const char* name : {"alpha", "beta", "gamma"}) world_.Join(world_.MakePool(name));
  world_.MakeVolume("data");
  ASSERT_TRUE(WaitVolume("data"));
  MakeCopy("copy", "data");
  apis::compute::Machine machine = world_.Machine("db");
  apis::compute::MachineVolume disk;
  disk.name = "root";
  disk.volume_ref = apis::core::LocalObjectReference{.name = "copy"};
  machine.spec.volumes.push_back(disk);
  world_.MakeMachine(std::move(machine));
  ASSERT_TRUE(world_.Until([&] {
    return world_.WhyNot("db") == "Volume copy is placed first, where Volume data is";
  })) << world_.WhyNot("db");
  SetVolumeState("data", "Available");
  ASSERT_TRUE(world_.IsPlaced("db"));
  EXPECT_EQ(world_.PoolOf("db"), PlaceOf(world_.GetVolume("data")));
}

// What it held is lost; taken again it would hold something else.
TEST_F(SnapshotPlacingTest, OneThatFailedIsNotPlacedAgain) {
  world_.MakeVolume("data");
  MakeSnapshot("nightly", "data");
  ASSERT_TRUE(WaitSnapshot("nightly"));
  SetState("nightly", "Ready");
  const VolumeSnapshot snapshot = GetSnapshot("nightly");
  client::UnbindRequest unbind;
  unbind.kind = &kVolumeSnapshotKind;
  unbind.key = {kNamespace, "nightly"};
  unbind.uid = snapshot.metadata.uid;
  unbind.placement = snapshot.status.placement->epoch;
  unbind.reason = "HostReleased";
  const auto verdicts = world_.api().Run(world_.api().registry().binder().UnbindBatch({unbind}));
  ASSERT_TRUE(verdicts[0].ok()) << verdicts[0];
  world_.RunFor(Duration::Minutes(5));
  EXPECT_EQ(GetSnapshot("nightly").status.state, "Failed");
  EXPECT_EQ(PlaceOf(GetSnapshot("nightly")), "");
}

}  // namespace
}  // namespace berth::scheduler
