// SPDX-License-Identifier: Apache-2.0
// The volume runtime keeps the contract of runtimes, its budget, and what it acknowledged, whenever
// it is killed. Disks are plain files here; what qemu-img does is in qemu_disks_test.cc.
#include "runtime/volume/volume_host.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "iri/annotations.h"
#include "iri/conformance/runtime_contract.h"
#include "runtime/volume/fake_images.h"
#include "runtime/volume/volume_world.h"

namespace berth::runtime {
namespace {

// Those that ask for volumes only.
std::vector<iri::RuntimeContract> VolumeContracts() {
  std::vector<iri::RuntimeContract> contracts;
  for (const iri::RuntimeContract& contract : iri::StorageContracts()) {
    const std::string_view name = contract.name;
    if (name.find("Bucket") == std::string_view::npos) contracts.push_back(contract);
  }
  for (const iri::RuntimeContract& contract : iri::HostContracts()) {
    const std::string_view name = contract.name;
    const bool of_volumes =
        name == "WatchGoesOnFromItsCursor" || name == "WatchAnswersALostCursorWithAResync";
    if (of_volumes) contracts.push_back(contract);
  }
  return contracts;
}

class VolumeContract : public testing::TestWithParam<iri::RuntimeContract> {};
TEST_P(VolumeContract, Holds) {
  VolumeWorld world(WorldDisks::kFake);
  GetParam().run(world);
}
INSTANTIATE_TEST_SUITE_P(Volume,
                         VolumeContract,
                         testing::ValuesIn(VolumeContracts()),
                         [](const auto& info) { return std::string(info.param.name); });

class VolumeHostTest : public testing::Test {
 protected:
  VolumeWorld world_{WorldDisks::kFake};
};

TEST_F(VolumeHostTest, AccessTellsPathFormatAndTheLimitsOfTheClass) {
  const iri::Volume volume = world_.Available(world_.Wanted("u-1"));
  const iri::VolumeAccess& access = volume.status.access;
  EXPECT_EQ(access.driver, iri::kFileDriver);
  EXPECT_EQ(access.handle, volume.metadata.id);
  EXPECT_EQ(access.attributes.at("format"), "qcow2");
  EXPECT_EQ(access.attributes.at("tps"), "104857600");
  EXPECT_EQ(access.attributes.at("iops"), "5000");
  EXPECT_TRUE(std::filesystem::exists(VolumeWorld::PathOf(volume)));
  iri::Volume plain = world_.Wanted("u-2");
  plain.spec.class_name = "plain";
  EXPECT_EQ(world_.Available(plain).status.access.attributes.at("format"), "raw");
}

TEST(VolumeHost, AnImageOnItsWayIsShownUntilItIsThere) {
  FakeImages images;
  VolumeWorld world(WorldDisks::kFake);
  world.other_images = &images;
  world.options.pull_interval = Duration();
  world.Restart();
  iri::Volume wanted = world.Wanted("u-1");
  wanted.spec.image = "registry.test/os:1";
  const auto made = world.Create(wanted);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto note = [&](std::string_view annotation) {
    const auto volume = iri::GetVolume(world, made->metadata.id);
    return std::string(volume.has_value() ? iri::AnnotationOf(volume->metadata, annotation) : "");
  };
  ASSERT_TRUE(
      iri::Eventually(world, [&] { return note(iri::kProblemAnnotation) == "25 % of 4.0 MiB"; }));
  EXPECT_EQ(note(iri::kImageProblemAnnotation), "Pulling");
  EXPECT_TRUE(world.BecomesState(made->metadata.id, iri::VolumeState::kPending));
  ASSERT_EQ(world.Run(images.Arrive()), OkStatus());
  // It has no disk.
  EXPECT_TRUE(world.BecomesState(made->metadata.id, iri::VolumeState::kError));
  EXPECT_NE(note(iri::kImageProblemAnnotation), "Pulling");
}

TEST_F(VolumeHostTest, Iron12_15_ASecondCreateOfAUidGivesTheFirst) {
  const iri::Volume first = world_.Available(world_.Wanted("u-1"));
  EXPECT_EQ(world_.Create(world_.Wanted("u-1"))->metadata.id, first.metadata.id);
  world_.Restart();
  EXPECT_EQ(world_.Create(world_.Wanted("u-1"))->metadata.id, first.metadata.id);
  EXPECT_EQ(world_.Await(world_.host().ListVolumes(iri::ObjectFilter()))->size(), 1U);
}

TEST_F(VolumeHostTest, RefusesWhatItDoesNotOffer) {
  iri::Volume volume = world_.Wanted("u-1");
  volume.spec.class_name = "no-such-class";
  EXPECT_EQ(world_.Create(volume).status().reason(), Reason::kBadRequest);
  EXPECT_EQ(world_.Create(world_.Wanted("u-1", 0)).status().reason(), Reason::kBadRequest);
  iri::Volume image = world_.Wanted("u-1");
  image.spec.image = "../../etc/passwd";
  EXPECT_EQ(world_.Create(image).status().reason(), Reason::kBadRequest);
  EXPECT_TRUE(world_.Files().empty());
}

TEST_F(VolumeHostTest, P6_6_OneBudgetForAllClassesVolumesSnapshotsAndImages) {
  world_.temporary().Write("images/a.raw", std::string(1 << 20, 'i'));
  const int64_t images = world_.Used();
  EXPECT_GE(images, kMiB) << "images count";
  EXPECT_EQ(world_.Await(world_.host().Capacity())->kept.at("storage"), images);
  world_.Available(world_.Wanted("u-1", 30 * kMiB));
  iri::Volume plain = world_.Wanted("u-2", 30 * kMiB);
  plain.spec.class_name = "plain";
  world_.Available(plain);
  EXPECT_EQ(world_.Used(), 60 * kMiB + images);
  const auto full = world_.Create(world_.Wanted("u-3", 5 * kMiB));
  EXPECT_EQ(full.status().reason(), Reason::kTooManyRequests) << full.status();
  const auto small = world_.Create(world_.Wanted("u-4", kMiB));
  ASSERT_TRUE(small.ok()) << small.status();
  ASSERT_TRUE(world_.BecomesState(small->metadata.id, iri::VolumeState::kAvailable));
  EXPECT_EQ(world_.Await(world_.host().ExpandVolume(small->metadata.id, 4 * kMiB)).reason(),
            Reason::kTooManyRequests);
  EXPECT_EQ(world_.Await(world_.host().DeleteVolume(small->metadata.id)), OkStatus());
  EXPECT_TRUE(world_.IsGone(small->metadata.id));
  EXPECT_EQ(world_.Used(), 60 * kMiB + images);
}

TEST_F(VolumeHostTest, ManyAtOnceDoNotGetMoreThanThereIs) {
  constexpr int kAsked = 20;
  int granted = 0;
  std::vector<rt::Task<Result<iri::Volume>>> creates;
  for (int i = 0; i < kAsked; ++i) {
    creates.push_back(
        world_.host().CreateVolume(world_.Wanted("u-" + std::to_string(i), 10 * kMiB)));
  }
  const auto all = world_.AwaitAll(std::move(creates));
  for (const auto& made : all) granted += made.ok() ? 1 : 0;
  EXPECT_EQ(granted, 6);
  EXPECT_LE(world_.Used(), 64 * kMiB);
}

TEST_F(VolumeHostTest, LabelsAndAnnotationsAreKeptOverARestart) {
  iri::Volume wanted = world_.Wanted("u-1");
  wanted.metadata.annotations = {{"note", "a\nb"}};
  const iri::Volume before = world_.Available(wanted);
  world_.Restart();
  EXPECT_EQ(*iri::GetVolume(world_, before.metadata.id), before);
}

TEST_F(VolumeHostTest, GrowsAndSaysSo) {
  const iri::Volume volume = world_.Available(world_.Wanted("u-1"));
  ASSERT_EQ(world_.Await(world_.host().ExpandVolume(volume.metadata.id, 3 * kMiB)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world_, [&] {
    return iri::GetVolume(world_, volume.metadata.id)->status.storage_bytes == 3 * kMiB;
  }));
  EXPECT_EQ(std::filesystem::file_size(VolumeWorld::PathOf(volume)), 3U << 20);
}

TEST_F(VolumeHostTest, ADiskInUseIsGrownByItsGuestOrLater) {
  const iri::Volume volume = world_.Available(world_.Wanted("u-1"));
  const std::string path = VolumeWorld::PathOf(volume);
  world_.fake.in_use.insert(path);
  ASSERT_EQ(world_.Await(world_.host().ExpandVolume(volume.metadata.id, 2 * kMiB)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world_, [&] {
    return iri::GetVolume(world_, volume.metadata.id)->status.storage_bytes == 2 * kMiB;
  })) << "the machine runtime learns the new size and grows it";
  EXPECT_EQ(std::filesystem::file_size(path), 1U << 20);
  const auto free_it = [](VolumeWorld* world, std::string name) -> rt::Task<Status> {
    world->fake.in_use.erase(name);
    co_return OkStatus();
  };
  ASSERT_EQ(world_.Await(free_it(&world_, path)), OkStatus());
  EXPECT_TRUE(iri::Eventually(
      world_, [&] { return std::filesystem::file_size(path) == uintmax_t{2} << 20; }));
}

TEST_F(VolumeHostTest, AFailureIsShownWithItsReasonAndTriedAgain) {
  iri::Volume wanted = world_.Wanted("u-1");
  wanted.spec.image = "late.raw";
  const auto made = world_.Create(wanted);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kError));
  const iri::StringMap annotations =
      iri::GetVolume(world_, made->metadata.id)->metadata.annotations;
  EXPECT_EQ(annotations.at("berth.dev/image-problem"), "ImageNotFound");
  EXPECT_NE(annotations.at("berth.dev/problem").find("late.raw"), std::string::npos);
  EXPECT_NE(world_.Events().find("NotFound: image \"late.raw\""), std::string::npos)
      << world_.Events();
  world_.temporary().Write("images/late.raw", "content of the image");
  ASSERT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kAvailable));
  const std::string disk =
      ReadWhole(VolumeWorld::PathOf(*iri::GetVolume(world_, made->metadata.id)));
  EXPECT_TRUE(disk.starts_with("content of the image"));
  EXPECT_EQ(disk.size(), 1U << 20);
}

