// SPDX-License-Identifier: Apache-2.0
// Defends the names that machine volumes get.
#include "apis/compute/device_names.h"

#include <gtest/gtest.h>

namespace berth::apis::compute {
namespace {

Machine MachineWith(std::vector<std::string> devices) {
  Machine machine;
  machine.metadata.name = "m";
  for (size_t i = 0; i < devices.size(); ++i) {
    MachineVolume volume{.name = "v" + std::to_string(i)};
    if (!devices[i].empty()) volume.device = devices[i];
    machine.spec.volumes.push_back(volume);
  }
  return machine;
}

TEST(DeviceNames, CountWithOneLetterThenWithTwo) {
  EXPECT_EQ(DeviceName(0), "oda");
  EXPECT_EQ(DeviceName(25), "odz");
  EXPECT_EQ(DeviceName(26), "odaa");
  EXPECT_EQ(DeviceName(kDeviceNamesMax - 1), "odzz");
  EXPECT_FALSE(IsDeviceName("od"));
  EXPECT_FALSE(IsDeviceName("od1"));
  EXPECT_FALSE(IsDeviceName("odaaa"));
  EXPECT_TRUE(IsDeviceName("vdb"));
}

TEST(DeviceNames, KeepWhatIsGivenAndFillTheGaps) {
  Machine machine = MachineWith({"", "oda", "", "vdb"});
  ASSERT_TRUE(AssignDeviceNames(machine).ok());
  EXPECT_EQ(machine.spec.volumes[0].device, "odb");
  EXPECT_EQ(machine.spec.volumes[1].device, "oda");
  EXPECT_EQ(machine.spec.volumes[2].device, "odc");
  EXPECT_EQ(machine.spec.volumes[3].device, "vdb");
}

TEST(DeviceNames, AreStableWhenAssignedAgain) {
  Machine machine = MachineWith({"", ""});
  ASSERT_TRUE(AssignDeviceNames(machine).ok());
  machine.spec.volumes.erase(machine.spec.volumes.begin());
  machine.spec.volumes.push_back({.name = "new"});
  ASSERT_TRUE(AssignDeviceNames(machine).ok());
  EXPECT_EQ(machine.spec.volumes[0].device, "odb");
  EXPECT_EQ(machine.spec.volumes[1].device, "oda");
}

TEST(DeviceNames, RunOutAndLeaveTheMachineAsItWas) {
  Machine machine = MachineWith(std::vector<std::string>(kDeviceNamesMax + 1));
  const Status status = AssignDeviceNames(machine);
  EXPECT_TRUE(status.Is(Reason::kInvalid)) << status;
  ASSERT_EQ(status.causes().size(), 1U);
  EXPECT_EQ(status.causes()[0].field, "spec.volumes");
  EXPECT_EQ(machine.spec.volumes[0].device, std::nullopt);
}

}  // namespace
}  // namespace berth::apis::compute
