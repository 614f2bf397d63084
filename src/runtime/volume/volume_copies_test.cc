// SPDX-License-Identifier: Apache-2.0
// Snapshots and copies of disks that guests use.
#include <gtest/gtest.h>

#include <deque>
#include <fstream>

#include "iri/annotations.h"
#include "runtime/volume/volume_world.h"

namespace berth::runtime {
namespace {

class FakeLiveDisks final : public LiveDisks {
 public:
  rt::Task<Status> Copy(DiskFile source, DiskFile target) override {
    ++copies;
    if (!answers.empty()) {
      const Status answer = answers.front();
      answers.pop_front();
      std::ofstream(target.path) << "half of it";
      co_return answer;
    }
    std::filesystem::copy_file(
        source.path, target.path, std::filesystem::copy_options::overwrite_existing);
    co_return OkStatus();
  }
  std::deque<Status> answers;
  int copies = 0;
};

class LiveSnapshotTest : public testing::Test {
 protected:
  LiveSnapshotTest() {
    world_.live = &live_;
    world_.Restart();
  }
  iri::Volume InUse(iri::Volume wanted) {
    iri::Volume made = world_.Available(std::move(wanted));
    std::ofstream(VolumeWorld::PathOf(made), std::ios::in) << "written";
    world_.fake.in_use.insert(VolumeWorld::PathOf(made));
    return made;
  }
  std::string Snapshot(const iri::Volume& source) {
    const auto made = world_.Snapshot(source.metadata.id, "s-1");
    CHECK(made.ok()) << made.status();
    return made->metadata.id;
  }

  FakeLiveDisks live_;
  VolumeWorld world_{WorldDisks::kFake};
};

TEST_F(LiveSnapshotTest, OneOfADiskInUseIsTakenByItsGuest) {
  const iri::Volume source = InUse(world_.Wanted("u-1"));
  const std::string id = Snapshot(source);
  ASSERT_TRUE(world_.SnapshotBecomes(id, iri::SnapshotState::kReady)) << world_.Events();
  EXPECT_EQ(live_.copies, 1);
  EXPECT_EQ(world_.GetSnapshot(id)->size_bytes, kMiB);
  iri::Volume restored = world_.Wanted("u-2");
  restored.spec.snapshot_id = id;
  const std::string content = ReadWhole(VolumeWorld::PathOf(world_.Available(restored)));
  EXPECT_TRUE(content.starts_with("written"));
}

TEST_F(LiveSnapshotTest, ACopyOfAVolumeInUseIsMadeByItsGuest) {
  iri::Volume copy = world_.Wanted("u-2");
  copy.spec.snapshot_id = InUse(world_.Wanted("u-1")).metadata.id;
  const std::string content = ReadWhole(VolumeWorld::PathOf(world_.Available(copy)));
  EXPECT_TRUE(content.starts_with("written"));
  EXPECT_EQ(live_.copies, 1);
}

TEST_F(LiveSnapshotTest, AnEncryptedCopyOfAVolumeInUseIsMadeWhenItsGuestHasEnded) {
  iri::Volume copy = world_.Wanted("u-2");
  copy.spec.snapshot_id = InUse(world_.Wanted("u-1")).metadata.id;
  copy.spec.encryption = {{"encryptionKey", "key"}};
  const auto made = world_.Create(copy);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kError));
  EXPECT_NE(world_.Events().find("only while its machine is off"), std::string::npos)
      << world_.Events();
  EXPECT_EQ(live_.copies, 0);
  const auto end_guest = [](VolumeWorld* world) -> rt::Task<Status> {
    world->fake.in_use.clear();
    co_return OkStatus();
  };
  EXPECT_EQ(world_.Await(end_guest(&world_)), OkStatus());
  EXPECT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kAvailable));
}