TEST_F(VolumeHostTest, AnImageLargerThanTheVolumeIsRefused) {
  world_.temporary().Write("images/large.raw", std::string(2 << 20, 'x'));
  iri::Volume wanted = world_.Wanted("u-1");
  wanted.spec.image = "large.raw";
  const auto made = world_.Create(wanted);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kError));
  EXPECT_NE(world_.Events().find("does not fit into a volume of 1048576"), std::string::npos);
  EXPECT_EQ(world_.fake.copies, 0);
  EXPECT_EQ(world_.Await(world_.host().DeleteVolume(made->metadata.id)), OkStatus());
  EXPECT_TRUE(world_.IsGone(made->metadata.id));
  EXPECT_TRUE(world_.Files().empty());
}

TEST_F(VolumeHostTest, SnapshotsRestoreAndClonesHaveTheContent) {
  const iri::Volume source = world_.Available(world_.Wanted("u-1"));
  std::ofstream(VolumeWorld::PathOf(source), std::ios::in) << "before";
  const auto snapshot = world_.Snapshot(source.metadata.id, "s-1");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_TRUE(world_.SnapshotBecomes(snapshot->metadata.id, iri::SnapshotState::kReady));
  EXPECT_EQ(world_.Snapshot(source.metadata.id, "s-1")->metadata.id, snapshot->metadata.id);
  std::ofstream(VolumeWorld::PathOf(source), std::ios::in) << "after!";

  iri::Volume restored = world_.Wanted("u-2", 2 * kMiB);
  restored.spec.snapshot_id = snapshot->metadata.id;
  const std::string old = ReadWhole(VolumeWorld::PathOf(world_.Available(restored)));
  EXPECT_TRUE(old.starts_with("before"));
  EXPECT_EQ(old.size(), 2U << 20);
  iri::Volume clone = world_.Wanted("u-3");
  clone.spec.snapshot_id = source.metadata.id;
  EXPECT_TRUE(ReadWhole(VolumeWorld::PathOf(world_.Available(clone))).starts_with("after!"));

  EXPECT_EQ(world_.Await(world_.host().DeleteVolume(source.metadata.id)), OkStatus());
  EXPECT_TRUE(world_.IsGone(source.metadata.id)) << "a snapshot does not need its volume";
  iri::Volume again = world_.Wanted("u-4");
  again.spec.snapshot_id = snapshot->metadata.id;
  EXPECT_TRUE(ReadWhole(VolumeWorld::PathOf(world_.Available(again))).starts_with("before"));
  iri::Volume small = world_.Wanted("u-5", 512);
  small.spec.snapshot_id = snapshot->metadata.id;
  EXPECT_EQ(world_.Create(small).status().reason(), Reason::kBadRequest);
}

