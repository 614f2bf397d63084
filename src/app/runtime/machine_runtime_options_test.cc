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

TEST(MachineRuntimeOptions, TheLogOfAConsoleHasABound) {
  EXPECT_EQ(CheckConsoleLogMax(256 << 10), OkStatus());
  EXPECT_EQ(CheckConsoleLogMax(1 << 30), OkStatus());
  for (const int64_t bytes : {int64_t{0}, int64_t{(256 << 10) - 1}, (int64_t{1} << 30) + 1}) {
    const Status refused = CheckConsoleLogMax(bytes);
    EXPECT_EQ(refused.reason(), Reason::kBadRequest) << bytes;
    EXPECT_TRUE(refused.message().contains("--console-log-max " + std::to_string(bytes)))
        << refused;
  }
}

TEST(MachineRuntimeOptions, ClassesMayCountAnything) {
  iri::ResourceVector total = {{"cpu", 4000}};
  EXPECT_EQ(AddResource("gpu=2", total), OkStatus());
  EXPECT_EQ(total, (iri::ResourceVector{{"cpu", 4000}, {"gpu", 2}}));
  for (const std::string text :
       {"gpu", "=2", "gpu=", "gpu=-1", "gpu=1.5", "gpu=2000000000000", "gpu=1", "cpu=4"}) {
    const Status refused = AddResource(text, total);
    EXPECT_EQ(refused.reason(), Reason::kBadRequest) << text;
    EXPECT_NE(refused.message().find(text), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace berth::app
