// SPDX-License-Identifier: Apache-2.0
// Nothing is lost between structs, messages and JSON; what a broken runtime may send is found.
#include "iri/wire/wire.h"

#include <gtest/gtest.h>

#include "iri/labels.h"
#include "iri/wire/json.h"

namespace berth::iri {
namespace {

ObjectMetadata FullMetadata() {
  ObjectMetadata metadata;
  metadata.id = "id-1";
  metadata.annotations = {{"a", "1"}};
  metadata.labels = {{std::string(kMachineUidLabel), "u-1"}};
  metadata.generation = 3;
  metadata.created_at = WallTime::FromMicros(1'700'000'000'123'456);
  metadata.deleted_at = WallTime::FromMicros(1'700'000'001'000'000);
  return metadata;
}

Machine FullMachine() {
  Machine machine;
  machine.metadata = FullMetadata();
  machine.spec.power = Power::kOff;
  machine.spec.class_name = "small";
  machine.spec.ignition_data = std::string("\0\xff", 2);
  machine.spec.hostname = "web";
  MachineVolume root;
  root.name = "root";
  root.device = "oda";
  root.local_disk = LocalDisk{.size_bytes = 1 << 30, .image = "debian:12"};
  MachineVolume data;
  data.name = "data";
  data.connection = VolumeConnection{.driver = "ceph",
                                     .handle = "h",
                                     .attributes = {{"k", "v"}},
                                     .secret_data = {{"key", "s"}},
                                     .encryption_data = {{"luks", "e"}},
                                     .effective_storage_bytes = 42};
  machine.spec.volumes = {root, data};
  machine.spec.nics = {{.name = "n",
                        .network_id = "net",
                        .ips = {"10.0.0.1", "fd00::1"},
                        .attributes = {{"x", "y"}}}};
  machine.status.observed_generation = 2;
  machine.status.state = MachineState::kStopped;
  machine.status.image_ref = "sha256:1";
  machine.status.volumes = {{.name = "root", .handle = "r", .state = AttachmentState::kAttached}};
  machine.status.nics = {{.name = "n", .handle = "m", .state = AttachmentState::kPending}};
  machine.status.conditions = {{.type = "Ready",
                                .status = "False",
                                .reason = "Off",
                                .message = "off",
                                .last_transition = WallTime::FromSeconds(17)}};
  return machine;
}

Volume FullVolume() {
  Volume volume;
  volume.metadata = FullMetadata();
  volume.spec = {.class_name = "fast",
                 .storage_bytes = 10,
                 .encryption = {{"key", "k"}},
                 .image = "debian",
                 .image_architecture = "amd64",
                 .snapshot_id = "s-1"};
  volume.status = {.state = VolumeState::kAvailable,
                   .access = {.driver = "d",
                              .handle = "h",
                              .attributes = {{"a", "b"}},
                              .secret_data = {{"s", "t"}}},
                   .storage_bytes = 12};
  return volume;
}

HostCapacity FullCapacity() {
  HostCapacity capacity;
  capacity.total = {{"cpu", 8000}, {"memory", 100}};
  capacity.used = {{"cpu", 2000}};
  capacity.load = {{"cpu", 17}};
  capacity.kept = {{"storage", 5}};
  capacity.facts = {{"kernel", "6.1"}};
  capacity.boot_id = "b";
  capacity.trouble = "t";
  capacity.instances = {{.kind = ObjectKind::kVolume,
                         .id = "v",
                         .uid = "u",
                         .cpu_time = Duration::Nanos(5),
                         .memory_bytes = 1,
                         .disk_bytes = 2,
                         .disk_read_bytes = 3,
                         .disk_written_bytes = 4,
                         .network_received_bytes = 6,
                         .network_sent_bytes = 7}};
  return capacity;
}

TEST(Wire, KeepsEveryField) {
  EXPECT_EQ(FromProto(ToProto(FullMachine())), FullMachine());
  EXPECT_EQ(FromProto(ToProto(FullVolume())), FullVolume());
  EXPECT_EQ(FromProto(ToProto(FullCapacity())), FullCapacity());
  const VolumeSnapshot snapshot = {.metadata = FullMetadata(),
                                   .volume_id = "v",
                                   .state = SnapshotState::kReady,
                                   .size_bytes = 5};
  EXPECT_EQ(FromProto(ToProto(snapshot)), snapshot);
  const Bucket bucket = {.metadata = FullMetadata(),
                         .class_name = "c",
                         .state = BucketState::kError,
                         .access = {.endpoint = "https://x", .secret_data = {{"k", "v"}}}};
  EXPECT_EQ(FromProto(ToProto(bucket)), bucket);
  const Event event = {.involved = FullMetadata(),
                       .type = EventType::kWarning,
                       .reason = "Crashed",
                       .message = "m",
                       .action = "Run",
                       .time = WallTime::FromSeconds(7)};
  EXPECT_EQ(FromProto(ToProto(event)), event);
  const Change change = {.type = ChangeType::kDeleted,
                         .cursor = "c",
                         .kind = ObjectKind::kBucket,
                         .id = "i",
                         .uid = "u",
                         .what = "state"};
  EXPECT_EQ(FromProto(ToProto(change)), change);
  const Reservation reservation = {.id = "r", .resources = {{"cpu", 1}}, .machine_uid = "u"};
  EXPECT_EQ(FromProto(ToProto(reservation)), reservation);
}

TEST(Wire, KeepsEveryFieldAsJson) {
  EXPECT_EQ(*MachineFromJson(ToJson(FullMachine())), FullMachine());
  EXPECT_EQ(*VolumeFromJson(ToJson(FullVolume())), FullVolume());
  EXPECT_EQ(MachineFromJson(R"({"spec":{"clas":"x"}})").status().reason(), Reason::kBadRequest);
  EXPECT_EQ(MachineFromJson("[]").status().reason(), Reason::kBadRequest);
}

TEST(Wire, D7_KnowsTheStoppedStateAndCallsNewOnesUnknown) {
  machine_pb::Machine message;
  message.mutable_status()->set_state(machine_pb::MACHINE_STOPPED);
  EXPECT_EQ(FromProto(message).status.state, MachineState::kStopped);
  message.mutable_status()->set_state(static_cast<machine_pb::MachineState>(6));
  EXPECT_EQ(FromProto(message).status.state, MachineState::kUnknown);
}

TEST(Wire, D7_CarriesPowerOffIntoTheCreateCall) {
  Machine machine;
  machine.spec.power = Power::kOff;
  EXPECT_EQ(ToProto(machine).spec().power(), machine_pb::POWER_OFF);
}

TEST(CheckMessage, FindsWhatABrokenRuntimeMaySend) {
  const auto bad = [](const std::function<void(machine_pb::Machine&)>& spoil) {
    machine_pb::Machine machine = ToProto(FullMachine());
    EXPECT_EQ(CheckMessage(machine), OkStatus());
    spoil(machine);
    const Status status = CheckMessage(machine);
    EXPECT_TRUE(status.Is(Reason::kBadRequest)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(bad([](auto& m) { m.mutable_metadata()->set_id(std::string("a\0b", 3)); }),
            "field meta.v1alpha1.ObjectMetadata.id: contains a NUL character");
  EXPECT_EQ(bad([](auto& m) { m.mutable_spec()->set_class_("\xff"); }),
            "field machine.v1alpha1.MachineSpec.class: is not valid UTF-8");
  EXPECT_EQ(
      bad([](auto& m) { (*m.mutable_metadata()->mutable_labels())["k"] = std::string("\0", 1); }),
      "field meta.v1alpha1.ObjectMetadata.LabelsEntry.value: contains a NUL character");
  EXPECT_EQ(bad([](auto& m) {
              m.mutable_spec()->mutable_volumes(0)->mutable_local_disk()->set_size_bytes(-1);
            }),
            "field machine.v1alpha1.LocalDisk.size_bytes: -1 is negative");
  EXPECT_EQ(bad([](auto& m) { m.mutable_spec()->mutable_network_interfaces(0)->add_ips("\xc3"); }),
            "field machine.v1alpha1.NetworkInterface.ips: is not valid UTF-8");
  EXPECT_EQ(bad([](auto& m) { m.mutable_spec()->set_class_(std::string(kTextBytesMax + 1, 'x')); }),
            "field machine.v1alpha1.MachineSpec.class: 262145 bytes, at most 262144 are allowed");
}

}  // namespace
}  // namespace berth::iri
