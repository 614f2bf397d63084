// SPDX-License-Identifier: Apache-2.0
// Defends the rules and columns of MachineClass.
#include "apis/compute/machine_class.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::compute {
namespace {

MachineClass Valid() {
  return testing::Parse<MachineClass>(R"({
    "apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachineClass",
    "metadata": {"name": "machineclass-sample"}, "capabilities": {"cpu": 4, "memory": "16Gi"}})");
}

TEST(MachineClass, NeedsCpuAndMemory) {
  testing::ExpectRules<MachineClass>(
      Valid(),
      {
          {"no cpu", [](auto& c) { c.capabilities.erase("cpu"); }, {"Required capabilities[cpu]"}},
          {"no memory",
           [](auto& c) { c.capabilities.erase("memory"); },
           {"Required capabilities[memory]"}},
          {"nothing",
           [](auto& c) { c.capabilities.clear(); },
           {"Required capabilities[cpu]", "Required capabilities[memory]"}},
          {"zero cpu",
           [](auto& c) { c.capabilities["cpu"] = meta::Quantity(0); },
           {"Invalid capabilities[cpu]"}},
          {"negative memory",
           [](auto& c) { c.capabilities["memory"] = meta::Quantity(-1); },
           {"Invalid capabilities[memory]"}},
          {"others", [](auto& c) { c.capabilities["nvidia.com/gpu"] = meta::Quantity(0); }, {}},
      });
}

TEST(MachineClass, KeepsItsCapabilities) {
  testing::ExpectUpdateRules<MachineClass>(
      Valid(),
      {
          {"more cpu",
           [](auto& c) { c.capabilities["cpu"] = meta::Quantity(8); },
           {"Forbidden capabilities"}},
          {"another resource",
           [](auto& c) { c.capabilities["gpu"] = meta::Quantity(1); },
           {"Forbidden capabilities"}},
          {"the same amount, written otherwise",
           [](auto& c) { c.capabilities["memory"] = *meta::Quantity::Parse("16384Mi"); },
           {}},
      });
}

TEST(MachineClass, ShowsCpuAndMemory) {
  const MachineClass object = Valid();
  EXPECT_EQ(testing::CellOf(kMachineClassKind, "CPU", &object), "4");
  EXPECT_EQ(testing::CellOf(kMachineClassKind, "Memory", &object), "16Gi");
}

}  // namespace
}  // namespace berth::apis::compute
