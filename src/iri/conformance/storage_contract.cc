// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "iri/conformance/blocking.h"
#include "iri/labels.h"

namespace berth::iri {

namespace {

bool BecomesAvailable(RuntimeUnderTest& t, const std::string& id) {
  return Eventually(t, [&] {
    const std::optional<Volume> volume = GetVolume(t, id);
    return volume.has_value() && volume->status.state == VolumeState::kAvailable;
  });
}

void CreatesAVolumeThatBecomesAvailable(RuntimeUnderTest& t) {
  const Volume wanted = NewVolume(t, "v-1");
  const auto made = Await(t, t.runtimes().volume->CreateVolume(wanted));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->spec, wanted.spec);
  EXPECT_TRUE(BecomesAvailable(t, made->metadata.id));
  const Volume volume = *GetVolume(t, made->metadata.id);
  EXPECT_FALSE(volume.status.access.driver.empty());
  EXPECT_FALSE(volume.status.access.handle.empty());
  EXPECT_GE(volume.status.storage_bytes, wanted.spec.storage_bytes);
}

void ExpandsAndNeverShrinks(RuntimeUnderTest& t) {
  VolumeRuntime& runtime = *t.runtimes().volume;
  const Volume wanted = NewVolume(t, "v-1");
  const auto made = Await(t, runtime.CreateVolume(wanted));
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string id = made->metadata.id;
  ASSERT_TRUE(BecomesAvailable(t, id));
  const int64_t larger = wanted.spec.storage_bytes * 2;
  EXPECT_EQ(Await(t, runtime.ExpandVolume(id, larger)), OkStatus());
  EXPECT_EQ(Await(t, runtime.ExpandVolume(id, larger)), OkStatus());
  EXPECT_TRUE(Eventually(t, [&] { return GetVolume(t, id)->status.storage_bytes >= larger; }));
  const Status shrunk = Await(t, runtime.ExpandVolume(id, wanted.spec.storage_bytes));
  EXPECT_FALSE(shrunk.ok());
  EXPECT_GE(GetVolume(t, id)->spec.storage_bytes, larger);
}

void DeletesVolumesUntilGone(RuntimeUnderTest& t) {
  VolumeRuntime& runtime = *t.runtimes().volume;
  const auto made = Await(t, runtime.CreateVolume(NewVolume(t, "v-1")));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Await(t, runtime.DeleteVolume(made->metadata.id)), OkStatus());
  EXPECT_TRUE(Eventually(t, [&] { return !GetVolume(t, made->metadata.id).has_value(); }));
  EXPECT_EQ(Await(t, runtime.DeleteVolume(made->metadata.id)).reason(), Reason::kNotFound);
  EXPECT_EQ(Await(t, runtime.ExpandVolume(made->metadata.id, 1 << 30)).reason(), Reason::kNotFound);
}

// A snapshot is named by the runtime's own id, not by any name of the API.
void D14_RestoresASnapshotByItsOwnId(RuntimeUnderTest& t) {
  VolumeRuntime& runtime = *t.runtimes().volume;
  const auto source = Await(t, runtime.CreateVolume(NewVolume(t, "v-1")));
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE(BecomesAvailable(t, source->metadata.id));
  VolumeSnapshot wanted;
  wanted.metadata.labels = {{std::string(kSnapshotUidLabel), "s-1"},
                            {std::string(kSnapshotNameLabel), "daily"}};
  wanted.volume_id = source->metadata.id;
  const auto snapshot = Await(t, runtime.CreateVolumeSnapshot(wanted));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ObjectFilter filter;
  filter.id = snapshot->metadata.id;
  EXPECT_TRUE(Eventually(t, [&] {
    const auto listed = Await(t, runtime.ListVolumeSnapshots(filter));
    return listed.ok() && listed->size() == 1 && listed->front().state == SnapshotState::kReady;
  }));
  Volume restored = NewVolume(t, "v-2");
  restored.spec.snapshot_id = "daily";
  EXPECT_FALSE(Await(t, runtime.CreateVolume(restored)).ok());
  restored.spec.snapshot_id = snapshot->metadata.id;
  EXPECT_TRUE(Await(t, runtime.CreateVolume(restored)).ok());
  EXPECT_EQ(Await(t, runtime.DeleteVolumeSnapshot(snapshot->metadata.id)), OkStatus());
  EXPECT_TRUE(
      Eventually(t, [&] { return Await(t, runtime.ListVolumeSnapshots(filter))->empty(); }));
}