TEST_F(VolumeHostTest, ASnapshotOfADiskInUseFailsClearlyAndTakesNothing) {
  const iri::Volume source = world_.Available(world_.Wanted("u-1"));
  world_.fake.in_use.insert(VolumeWorld::PathOf(source));
  const auto snapshot = world_.Snapshot(source.metadata.id, "s-1");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_TRUE(world_.SnapshotBecomes(snapshot->metadata.id, iri::SnapshotState::kFailed));
  EXPECT_NE(world_.Events().find("InUse"), std::string::npos) << world_.Events();
  EXPECT_EQ(world_.Used(), kMiB);
}

TEST_F(VolumeHostTest, ACopyOfAnEncryptedDiskNeedsNoKeyAndAWrongOneIsRefused) {
  iri::Volume secret = world_.Wanted("u-1");
  secret.spec.encryption = {{"encryptionKey", "right"}};
  const iri::Volume source = world_.Available(secret);
  EXPECT_EQ(source.status.access.attributes.at("format"), "luks");
  EXPECT_TRUE(source.spec.encryption.empty()) << "a key is shown to nobody";

  iri::Volume copy = world_.Wanted("u-2");
  copy.spec.snapshot_id = source.metadata.id;
  EXPECT_EQ(world_.Available(copy).status.access.attributes.at("format"), "luks");
  iri::Volume wrong = copy;
  wrong.metadata.labels = {{std::string(iri::kVolumeUidLabel), "u-3"}};
  wrong.spec.encryption = {{"encryptionKey", "wrong"}};
  const auto made = world_.Create(wrong);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kError));
  EXPECT_NE(world_.Events().find("WrongKey"), std::string::npos) << world_.Events();
}

