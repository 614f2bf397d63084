// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of VolumeClass and BucketClass.
#include <gtest/gtest.h>

#include "apis/storage/bucket_class.h"
#include "apis/storage/volume_class.h"
#include "apis/testing/rules_of.h"

namespace berth::apis::storage {
namespace {

template <class T>
class StorageClass : public ::testing::Test {
 public:
  static T Valid() {
    return testing::Parse<T>(
        R"({"metadata": {"name": "c"}, "capabilities": {"tps": "100Mi", "iops": "1k"}})");
  }
};
using Classes = ::testing::Types<VolumeClass, BucketClass>;
TYPED_TEST_SUITE(StorageClass, Classes);

TYPED_TEST(StorageClass, NeedsTpsAndIops) {
  testing::ExpectRules<TypeParam>(
      this->Valid(),
      {
          {"no tps", [](auto& c) { c.capabilities.erase("tps"); }, {"Required capabilities[tps]"}},
          {"no iops",
           [](auto& c) { c.capabilities.erase("iops"); },
           {"Required capabilities[iops]"}},
          {"zero",
           [](auto& c) { c.capabilities["tps"] = meta::Quantity(0); },
           {"Invalid capabilities[tps]"}},
          {"negative",
           [](auto& c) { c.capabilities["iops"] = meta::Quantity(-1); },
           {"Invalid capabilities[iops]"}},
      });
}

TYPED_TEST(StorageClass, KeepsItsCapabilities) {
  testing::ExpectUpdateRules<TypeParam>(
      this->Valid(),
      {{"more",
        [](auto& c) { c.capabilities["iops"] = meta::Quantity(5); },
        {"Forbidden capabilities"}}});
}

TYPED_TEST(StorageClass, ShowsTpsAndIops) {
  const TypeParam object = this->Valid();
  const meta::KindInfo& kind = BerthKind(meta::Tag<TypeParam>{});
  EXPECT_EQ(testing::CellOf(kind, "TPS", &object), "100Mi");
  EXPECT_EQ(testing::CellOf(kind, "IOPS", &object), "1k");
}

TEST(VolumeClass, IsStaticUnlessItSaysOtherwise) {
  const VolumeClass valid = StorageClass<VolumeClass>::Valid();
  EXPECT_EQ(testing::WithDefaults(valid).resize_policy, "Static");
  testing::ExpectRules<VolumeClass>(valid,
                                    {{"unknown policy",
                                      [](auto& c) { c.resize_policy = "Shrink"; },
                                      {"NotSupported resizePolicy"}}});
  testing::ExpectUpdateRules<VolumeClass>(
      valid, {{"another policy", [](auto& c) { c.resize_policy = "ExpandOnly"; }, {}}});
}

}  // namespace
}  // namespace berth::apis::storage
