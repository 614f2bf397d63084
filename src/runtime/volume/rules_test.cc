// SPDX-License-Identifier: Apache-2.0
// The pure rules of the volume runtime: what fits, what comes next, what is refused.
#include <gtest/gtest.h>

#include "iri/labels.h"
#include "runtime/volume/budget.h"
#include "runtime/volume/plan.h"
#include "runtime/volume/qcow2_header.h"
#include "runtime/volume/records.h"
#include "runtime/volume/volume_classes.h"

namespace berth::runtime {
namespace {

constexpr int64_t kMi = 1 << 20;

TEST(VolumeBudget, P6_6_CountsEverythingOnceAgainstOneTotal) {
  Budget budget;
  budget.total = 100 * kMi;
  budget.volumes = 40 * kMi;
  budget.snapshots = 20 * kMi;
  budget.images = 10 * kMi;
  budget.unknown = 10 * kMi;
  FileSystemRoom room;
  room.available = 1000 * kMi;
  EXPECT_TRUE(CheckRoom(budget, room, Promise::kWhole, 20 * kMi, "a volume").ok());
  const Status full = CheckRoom(budget, room, Promise::kWhole, 20 * kMi + 1, "a volume");
  EXPECT_EQ(full.reason(), Reason::kTooManyRequests);
  EXPECT_NE(full.message().find("83886080 of 104857600 bytes are promised"), std::string_view::npos)
      << full;
}

TEST(VolumeBudget, P6_6_PromisedBytesHaveToBeThere) {
  Budget budget;
  budget.total = 1000 * kMi;
  FileSystemRoom room;
  room.available = 100 * kMi;
  room.unwritten = 90 * kMi;
  EXPECT_TRUE(CheckRoom(budget, room, Promise::kWhole, 10 * kMi, "a volume").ok());
  EXPECT_EQ(CheckRoom(budget, room, Promise::kWhole, 11 * kMi, "a volume").reason(),
            Reason::kTooManyRequests);
  EXPECT_TRUE(CheckRoom(budget, room, Promise::kOvercommit, 900 * kMi, "a volume").ok());
  room.available = kMi;
  EXPECT_EQ(CheckRoom(budget, room, Promise::kOvercommit, 900 * kMi, "a volume").reason(),
            Reason::kTooManyRequests);
}

TEST(VolumeBudget, TheTotalIsWhatIsLeftTimesTheRatio) {
  EXPECT_EQ(TotalBytes(100, 20, 1), 80);
  EXPECT_EQ(TotalBytes(100, 20, 1.5), 120);
  EXPECT_EQ(TotalBytes(10, 20, 1), 0);
  EXPECT_GT(TotalBytes(std::numeric_limits<int64_t>::max(), 0, 100), 0);
}

TEST(VolumeClasses, AreReadFromYaml) {
  const auto classes = ParseVolumeClasses(
      "classes:\n"
      "- name: fast\n"
      "  capabilities: {tps: 100Mi, iops: 5k}\n"
      "- name: slow\n"
      "  capabilities: {tps: 1000, iops: \"10\"}\n"
      "  format: raw\n");
  ASSERT_TRUE(classes.ok()) << classes.status();
  ASSERT_EQ(classes->size(), 2U);
  EXPECT_EQ(classes->front().volume_class,
            (iri::VolumeClass{.name = "fast", .tps = 100 * kMi, .iops = 5000}));
  EXPECT_EQ(classes->front().format, DiskFormat::kQcow2);
  EXPECT_EQ(FindClass(*classes, "slow")->format, DiskFormat::kRaw);
  EXPECT_EQ(FindClass(*classes, "none"), nullptr);
}

TEST(VolumeClasses, ErrorsNameTheClassAndTheField) {
  const struct {
    std::string_view yaml;
    std::string_view says;
  } kCases[] = {
      {"", "expected a mapping"},
      {"classes: []", "at least one class"},
      {"classes: [{name: a}]", "class \"a\": capabilities is missing"},
      {"classes: [{name: a, capabilities: {tps: 1}}]", "capabilities.iops is missing"},
      {"classes: [{name: a, capabilities: {tps: x, iops: 1}}]", "capabilities.tps: expected"},
      {"classes: [{name: a, capabilities: {tps: 0, iops: 1}}]", "capabilities.tps: expected"},
      {"classes: [{name: a, capabilities: {tps: 1, iops: 1, x: 1}}]", "unknown field \"x\""},
      {"classes: [{name: a, capabilities: {tps: 1, iops: 1}, format: luks}]", "qcow2 or raw"},
      {"classes: [{capabilities: {tps: 1, iops: 1}}]", "classes[0]: name"},
      {"classes: [{name: a, capabilities: {tps: 1, iops: 1}}, "
       "{name: a, capabilities: {tps: 1, iops: 1}}]",
       "stands twice"},
  };
  for (const auto& [yaml, says] : kCases) {
    const Status status = ParseVolumeClasses(yaml).status();
    EXPECT_EQ(status.reason(), Reason::kBadRequest) << yaml;
    EXPECT_NE(status.message().find(says), std::string_view::npos) << status;
  }
}

VolumeRecord Made() {
  VolumeRecord record;
  record.object.metadata.id = "v-1";
  record.object.spec.storage_bytes = kMi;
  record.disk_bytes = kMi;
  return record;
}

TEST(VolumePlan, TheRecordSaysWhatComesNext) {
  const VolumeRecord made = Made();
  EXPECT_EQ(NextStep(made, Circumstances()), Step::kNone);

  VolumeRecord small = made;
  small.object.spec.storage_bytes = 2 * kMi;
  EXPECT_EQ(NextStep(small, Circumstances()), Step::kGrow);

  VolumeRecord making = made;
  making.disk_bytes = 0;
  EXPECT_EQ(NextStep(making, Circumstances()), Step::kMake);
  making.needs_key = true;
  EXPECT_EQ(NextStep(making, {.has_key = true}), Step::kMake);
  EXPECT_EQ(NextStep(making, {.has_key = false}), Step::kAbandon);

  making.object.metadata.deleted_at = WallTime::FromMicros(1);
  EXPECT_EQ(NextStep(making, {.is_read = true}), Step::kWait);
  EXPECT_EQ(NextStep(making, {.is_read = false}), Step::kRemove);
}

TEST(VolumePlan, ASnapshotIsMadeOnce) {
  SnapshotRecord record;
  EXPECT_EQ(NextStep(record, Circumstances()), Step::kMake);
  record.object.state = iri::SnapshotState::kReady;
  EXPECT_EQ(NextStep(record, Circumstances()), Step::kNone);
  record.object.state = iri::SnapshotState::kFailed;
  EXPECT_EQ(NextStep(record, Circumstances()), Step::kNone);
  record.object.metadata.deleted_at = WallTime::FromMicros(1);
  EXPECT_EQ(NextStep(record, Circumstances()), Step::kRemove);
}

TEST(VolumePlan, NewVolumesAreCheckedAndKeysTakenOut) {
  OfferedVolumeClass raw;
  raw.format = DiskFormat::kRaw;
  iri::Volume wanted;
  wanted.spec.storage_bytes = 1000;
  std::string key;
  EXPECT_EQ(NewVolumeRecord(wanted, raw, DiskSource(), key)->format, DiskFormat::kRaw);

  iri::Volume secret = wanted;
  secret.spec.encryption = {{"encryptionKey", "k"}, {"other", "x"}};
  const auto encrypted = NewVolumeRecord(secret, raw, DiskSource(), key);
  ASSERT_TRUE(encrypted.ok()) << encrypted.status();
  EXPECT_EQ(encrypted->format, DiskFormat::kLuks);
  EXPECT_TRUE(encrypted->needs_key);
  EXPECT_TRUE(encrypted->object.spec.encryption.empty());
  EXPECT_EQ(key, "k");

  const DiskSource luks = {
      .kind = DiskSource::Kind::kDisk, .format = DiskFormat::kLuks, .bytes = 512};
  const auto copy = NewVolumeRecord(wanted, raw, luks, key);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->format, DiskFormat::kLuks) << "the copy of an encrypted disk is encrypted";
  EXPECT_FALSE(copy->needs_key);

