// SPDX-License-Identifier: Apache-2.0
// Flags make the host that they say, or an error that says how to write them.
#include "app/runtime/fake_runtime_options.h"

#include <gtest/gtest.h>

namespace berth::app {
namespace {

TEST(FakeRuntimeOptions, ReadsClasses) {
  const auto small = ParseMachineClass("small:2:4Gi");
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->name, "small");
  EXPECT_EQ(ToResourceVector(*small),
            (iri::ResourceVector{{"cpu", 2000}, {"memory", int64_t{4} << 30}}));
  for (const std::string text : {"small", "small:1", ":1:1Gi", "small:x:1Gi", "small:1:-1"}) {
    EXPECT_EQ(ParseMachineClass(text).status().reason(), Reason::kBadRequest) << text;
  }
}

TEST(FakeRuntimeOptions, ReadsFaultsAndLies) {
  runtime::FakeFaults faults;
  EXPECT_EQ(ParseFault("create-answer=0.25", faults), OkStatus());
  EXPECT_EQ(ParseFault("crash=3", faults), OkStatus());
  EXPECT_EQ(faults.create_answer_lost, 0.25);
  EXPECT_EQ(faults.crashes_per_hour, 3);
  for (const std::string text : {"create=2", "create=x", "nonsense=1", "create=-1", "create=nan"}) {
    EXPECT_EQ(ParseFault(text, faults).reason(), Reason::kBadRequest) << text;
  }
  runtime::FakeLies lies;
  EXPECT_EQ(ParseLie("duplicates", lies), OkStatus());
  EXPECT_EQ(ParseLie("capacity=2.5", lies), OkStatus());
  EXPECT_TRUE(lies.creates_duplicates);
  EXPECT_EQ(lies.capacity_factor, 2.5);
  EXPECT_EQ(ParseLie("truth", lies).reason(), Reason::kBadRequest);
}

TEST(FakeRuntimeOptions, AFolderStandsForOneSocketPerKind) {
  const auto all = FakeSockets("/run/berth");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].path, "/run/berth/iri-machineprovider.sock");
  EXPECT_EQ(all[1].path, "/run/berth/iri-volumeprovider.sock");
  EXPECT_EQ(all[2].path, "/run/berth/iri-bucketprovider.sock");
  const auto one = FakeSockets("/run/x.sock");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].serves, FakeSocket::Serves::kAll);
}

}  // namespace
}  // namespace berth::app