TEST_F(VolumeHostTest, P9_AKeyIsNeverWrittenDownAndItsVolumeIsAskedForAnew) {
  world_.fake.failure = Unavailable("not yet");
  const iri::Volume plain = world_.Available(world_.Wanted("u-0"));
  iri::Volume secret = world_.Wanted("u-1");
  secret.spec.snapshot_id = plain.metadata.id;
  secret.spec.encryption = {{"encryptionKey", "s3cret-key"}};
  const auto made = world_.Create(secret);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kError));
  for (const std::string& file : world_.Files()) {
    EXPECT_EQ(ReadWhole(file).find("s3cret-key"), std::string::npos) << file;
  }
  world_.Kill();
  world_.fake.failure = OkStatus();
  world_.Start(nullptr);
  EXPECT_TRUE(world_.IsGone(made->metadata.id));
  const iri::Volume again = world_.Available(secret);
  EXPECT_EQ(again.status.access.attributes.at("format"), "luks");
  EXPECT_EQ(world_.Events().find("s3cret-key"), std::string::npos);
}

TEST_F(VolumeHostTest, ASourceThatIsBeingReadGoesLater) {
  const iri::Volume source = world_.Available(world_.Wanted("u-1"));
  world_.fake.failure = Unavailable("not yet");
  iri::Volume clone = world_.Wanted("u-2");
  clone.spec.snapshot_id = source.metadata.id;
  const auto made = world_.Create(clone);
  ASSERT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kError));
  EXPECT_EQ(world_.Await(world_.host().DeleteVolume(source.metadata.id)), OkStatus());
  EXPECT_EQ(world_.Await(world_.host().DeleteVolume(source.metadata.id)), OkStatus());
  EXPECT_FALSE(iri::GetVolume(world_, source.metadata.id)->metadata.deleted_at.is_zero());
  const auto go_on = [](VolumeWorld* world) -> rt::Task<Status> {
    world->fake.failure = OkStatus();
    co_return OkStatus();
  };
  ASSERT_EQ(world_.Await(go_on(&world_)), OkStatus());
  EXPECT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kAvailable));
  EXPECT_TRUE(world_.IsGone(source.metadata.id));
}

TEST_F(VolumeHostTest, OneRuntimePerFolder) {
  rt::ThreadPool pool(rt::ThreadPool::Options{});
  const auto second = FolderShelf::Open(world_.folder(), pool);
  EXPECT_EQ(second.status().reason(), Reason::kConflict) << second.status();
}

TEST_F(VolumeHostTest, ABrokenRecordIsLeftAloneAndCounted) {
  const iri::Volume volume = world_.Available(world_.Wanted("u-1"));
  world_.Kill();
  const auto folder = std::filesystem::path(VolumeWorld::PathOf(volume)).parent_path();
  std::filesystem::resize_file(folder / "record.json", 20);
  world_.Start(nullptr);
  EXPECT_TRUE(world_.Await(world_.host().ListVolumes(iri::ObjectFilter()))->empty());
  EXPECT_TRUE(std::filesystem::exists(VolumeWorld::PathOf(volume)));
  EXPECT_GT(world_.Used(), 0);
}