  const DiskSource large = {
      .kind = DiskSource::Kind::kDisk, .format = DiskFormat::kRaw, .bytes = 2048};
  EXPECT_EQ(NewVolumeRecord(wanted, raw, large, key).status().reason(), Reason::kBadRequest);
  iri::Volume both = wanted;
  both.spec.image = "a";
  both.spec.snapshot_id = "s-1";
  EXPECT_EQ(NewVolumeRecord(both, raw, DiskSource(), key).status().reason(), Reason::kBadRequest);
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}, kVolumeBytesMax + 1}) {
    iri::Volume bad = wanted;
    bad.spec.storage_bytes = bytes;
    EXPECT_EQ(NewVolumeRecord(bad, raw, DiskSource(), key).status().reason(), Reason::kBadRequest);
  }
}

TEST(VolumePlan, KeysAreTextAndTheirErrorsDoNotTellThem) {
  EXPECT_EQ(*KeyOf({{"encryptionKey", "a"}, {"b", "c"}}), "a");
  EXPECT_EQ(*KeyOf({{"whatever", "a"}}), "a");
  for (const iri::SecretMap& bad : {iri::SecretMap{{"a", "s3cret"}, {"b", "s3cret"}},
                                    iri::SecretMap{{"encryptionKey", ""}},
                                    iri::SecretMap{{"encryptionKey", std::string("s3cret\0x", 8)}},
                                    iri::SecretMap{{"encryptionKey", "s3cret\xff"}},
                                    iri::SecretMap{{"encryptionKey", std::string(513, 's')}}}) {
    const Status status = KeyOf(bad).status();
    EXPECT_EQ(status.reason(), Reason::kBadRequest);
    EXPECT_EQ(status.message().find("s3cret"), std::string_view::npos) << status;
  }
}

