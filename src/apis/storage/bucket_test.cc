// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of Bucket and VolumeSnapshot.
#include "apis/storage/bucket.h"

#include <gtest/gtest.h>

#include "apis/storage/volume_snapshot.h"
#include "apis/testing/rules_of.h"

namespace berth::apis::storage {
namespace {

using testing::CellOf;
using testing::Parse;

Bucket Valid() {
  return Parse<Bucket>(R"({
    "metadata": {"name": "b", "namespace": "ns"},
    "spec": {"bucketClassRef": {"name": "c"}, "bucketPoolSelector": {"zone": "a"},
             "tolerations": [{"operator": "Exists"}]}})");
}

TEST(Bucket, HasRules) {
  testing::ExpectRules<Bucket>(Valid(),
                               {
                                   {"bad class",
                                    [](auto& b) { b.spec.bucket_class_ref = {"A b"}; },
                                    {"Invalid spec.bucketClassRef.name"}},
                                   {"bad pool",
                                    [](auto& b) { b.spec.bucket_pool_ref = {""}; },
                                    {"Required spec.bucketPoolRef.name"}},
                                   {"bad selector",
                                    [](auto& b) { b.spec.bucket_pool_selector = {{"a b", ""}}; },
                                    {"Invalid spec.bucketPoolSelector"}},
                                   {"bad toleration",
                                    [](auto& b) { b.spec.tolerations = {{"", "", "v", ""}}; },
                                    {"Invalid spec.tolerations[0].operator"}},
                                   {"without class",
                                    [](auto& b) {
                                      b.spec.bucket_class_ref.reset();
                                      b.spec.bucket_pool_ref = {"p"};
                                    },
                                    {"Forbidden spec.bucketPoolRef",
                                     "Forbidden spec.bucketPoolSelector",
                                     "Forbidden spec.tolerations"}},
                                   {"only known here", [](auto& b) { b.spec = {}; }, {}},
                               });
}

TEST(Bucket, KeepsClassAndPool) {
  Bucket bound = Valid();
  bound.spec.bucket_pool_ref = {"p"};
  testing::ExpectUpdateRules<Bucket>(bound,
                                     {
                                         {"another class",
                                          [](auto& b) { b.spec.bucket_class_ref = {"d"}; },
                                          {"Forbidden spec.bucketClassRef"}},
                                         {"another pool",
                                          [](auto& b) { b.spec.bucket_pool_ref = {"q"}; },
                                          {"Forbidden spec.bucketPoolRef"}},
                                     });
  testing::ExpectUpdateRules<Bucket>(
      Valid(), {{"bound", [](auto& b) { b.spec.bucket_pool_ref = {"p"}; }, {}}});
}

TEST(Bucket, ValidatesItsStatus) {
  testing::ExpectStatusRules<Bucket>(
      Valid(),
      {
          {"condition twice",
           [](auto& b) { b.status.conditions = {{.type = "A"}, {.type = "A"}}; },
           {"Duplicate status.conditions[1].type"}},
          {"bad secret",
           [](auto& b) { b.status.access = {.secret_ref = {{"A b"}}, .endpoint = "e"}; },
           {"Invalid status.access.secretRef.name"}},
      });
}

TEST(Bucket, ShowsPoolClassAndState) {
  const Bucket bucket = testing::WithDefaults(Valid());
  EXPECT_EQ(CellOf(kBucketKind, "BucketPoolRef", &bucket), "<none>");
  EXPECT_EQ(CellOf(kBucketKind, "BucketClass", &bucket), "c");
  EXPECT_EQ(CellOf(kBucketKind, "State", &bucket), "Pending");
}

VolumeSnapshot Snapshot() {
  return Parse<VolumeSnapshot>(
      R"({"metadata": {"name": "s"}, "spec": {"volumeRef": {"name": "v"}}})");
}

TEST(VolumeSnapshot, NamesItsVolumeForGood) {
  testing::ExpectRules<VolumeSnapshot>(
      Snapshot(),
      {
          {"no volume", [](auto& s) { s.spec.volume_ref.name = ""; }, {"Required spec.volumeRef"}},
          {"bad volume",
           [](auto& s) { s.spec.volume_ref.name = "A b"; },
           {"Invalid spec.volumeRef.name"}},
          {"unknown state",
           [](auto& s) { s.status.state = "Gone"; },
           {"NotSupported status.state"}},
      });
  testing::ExpectUpdateRules<VolumeSnapshot>(Snapshot(),
                                             {{"another volume",
                                               [](auto& s) { s.spec.volume_ref.name = "w"; },
                                               {"Forbidden spec.volumeRef"}}});
  testing::ExpectStatusRules<VolumeSnapshot>(Snapshot(),
                                             {{"negative size",
                                               [](auto& s) { s.status.size = meta::Quantity(-1); },
                                               {"Invalid status.size"}}});
}

TEST(VolumeSnapshot, ShowsVolumeAndState) {
  const VolumeSnapshot snapshot = testing::WithDefaults(Snapshot());
  EXPECT_EQ(CellOf(kVolumeSnapshotKind, "VolumeRef", &snapshot), "v");
  EXPECT_EQ(CellOf(kVolumeSnapshotKind, "State", &snapshot), "Pending");
}

}  // namespace
}  // namespace berth::apis::storage