// What a poollet does: asks again after a lost answer, waits, removes. False once the power is off.
class Client {
 public:
  Client(VolumeWorld& world, const PowerCut& power) : world_(world), power_(power) {}

  bool Lives() {
    iri::Volume first = world_.Wanted("u-1");
    first.spec.image = "tiny.raw";
    const auto made = world_.Create(first);
    if (made.ok()) acknowledged.push_back("u-1");
    if (!made.ok() || !Wait(made->metadata.id)) return false;
    if (!world_.Await(world_.host().ExpandVolume(made->metadata.id, 2 * kMiB)).ok()) return false;
    grown = true;
    const auto snapshot = world_.Snapshot(made->metadata.id, "s-1");
    if (!snapshot.ok()) return false;
    const auto is_ready = [&] {
      const auto now = world_.GetSnapshot(snapshot->metadata.id);
      return now->state == iri::SnapshotState::kReady;
    };
    if (!Until(is_ready)) return false;
    iri::Volume second = world_.Wanted("u-2", 2 * kMiB);
    second.spec.snapshot_id = snapshot->metadata.id;
    const auto restored = world_.Create(second);
    if (restored.ok()) acknowledged.push_back("u-2");
    if (!restored.ok() || !Wait(restored->metadata.id)) return false;
    std::erase(acknowledged, "u-1");
    const Status deleted = world_.Await(world_.host().DeleteVolume(made->metadata.id));
    return deleted.ok() &&
           Until([&] { return !iri::GetVolume(world_, made->metadata.id).has_value(); });
  }

  std::vector<std::string> acknowledged;
  bool grown = false;

 private:
  bool Until(const std::function<bool()>& done) {
    const bool ended = iri::Eventually(world_, [&] { return power_.is_off() || done(); });
    CHECK(ended) << world_.Events();
    return done();
  }
  bool Wait(const std::string& id) {
    return Until(
        [&] { return iri::GetVolume(world_, id)->status.state == iri::VolumeState::kAvailable; });
  }
  VolumeWorld& world_;
  const PowerCut& power_;
};

TEST(VolumeHostCrash, WhateverMomentItIsKilledNothingAcknowledgedIsLostAndNothingIsLeft) {
  VolumeWorld world(WorldDisks::kFake);
  world.temporary().Write("images/tiny.raw", "tiny");
  bool lived = false;
  int moments = 0;
  for (; !lived; ++moments) {
    SCOPED_TRACE("killed at moment " + std::to_string(moments));
    ASSERT_LT(moments, 200);
    PowerCut power(moments);
    world.Restart(&power);
    Client client(world, power);
    lived = client.Lives();
    world.Restart();

    std::vector<std::string> there;
    for (const iri::Volume& volume : *world.Await(world.host().ListVolumes(iri::ObjectFilter()))) {
      if (!volume.metadata.deleted_at.is_zero()) continue;
      there.emplace_back(LabelOf(volume.metadata, iri::kVolumeUidLabel));
      ASSERT_TRUE(world.BecomesState(volume.metadata.id, iri::VolumeState::kAvailable));
      const iri::Volume now = *iri::GetVolume(world, volume.metadata.id);
      EXPECT_TRUE(ReadWhole(VolumeWorld::PathOf(now)).starts_with("tiny"));
      if (client.grown) EXPECT_EQ(now.spec.storage_bytes, 2 * kMiB);
    }
    for (const std::string& uid : client.acknowledged) {
      EXPECT_NE(std::ranges::find(there, uid), there.end()) << uid << " is lost";
    }
    for (const std::string& file : world.Files()) {
      EXPECT_EQ(file.find("/part."), std::string::npos) << file;
    }
    for (const iri::Volume& volume : *world.Await(world.host().ListVolumes(iri::ObjectFilter()))) {
      (void)world.Await(world.host().DeleteVolume(volume.metadata.id));
      ASSERT_TRUE(world.IsGone(volume.metadata.id));
    }
    for (const iri::VolumeSnapshot& snapshot :
         *world.Await(world.host().ListVolumeSnapshots(iri::ObjectFilter()))) {
      (void)world.Await(world.host().DeleteVolumeSnapshot(snapshot.metadata.id));
      ASSERT_TRUE(iri::Eventually(
          world, [&] { return !world.GetSnapshot(snapshot.metadata.id).has_value(); }));
    }
    ASSERT_TRUE(world.Files().empty()) << world.Files().front();
  }
  EXPECT_GT(moments, 20) << "the story has that many moments";
}

}  // namespace
}  // namespace berth::runtime
