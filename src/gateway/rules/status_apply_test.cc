// SPDX-License-Identifier: Apache-2.0
// A report changes the status of its own object and nothing else (G3).
#include "gateway/rules/status_apply.h"

#include <gtest/gtest.h>

#include "apis/compute/machine.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "gateway/rules/limits.h"

namespace berth::gateway {
namespace {

using apis::compute::Machine;
using apis::storage::Volume;

constexpr WallTime kNow = WallTime::FromSeconds(1'800'000'000);

meta::Object BoundMachine() {
  Machine machine;
  machine.metadata.name = "web";
  machine.metadata.uid = "u";
  machine.metadata.generation = 3;
  machine.status.placement = apis::core::PlacementStatus{.pool_uid = "p", .epoch = 4};
  apis::compute::MachineVolume disk;
  disk.name = "root";
  disk.volume_ref = apis::core::LocalObjectReference{.name = "data"};
  machine.spec.volumes.push_back(disk);
  return meta::Object::Of(apis::compute::kMachineKind, std::move(machine));
}

agent::ObjectStatus ReportOf(const std::string& kind, const std::string& state) {
  agent::ObjectStatus report;
  report.set_uid("u");
  report.set_kind(kind);
  report.set_state(state);
  return report;
}

TEST(MayReport, G3_NeedsThePoolThePlacementAndTheIncarnation) {
  const meta::Object machine = BoundMachine();
  EXPECT_TRUE(MayReport(machine, "p", 4, 1, 1));
  EXPECT_FALSE(MayReport(machine, "q", 4, 1, 1));
  EXPECT_FALSE(MayReport(machine, "p", 3, 1, 1));
  EXPECT_FALSE(MayReport(machine, "p", 5, 1, 1));
  EXPECT_FALSE(MayReport(machine, "p", 4, 2, 1));
  EXPECT_FALSE(MayReport(meta::Object(apis::compute::kMachineKind), "", 0, 1, 1));
}

TEST(ApplyReport, WordsThatTheApiDoesNotKnowChangeNothing) {
  meta::Object machine = BoundMachine();
  machine.as<Machine>().status.state = "Pending";
  ApplyReport(ReportOf("Machine", "Exploded"), kNow, machine);
  EXPECT_EQ(machine.as<Machine>().status.state, "Pending");
  EXPECT_FALSE(ApplyReport(ReportOf("Volume", "Available"), kNow, machine));
  EXPECT_TRUE(ApplyReport(ReportOf("Machine", "Running"), kNow, machine));
  EXPECT_FALSE(ApplyReport(ReportOf("Machine", "Running"), kNow, machine)) << "nothing new";
}

void AddVolume(agent::ObjectStatus& report, const std::string& name, const std::string& handle) {
  agent::PartStatus& part = *report.add_volumes();
  part.set_name(name);
  part.set_handle(handle);
  part.set_state("Attached");
}

TEST(ApplyReport, APartIsThereOnceAndReferredToAsTheSpecSays) {
  meta::Object machine = BoundMachine();
  agent::ObjectStatus report = ReportOf("Machine", "Running");
  for (const char* name : {"root", "root", "bad\nname"}) AddVolume(report, name, "v-1");
  ASSERT_TRUE(ApplyReport(report, kNow, machine));
  const auto& volumes = machine.as<Machine>().status.volumes;
  ASSERT_EQ(volumes.size(), 1);
  EXPECT_EQ(volumes[0].name, "root");
  EXPECT_EQ(volumes[0].state, "Attached");
  EXPECT_EQ(volumes[0].volume_ref.name, "data");
  EXPECT_EQ(volumes[0].last_state_transition_time, kNow);
  EXPECT_FALSE(ApplyReport(report, kNow + Duration::Seconds(9), machine));
}

TEST(ApplyReport, R6_3_WhatTheSpecDoesNotNameAnyMoreIsThereUntilTheHostHasLetGo) {
  meta::Object machine = BoundMachine();
  agent::ObjectStatus report = ReportOf("Machine", "Running");
  AddVolume(report, "root", "v-1");
  ASSERT_TRUE(ApplyReport(report, kNow, machine));
  // Another volume under the same name, which the host does not have yet.
  machine.as<Machine>().spec.volumes[0].volume_ref->name = "other";
  ApplyReport(report, kNow, machine);
  const auto& volumes = machine.as<Machine>().status.volumes;
  ASSERT_EQ(volumes.size(), 1);
  EXPECT_EQ(volumes[0].volume_ref.name, "data");
  report.mutable_volumes(0)->set_handle("v-2");
  ApplyReport(report, kNow, machine);
  EXPECT_EQ(volumes[0].volume_ref.name, "other");
  // None at all, and one of which nobody knows any more what it is.
  machine.as<Machine>().spec.volumes.clear();
  AddVolume(report, "late", "v-3");
  ApplyReport(report, kNow, machine);
  ASSERT_EQ(volumes.size(), 2);
  EXPECT_EQ(volumes[0].volume_ref.name, "other");
  EXPECT_EQ(volumes[1].volume_ref.name, "");
  report.clear_volumes();
  ApplyReport(report, kNow, machine);
  EXPECT_TRUE(volumes.empty());
}

TEST(ApplyReport, AGenerationThatDoesNotExistWasNotSeen) {
  meta::Object machine = BoundMachine();
  agent::ObjectStatus report = ReportOf("Machine", "Running");
  report.set_observed_generation(99);
  ApplyReport(report, kNow, machine);
  EXPECT_EQ(machine.as<Machine>().status.observed_generation, 3);
  report.set_observed_generation(-1);
  ApplyReport(report, kNow, machine);
  EXPECT_EQ(machine.as<Machine>().status.observed_generation, 0);
}

TEST(ApplyReport, R3_2_AMachineMayBeMovedAgainOnceItsHostSaysThatItIsUnderALease) {
  meta::Object machine = BoundMachine();
  auto& conditions = machine.as<Machine>().status.conditions;
  agent::ObjectStatus report = ReportOf("Machine", "Running");
  conditions = {{.type = "Movable", .status = "Unknown", .reason = "HostNotTold"}};
  ApplyReport(report, kNow, machine);
  EXPECT_EQ(conditions.size(), 1) << "the host has not said so";
  report.set_leased(true);
  EXPECT_TRUE(ApplyReport(report, kNow, machine));
  EXPECT_TRUE(conditions.empty());
  conditions = {{.type = "Movable", .status = "False", .reason = "HostLocalState"}};
  ApplyReport(report, kNow, machine);
  EXPECT_EQ(conditions.size(), 1) << "that is not the host's to decide";
}

TEST(ApplyReport, ConditionsAreBoundedAndScheduledIsNotTheHosts) {
  meta::Object machine = BoundMachine();
  agent::ObjectStatus report = ReportOf("Machine", "Running");
  for (const char* type : {"Scheduled", "Movable", "no good type", "Ready"}) {
    agent::Condition& condition = *report.add_conditions();
    condition.set_type(type);
    condition.set_status("True");
  }
  report.add_conditions()->set_type("Odd");  // without a status
  for (int i = 0; i < 100; ++i) {
    agent::Condition& condition = *report.add_conditions();
    condition.set_type("Type" + std::to_string(i));
    condition.set_status("True");
  }
  ApplyReport(report, kNow, machine);
  const auto& conditions = machine.as<Machine>().status.conditions;
  EXPECT_LE(conditions.size(), kConditionsMax);
  ASSERT_FALSE(conditions.empty());
  EXPECT_EQ(conditions[0].type, "Ready");
}

TEST(ApplyReport, AVolumesAccessNamesTheServersSecretOnly) {
  Volume volume;
  volume.metadata.uid = "v";
  meta::Object object = meta::Object::Of(apis::storage::kVolumeKind, std::move(volume));
  agent::ObjectStatus report = ReportOf("Volume", "Available");
  report.mutable_access()->set_driver("test");
  report.mutable_access()->set_handle("disk");
  ASSERT_TRUE(ApplyReport(report, kNow, object));
  EXPECT_FALSE(object.as<Volume>().status.access->secret_ref);
  (*report.mutable_access()->mutable_secret_data())["key"] = "k";
  (*report.mutable_access()->mutable_secret_data())["../../etc"] = "x";
  ASSERT_TRUE(ApplyReport(report, kNow, object));
  EXPECT_EQ(object.as<Volume>().status.access->secret_ref->name, "access-v");
  EXPECT_EQ(AccessSecretData(report), (std::map<std::string, std::string>{{"key", "k"}}));
  (*report.mutable_access()->mutable_secret_data())["big"] = std::string(kSecretBytesMax, 'x');
  EXPECT_FALSE(AccessSecretData(report).contains("big"));
}

TEST(ApplyReport, ASnapshotGetsItsStateSizeAndConditions) {
  meta::Object snapshot(apis::storage::kVolumeSnapshotKind);
  agent::ObjectStatus report = ReportOf("VolumeSnapshot", "Ready");
  report.set_runtime_id("files://s-1");
  report.set_storage_bytes(512);
  agent::Condition& ready = *report.add_conditions();
  ready.set_type("Ready");
  ready.set_status("True");
  ASSERT_TRUE(ApplyReport(report, kNow, snapshot));
  const auto& status = snapshot.as<apis::storage::VolumeSnapshot>().status;
  EXPECT_EQ(status.state, "Ready");
  EXPECT_EQ(status.snapshot_id, "files://s-1");
  EXPECT_EQ(status.size, meta::Quantity(512));
  ASSERT_EQ(status.conditions.size(), 1U);
  EXPECT_EQ(status.last_state_transition_time, kNow);
  EXPECT_FALSE(ApplyReport(report, kNow, snapshot)) << "nothing new";
  ApplyReport(ReportOf("VolumeSnapshot", "Available"), kNow, snapshot);
  EXPECT_EQ(status.state, "Ready") << "a word of volumes";
}

TEST(ApplyReport, ABucketsEndpointIsShown) {
  meta::Object bucket(apis::storage::kBucketKind);
  agent::ObjectStatus report = ReportOf("Bucket", "Available");
  report.set_bucket_endpoint("http://a\n");
  ASSERT_TRUE(ApplyReport(report, kNow, bucket));
  const auto& status = bucket.as<apis::storage::Bucket>().status;
  EXPECT_EQ(status.state, "Available");
  EXPECT_EQ(status.access->endpoint.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace berth::gateway