TEST(VolumeRecords, ComeBackAsTheyWere) {
  VolumeRecord record = Made();
  record.object.metadata.labels = {{std::string(iri::kVolumeUidLabel), "u\n\"1"}};
  record.object.metadata.annotations = {{"a", "b"}};
  record.object.metadata.generation = 3;
  record.object.metadata.created_at = WallTime::FromMicros(1'700'000'000'000'001);
  record.object.spec.image = "debian:12";
  record.object.spec.image_architecture = "arm64";
  record.format = DiskFormat::kLuks;
  record.needs_key = true;
  const auto back = VolumeRecordOf(ToText(record));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, record);

  SnapshotRecord snapshot;
  snapshot.object.metadata.id = "s-1";
  snapshot.object.volume_id = "v-1";
  snapshot.object.state = iri::SnapshotState::kReady;
  snapshot.object.size_bytes = kMi;
  snapshot.format = DiskFormat::kRaw;
  snapshot.taken_bytes = 4096;
  const auto snapshot_back = SnapshotRecordOf(ToText(snapshot));
  ASSERT_TRUE(snapshot_back.ok()) << snapshot_back.status();
  EXPECT_EQ(*snapshot_back, snapshot);
}

TEST(VolumeRecords, WhatIsNoneIsAnError) {
  const std::string good = ToText(Made());
  for (const std::string& bad : {std::string(),
                                 std::string("{}"),
                                 std::string("{\"version\":2}"),
                                 good.substr(0, good.size() / 2),
                                 ToText(SnapshotRecord())}) {
    EXPECT_FALSE(VolumeRecordOf(bad).ok()) << bad;
  }
}

TEST(VolumeRecords, AreChargedTheirFullSizeAndSnapshotsWhatTheyTake) {
  VolumeRecord volume = Made();
  volume.object.spec.storage_bytes = 1000;
  volume.disk_bytes = 0;
  EXPECT_EQ(ChargeOf(volume), 1024);
  SnapshotRecord snapshot;
  snapshot.object.size_bytes = kMi;
  snapshot.taken_bytes = 4096;
  EXPECT_EQ(ChargeOf(snapshot), kMi);
  snapshot.object.state = iri::SnapshotState::kReady;
  EXPECT_EQ(ChargeOf(snapshot), 4096);
  snapshot.object.state = iri::SnapshotState::kFailed;
  EXPECT_EQ(ChargeOf(snapshot), 0);
}

// A header of version 3 for a disk of 1 MiB, with an end of extensions.
std::string Header() {
  std::string head(512, '\0');
  const auto put = [&head](size_t at, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      head[at + i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
    }
  };
  put(0, 0x514649fb, 4);
  put(4, 3, 4);
  put(20, 16, 4);
  put(24, kMi, 8);
  put(100, 104, 4);
  return head;
}

TEST(Qcow2Header, TellsTheSizeOfAPlainDisk) { EXPECT_EQ(*Qcow2VirtualBytes(Header()), kMi); }

TEST(Qcow2Header, P9_RefusesWhateverRefersToOtherFilesOrIsUnknown) {
  const struct {
    size_t at;
    char byte;
    std::string_view says;
  } kCases[] = {
      {0, 'X', "not a qcow2"},
      {7, 9, "version 9"},
      {15, 8, "backing file"},
      {19, 1, "backing file"},
      {23, 40, "clusters"},
      {24, '\x80', "bytes"},
      {35, 2, "encrypted"},
      {79, 4, "external data file"},
      {79, 2, "features"},
      {72, 1, "features"},
      {103, 8, "header of 8 bytes"},
      {102, 127, "header of"},
  };
  for (const auto& [at, byte, says] : kCases) {
    std::string head = Header();
    head[at] = byte;
    const Status status = Qcow2VirtualBytes(head).status();
    EXPECT_EQ(status.reason(), Reason::kBadRequest) << at;
    EXPECT_NE(status.message().find(says), std::string_view::npos) << at << ": " << status;
  }
  std::string data_file = Header();
  data_file.replace(104, 8, std::string("DATA\0\0\0\1", 8));
  EXPECT_FALSE(Qcow2VirtualBytes(data_file).ok());
  std::string endless = Header();
  endless.replace(104, 8, std::string("abcd\x7f\xff\xff\xff", 8));
  EXPECT_FALSE(Qcow2VirtualBytes(endless).ok());
}

TEST(Qcow2Header, NoBeginningOfAHeaderCrashes) {
  const std::string head = Header();
  for (size_t length = 0; length < head.size(); ++length) {
    (void)Qcow2VirtualBytes(std::string_view(head).substr(0, length));
  }
}

}  // namespace
}  // namespace berth::runtime