// Where a snapshot may be named a volume may be: the new one is its copy, and lets it go first.
void CopiesAVolume(RuntimeUnderTest& t) {
  VolumeRuntime& runtime = *t.runtimes().volume;
  const auto source = Await(t, runtime.CreateVolume(NewVolume(t, "v-1")));
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE(BecomesAvailable(t, source->metadata.id));
  Volume small = NewVolume(t, "v-2");
  small.spec.snapshot_id = source->metadata.id;
  small.spec.storage_bytes /= 2;
  EXPECT_EQ(Await(t, runtime.CreateVolume(small)).status().reason(), Reason::kBadRequest);
  Volume wanted = NewVolume(t, "v-3");
  wanted.spec.snapshot_id = source->metadata.id;
  const auto copy = Await(t, runtime.CreateVolume(wanted));
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(Await(t, runtime.DeleteVolume(source->metadata.id)), OkStatus());
  EXPECT_TRUE(BecomesAvailable(t, copy->metadata.id));
  EXPECT_TRUE(Eventually(t, [&] { return !GetVolume(t, source->metadata.id).has_value(); }));
  Volume late = NewVolume(t, "v-4");
  late.spec.snapshot_id = source->metadata.id;
  EXPECT_EQ(Await(t, runtime.CreateVolume(late)).status().reason(), Reason::kNotFound);
}

void RefusesSnapshotsOfNothing(RuntimeUnderTest& t) {
  VolumeSnapshot wanted;
  wanted.volume_id = "no-such-volume";
  EXPECT_EQ(Await(t, t.runtimes().volume->CreateVolumeSnapshot(wanted)).status().reason(),
            Reason::kNotFound);
}

void ListsVolumesByLabel(RuntimeUnderTest& t) {
  VolumeRuntime& runtime = *t.runtimes().volume;
  ASSERT_TRUE(Await(t, runtime.CreateVolume(NewVolume(t, "v-1"))).ok());
  ASSERT_TRUE(Await(t, runtime.CreateVolume(NewVolume(t, "v-2"))).ok());
  ObjectFilter filter;
  filter.labels = {{std::string(kVolumeUidLabel), "v-2"}};
  const auto listed = Await(t, runtime.ListVolumes(filter));
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(LabelOf(listed->front().metadata, kVolumeUidLabel), "v-2");
}

void CreatesAndDeletesBuckets(RuntimeUnderTest& t) {
  BucketRuntime& runtime = *t.runtimes().bucket;
  const auto made = Await(t, runtime.CreateBucket(NewBucket(t, "b-1")));
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string id = made->metadata.id;
  EXPECT_TRUE(Eventually(t, [&] { return GetBucket(t, id)->state == BucketState::kAvailable; }));
  EXPECT_FALSE(GetBucket(t, id)->access.endpoint.empty());
  EXPECT_FALSE(GetBucket(t, id)->access.secret_data.empty());
  EXPECT_EQ(Await(t, runtime.DeleteBucket(id)), OkStatus());
  EXPECT_TRUE(Eventually(t, [&] { return !GetBucket(t, id).has_value(); }));
  EXPECT_EQ(Await(t, runtime.DeleteBucket(id)).reason(), Reason::kNotFound);
}

void RefusesBucketClassesThatItDoesNotOffer(RuntimeUnderTest& t) {
  Bucket wanted = NewBucket(t, "b-1");
  wanted.class_name = "no-such-class";
  EXPECT_EQ(Await(t, t.runtimes().bucket->CreateBucket(wanted)).status().reason(),
            Reason::kBadRequest);
}

constexpr auto kContracts = std::to_array<RuntimeContract>({
    {"CreatesAVolumeThatBecomesAvailable", CreatesAVolumeThatBecomesAvailable},
    {"ExpandsAndNeverShrinks", ExpandsAndNeverShrinks},
    {"DeletesVolumesUntilGone", DeletesVolumesUntilGone},
    {"D14_RestoresASnapshotByItsOwnId", D14_RestoresASnapshotByItsOwnId},
    {"CopiesAVolume", CopiesAVolume},
    {"RefusesSnapshotsOfNothing", RefusesSnapshotsOfNothing},
    {"ListsVolumesByLabel", ListsVolumesByLabel},
    {"CreatesAndDeletesBuckets", CreatesAndDeletesBuckets},
    {"RefusesBucketClassesThatItDoesNotOffer", RefusesBucketClassesThatItDoesNotOffer},
});

}  // namespace

std::span<const RuntimeContract> StorageContracts() { return kContracts; }

}  // namespace berth::iri