TEST_F(LiveSnapshotTest, WhatMayPassIsWaitedFor) {
  live_.answers = {Unavailable("libvirtd is away"), NotFound("no guest"), Timeout("hangs")};
  const std::string id = Snapshot(InUse(world_.Wanted("u-1")));
  ASSERT_TRUE(world_.SnapshotBecomes(id, iri::SnapshotState::kReady)) << world_.Events();
  EXPECT_EQ(live_.copies, 4);
}

TEST_F(LiveSnapshotTest, WhatIsWaitedForIsSaid) {
  world_.options.retry = {.initial = Duration::Millis(200), .max = Duration::Millis(200)};
  world_.Restart();
  live_.answers.assign(4, Unavailable("libvirt says nothing"));
  const std::string words = "libvirt says nothing; it is tried again";
  const iri::Volume source = InUse(world_.Wanted("u-1"));
  const std::string id = Snapshot(source);
  const auto problem = [](const iri::ObjectMetadata& metadata) {
    return std::string(iri::AnnotationOf(metadata, iri::kProblemAnnotation));
  };
  ASSERT_TRUE(
      iri::Eventually(world_, [&] { return problem(world_.GetSnapshot(id)->metadata) == words; }));
  EXPECT_EQ(world_.GetSnapshot(id)->state, iri::SnapshotState::kPending);
  EXPECT_EQ(problem(world_.Snapshot(source.metadata.id, "s-1")->metadata), words) << "asked again";
  ASSERT_TRUE(world_.SnapshotBecomes(id, iri::SnapshotState::kReady)) << world_.Events();
  EXPECT_EQ(problem(world_.GetSnapshot(id)->metadata), "");
  const std::string events = world_.Events();
  EXPECT_NE(events.find("Waiting: " + words), std::string::npos) << events;
  EXPECT_EQ(events.find("Waiting"), events.rfind("Waiting")) << "once\n" << events;
}

TEST_F(LiveSnapshotTest, WhatACopyOfAVolumeWaitsForIsSaid) {
  world_.options.retry = {.initial = Duration::Millis(200), .max = Duration::Millis(200)};
  world_.Restart();
  live_.answers.assign(4, Unavailable("libvirt says nothing"));
  iri::Volume copy = world_.Wanted("u-2");
  copy.spec.snapshot_id = InUse(world_.Wanted("u-1")).metadata.id;
  const std::string id = world_.Create(copy)->metadata.id;
  const auto problem = [&] {
    const iri::Volume volume = *iri::GetVolume(world_, id);
    return std::string(iri::AnnotationOf(volume.metadata, iri::kProblemAnnotation));
  };
  ASSERT_TRUE(iri::Eventually(
      world_, [&] { return problem() == "libvirt says nothing; it is tried again"; }));
  EXPECT_EQ(iri::GetVolume(world_, id)->status.state, iri::VolumeState::kPending);
  ASSERT_TRUE(world_.BecomesState(id, iri::VolumeState::kAvailable)) << world_.Events();
  EXPECT_EQ(problem(), "");
}

TEST_F(LiveSnapshotTest, WhatDoesNotPassFailsWithItsWordsAndLeavesNothing) {
  const iri::Volume source = InUse(world_.Wanted("u-1"));
  const size_t files = world_.Files().size();
  live_.answers = {Internal("the guest cannot read its disk")};
  const std::string id = Snapshot(source);
  ASSERT_TRUE(world_.SnapshotBecomes(id, iri::SnapshotState::kFailed));
  EXPECT_NE(world_.Events().find("the guest cannot read its disk"), std::string::npos);
  EXPECT_EQ(live_.copies, 1);
  EXPECT_EQ(world_.Files().size(), files + 1) << "its record alone";
  EXPECT_EQ(world_.Used(), kMiB);
}

