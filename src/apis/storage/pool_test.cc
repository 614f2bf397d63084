// SPDX-License-Identifier: Apache-2.0
// Defends the rules and columns of VolumePool and BucketPool.
#include <gtest/gtest.h>

#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume_pool.h"
#include "apis/testing/rules_of.h"

namespace berth::apis::storage {
namespace {

using References = std::vector<core::LocalObjectReference>;

template <class T>
struct PoolTraits;
template <>
struct PoolTraits<VolumePool> {
  static References& Classes(VolumePool& pool) { return pool.status.available_volume_classes; }
  static constexpr std::string_view kField = "status.availableVolumeClasses";
  static constexpr std::string_view kColumn = "VolumeClasses";
};
template <>
struct PoolTraits<BucketPool> {
  static References& Classes(BucketPool& pool) { return pool.status.available_bucket_classes; }
  static constexpr std::string_view kField = "status.availableBucketClasses";
  static constexpr std::string_view kColumn = "BucketClasses";
};

template <class T>
class StoragePool : public ::testing::Test {
 public:
  static T Valid() {
    return testing::Parse<T>(R"({"metadata": {"name": "p"}, "spec": {"providerID": "a://1"}})");
  }
  static T Announced() {
    T pool = Valid();
    PoolTraits<T>::Classes(pool) = {{"c"}};
    return pool;
  }
};
using Pools = ::testing::Types<VolumePool, BucketPool>;
TYPED_TEST_SUITE(StoragePool, Pools);

TYPED_TEST(StoragePool, ValidatesTaints) {
  testing::ExpectRules<TypeParam>(
      this->Valid(),
      {
          {"a taint", [](auto& pool) { pool.spec.taints = {{"a", "b", "NoExecute"}}; }, {}},
          {"unknown effect",
           [](auto& pool) { pool.spec.taints = {{"a", "", "NoEntry"}}; },
           {"NotSupported spec.taints[0].effect"}},
          {"bad key",
           [](auto& pool) { pool.spec.taints = {{"a b", "", "NoSchedule"}}; },
           {"Invalid spec.taints[0].key"}},
          {"unknown state",
           [](auto& pool) { pool.status.state = "Ready"; },
           {"NotSupported status.state"}},
      });
}

TYPED_TEST(StoragePool, D16_MayBeCorrectedUntilItIsAnnounced) {
  testing::ExpectUpdateRules<TypeParam>(
      this->Valid(),
      {{"another provider", [](auto& pool) { pool.spec.provider_id = "b://1"; }, {}}});
  testing::ExpectUpdateRules<TypeParam>(this->Announced(),
                                        {{"another provider",
                                          [](auto& pool) { pool.spec.provider_id = "b://1"; },
                                          {"Forbidden spec.providerID"}}});
}

TYPED_TEST(StoragePool, ValidatesItsClasses) {
  const std::string field(PoolTraits<TypeParam>::kField);
  testing::ExpectStatusRules<TypeParam>(
      this->Announced(),
      {
          {"twice",
           [](auto& pool) { PoolTraits<TypeParam>::Classes(pool).push_back({"c"}); },
           {"Duplicate " + field + "[1].name"}},
          {"without name",
           [](auto& pool) { PoolTraits<TypeParam>::Classes(pool).push_back({""}); },
           {"Required " + field + "[1].name"}},
      });
}

TYPED_TEST(StoragePool, ShowsItsClassesSorted) {
  TypeParam pool = this->Valid();
  const meta::KindInfo& kind = BerthKind(meta::Tag<TypeParam>{});
  EXPECT_EQ(testing::CellOf(kind, PoolTraits<TypeParam>::kColumn, &pool), "<none>");
  PoolTraits<TypeParam>::Classes(pool) = {{"b"}, {"a"}};
  EXPECT_EQ(testing::CellOf(kind, PoolTraits<TypeParam>::kColumn, &pool), "a,b");
}

TEST(VolumePool, ValidatesCapacityAndConditions) {
  testing::ExpectStatusRules<VolumePool>(
      StoragePool<VolumePool>::Announced(),
      {
          {"negative capacity",
           [](auto& pool) { pool.status.capacity["class/volume.c"] = meta::Quantity(-1); },
           {"Invalid status.capacity[class/volume.c]"}},
          {"negative allocatable",
           [](auto& pool) { pool.status.allocatable["class/volume.c"] = meta::Quantity(-1); },
           {"Invalid status.allocatable[class/volume.c]"}},
          {"condition twice",
           [](auto& pool) { pool.status.conditions = {{.type = "A"}, {.type = "A"}}; },
           {"Duplicate status.conditions[1].type"}},
      });
}

}  // namespace
}  // namespace berth::apis::storage
