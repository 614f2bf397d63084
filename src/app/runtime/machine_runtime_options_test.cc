// SPDX-License-Identifier: Apache-2.0
// Flags make the machine host that they say.
#include "app/runtime/machine_runtime_options.h"

#include <gtest/gtest.h>

namespace berth::app {
namespace {

TEST(MachineRuntimeOptions, AFolderStandsForTheSocketThatOthersLookFor) {
  EXPECT_EQ(MachineSocket("/run/berth"), "/run/berth/iri-machineprovider.sock");
  EXPECT_EQ(MachineSocket("/run/m.sock"), "/run/m.sock");
}

TEST(MachineRuntimeOptions, AHostTellsItsSize) {
  const auto size = HostSizeOf();
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_GE(size->cores, 1);
  EXPECT_GT(size->memory_bytes, 1 << 20);
}

}  // namespace
}  // namespace berth::app