TEST_F(LiveSnapshotTest, OnlySoOften) {
  world_.options.live_attempts = 3;
  world_.Restart();
  live_.answers = {Unavailable("away"), Unavailable("away"), Unavailable("libvirtd is away")};
  const std::string id = Snapshot(InUse(world_.Wanted("u-1")));
  ASSERT_TRUE(world_.SnapshotBecomes(id, iri::SnapshotState::kFailed));
  EXPECT_NE(world_.Events().find("libvirtd is away"), std::string::npos) << world_.Events();
}

class EncryptedSnapshotTest : public LiveSnapshotTest {
 protected:
  EncryptedSnapshotTest() { world_.options.in_use_look = Duration::Millis(5); }
  iri::Volume EncryptedInUse() {
    iri::Volume secret = world_.Wanted("u-1");
    secret.spec.encryption = {{"encryptionKey", "right"}};
    return InUse(secret);
  }
  bool Waits(const std::string& id) {
    return iri::Eventually(world_, [&] {
      const auto snapshot = world_.GetSnapshot(id);
      return iri::AnnotationOf(snapshot->metadata, iri::kProblemAnnotation)
          .ends_with("so stop the machine; it is tried again");
    });
  }
  void EndGuest() {
    const auto end = [](VolumeWorld* world) -> rt::Task<Status> {
      world->fake.in_use.clear();
      co_return OkStatus();
    };
    EXPECT_EQ(world_.Await(end(&world_)), OkStatus());
  }
};

TEST_F(EncryptedSnapshotTest, OneOfADiskInUseIsNotTakenInTheClearAndWaitsForTheEndOfItsGuest) {
  for (LiveDisks* const live :
       {static_cast<LiveDisks*>(&live_), static_cast<LiveDisks*>(nullptr)}) {
    world_.live = live;
    world_.Restart();
    const iri::Volume source = EncryptedInUse();
    const size_t files = world_.Files().size();
    const std::string id = Snapshot(source);
    ASSERT_TRUE(Waits(id)) << world_.Events();
    EXPECT_EQ(world_.GetSnapshot(id)->state, iri::SnapshotState::kPending);
    const std::string events = world_.Events();
    EXPECT_EQ(events.find("Waiting"), events.rfind("Waiting")) << "once\n" << events;
    // Also in its next life.
    world_.Restart();
    ASSERT_TRUE(Waits(id)) << world_.Events();
    EXPECT_EQ(world_.Files().size(), files + 1) << "its record alone";
    // Its guest grows the disk before it ends.
    ASSERT_TRUE(world_.Await(world_.host().ExpandVolume(source.metadata.id, 2 * kMiB)).ok());
    std::filesystem::resize_file(VolumeWorld::PathOf(source), 2 * kMiB);
    EndGuest();
    ASSERT_TRUE(world_.SnapshotBecomes(id, iri::SnapshotState::kReady)) << world_.Events();
    EXPECT_EQ(world_.GetSnapshot(id)->size_bytes, 2 * kMiB);
    EXPECT_EQ(iri::AnnotationOf(world_.GetSnapshot(id)->metadata, iri::kProblemAnnotation), "");
    EXPECT_EQ(live_.copies, 0);
    ASSERT_TRUE(world_.Await(world_.host().DeleteVolumeSnapshot(id)).ok());
    ASSERT_TRUE(iri::Eventually(world_, [&] { return !world_.GetSnapshot(id).has_value(); }));
    ASSERT_TRUE(world_.Await(world_.host().DeleteVolume(source.metadata.id)).ok());
    ASSERT_TRUE(world_.IsGone(source.metadata.id));
  }
}

TEST_F(EncryptedSnapshotTest, OneThatWaitsCanBeDeleted) {
  world_.Restart();
  const std::string id = Snapshot(EncryptedInUse());
  ASSERT_TRUE(Waits(id)) << world_.Events();
  ASSERT_TRUE(world_.Await(world_.host().DeleteVolumeSnapshot(id)).ok());
  EXPECT_TRUE(iri::Eventually(world_, [&] { return !world_.GetSnapshot(id).has_value(); }));
}

}  // namespace
}  // namespace berth::runtime
