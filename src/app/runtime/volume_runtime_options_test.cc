// SPDX-License-Identifier: Apache-2.0
// Flags make the volume host that they say, or an error that says how to write them.
#include "app/runtime/volume_runtime_options.h"

#include <gtest/gtest.h>

#include "app/runtime/runtime_flags.h"

namespace berth::app {
namespace {

TEST(VolumeRuntimeOptions, ARatioOfOvercommitIsFromOneToAHundred) {
  EXPECT_EQ(*ParseOvercommit("1"), 1.0);
  EXPECT_EQ(*ParseOvercommit("1.5"), 1.5);
  for (const std::string text : {"", "0.9", "101", "x", "1.5x", "nan", "-1"}) {
    EXPECT_EQ(ParseOvercommit(text).status().reason(), Reason::kBadRequest) << text;
  }
}

TEST(VolumeRuntimeOptions, AFolderStandsForTheSocketThatOthersLookFor) {
  EXPECT_EQ(VolumeSocket("/run/berth"), "/run/berth/iri-volumeprovider.sock");
  EXPECT_EQ(VolumeSocket("/run/v.sock"), "/run/v.sock");
}

}  // namespace
}  // namespace berth::app
