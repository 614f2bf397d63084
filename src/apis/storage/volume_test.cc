// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of Volume, and what its class lets happen to its size.
#include "apis/storage/volume.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::storage {
namespace {

using testing::CellOf;
using testing::Parse;

Volume Valid() {
  return Parse<Volume>(R"({
    "apiVersion": "storage.ironcore.dev/v1alpha1", "kind": "Volume",
    "metadata": {"name": "v", "namespace": "ns"},
    "spec": {
      "volumeClassRef": {"name": "fast"}, "volumePoolSelector": {"zone": "a"},
      "resources": {"storage": "10Gi"}, "tolerations": [{"key": "a", "operator": "Exists"}],
      "encryption": {"secretRef": {"name": "key"}},
      "dataSource": {"osImage": {"image": "os", "architecture": "amd64"}}}})");
}

TEST(Volume, StartsPending) { EXPECT_EQ(testing::WithDefaults(Valid()).status.state, "Pending"); }

TEST(Volume, HasRules) {
  testing::ExpectRules<Volume>(
      Valid(),
      {
          {"bad class",
           [](auto& v) { v.spec.volume_class_ref = {"A b"}; },
           {"Invalid spec.volumeClassRef.name"}},
          {"class without name",
           [](auto& v) { v.spec.volume_class_ref = {""}; },
           {"Required spec.volumeClassRef.name"}},
          {"bad pool",
           [](auto& v) { v.spec.volume_pool_ref = {"A b"}; },
           {"Invalid spec.volumePoolRef.name"}},
          {"bad selector",
           [](auto& v) { v.spec.volume_pool_selector = {{"a", "b c"}}; },
           {"Invalid spec.volumePoolSelector"}},
          {"no size",
           [](auto& v) { v.spec.resources.clear(); },
           {"Required spec.resources[storage]"}},
          {"no room",
           [](auto& v) { v.spec.resources["storage"] = meta::Quantity(0); },
           {"Invalid spec.resources[storage]"}},
          {"bad toleration",
           [](auto& v) { v.spec.tolerations = {{"", "Equal", "", ""}}; },
           {"Invalid spec.tolerations[0].operator"}},
          {"claimed", [](auto& v) { v.spec.claim_ref = {"m", "1"}; }, {}},
          {"claim without name",
           [](auto& v) { v.spec.claim_ref = {"", "1"}; },
           {"Required spec.claimRef.name"}},
          {"claimed and unclaimable",
           [](auto& v) {
             v.spec.claim_ref = {"m", "1"};
             v.spec.unclaimable = true;
           },
           {"Forbidden spec.claimRef"}},
          {"no key",
           [](auto& v) { v.spec.encryption->secret_ref.name = ""; },
           {"Required spec.encryption.secretRef"}},
          {"two data sources",
           [](auto& v) { v.spec.data_source->volume_snapshot_ref = {"s"}; },
           {"Forbidden spec.dataSource.osImage"}},
          {"no image",
           [](auto& v) { v.spec.data_source->os_image->image = ""; },
           {"Required spec.dataSource.osImage.image"}},
          {"bad snapshot",
           [](auto& v) { v.spec.data_source = {.volume_snapshot_ref = {{"A b"}}}; },
           {"Invalid spec.dataSource.volumeSnapshotRef.name"}},
          {"a copy", [](auto& v) { v.spec.data_source = {.volume_ref = {{"w"}}}; }, {}},
          {"a copy of no name",
           [](auto& v) { v.spec.data_source = {.volume_ref = {{"A b"}}}; },
           {"Invalid spec.dataSource.volumeRef.name"}},
          {"a copy of itself",
           [](auto& v) { v.spec.data_source = {.volume_ref = {{"v"}}}; },
           {"Invalid spec.dataSource.volumeRef.name"}},
          {"a copy of an image",
           [](auto& v) { v.spec.data_source->volume_ref = {"w"}; },
           {"Forbidden spec.dataSource.volumeRef"}},
          {"a copy of a snapshot",
           [](auto& v) {
             v.spec.data_source = {.volume_snapshot_ref = {{"s"}}, .volume_ref = {{"w"}}};
           },
           {"Forbidden spec.dataSource.volumeRef"}},
      });
}

TEST(Volume, WithoutClassAsksNothingOfAPool) {
  testing::ExpectRules<Volume>(Parse<Volume>(R"({"metadata": {"name": "v"}, "spec": {}})"),
                               {
                                   {"everything",
                                    [](auto& v) {
                                      v.spec = Valid().spec;
                                      v.spec.volume_class_ref.reset();
                                      v.spec.volume_pool_ref = {"p"};
                                    },
                                    {"Forbidden spec.dataSource.osImage",
                                     "Forbidden spec.resources",
                                     "Forbidden spec.tolerations",
                                     "Forbidden spec.volumePoolRef",
                                     "Forbidden spec.volumePoolSelector"}},
                               });
}

TEST(Volume, WithoutClassIsACopyOfNothing) {
  testing::ExpectRules<Volume>(Parse<Volume>(R"({"metadata": {"name": "v"}, "spec": {}})"),
                               {{"a copy",
                                 [](auto& v) { v.spec.data_source = {.volume_ref = {{"w"}}}; },
                                 {"Forbidden spec.dataSource.volumeRef"}}});
}

TEST(Volume, KeepsItsSourceFromItsPlaceUntilItIsThere) {
  Volume copy = Valid();
  EXPECT_FALSE(IsBeingCopiedFrom(copy, "w")) << "it begins with an image";
  copy.spec.data_source = {.volume_ref = {{"w"}}};
  EXPECT_FALSE(IsBeingCopiedFrom(copy, "w")) << "it has no place";
  copy.status.placement.emplace().pool_uid = "p";
  EXPECT_TRUE(IsBeingCopiedFrom(copy, "w"));
  EXPECT_FALSE(IsBeingCopiedFrom(copy, "x"));
  copy.status.state = "Error";
  EXPECT_TRUE(IsBeingCopiedFrom(copy, "w")) << "it is tried again";
  copy.status.state = "Available";
  EXPECT_FALSE(IsBeingCopiedFrom(copy, "w"));
}

TEST(Volume, KeepsClassPoolAndKey) {
  Volume bound = Valid();
  bound.spec.volume_pool_ref = {"p"};
  testing::ExpectUpdateRules<Volume>(
      bound,
      {
          {"another class",
           [](auto& v) { v.spec.volume_class_ref = {"slow"}; },
           {"Forbidden spec.volumeClassRef"}},
          {"no class",
           [](auto& v) { v.spec.volume_class_ref.reset(); },
           {"Forbidden spec.volumeClassRef"}},
          {"another pool",
           [](auto& v) { v.spec.volume_pool_ref = {"q"}; },
           {"Forbidden spec.volumePoolRef"}},
          {"another key",
           [](auto& v) { v.spec.encryption->secret_ref.name = "other"; },
           {"Forbidden spec.encryption"}},
          {"no key", [](auto& v) { v.spec.encryption.reset(); }, {"Forbidden spec.encryption"}},
          {"claimed", [](auto& v) { v.spec.claim_ref = {"m", "1"}; }, {}},
          {"another size", [](auto& v) { v.spec.resources["storage"] = meta::Quantity(1); }, {}},
      });
  testing::ExpectUpdateRules<Volume>(
      Valid(), {{"bound", [](auto& v) { v.spec.volume_pool_ref = {"p"}; }, {}}});
}

TEST(Volume, ValidatesItsStatus) {
  testing::ExpectStatusRules<Volume>(
      Valid(),
      {
          {"condition twice",
           [](auto& v) { v.status.conditions = {{.type = "A"}, {.type = "A"}}; },
           {"Duplicate status.conditions[1].type"}},
          {"negative size",
           [](auto& v) { v.status.resources["storage"] = meta::Quantity(-1); },
           {"Invalid status.resources[storage]"}},
          {"bad secret",
           [](auto& v) {
             v.status.access = {.secret_ref = {{"A b"}}, .driver = "d", .handle = "h"};
           },
           {"Invalid status.access.secretRef.name"}},
      });
}

struct ExpansionCase {
  std::string_view before;
  std::string_view now;
  std::string_view policy;
  bool is_allowed;
};

TEST(VolumeExpansion, IsUpToTheClass) {
  const ExpansionCase cases[] = {
      {"1Gi", "1Gi", "Static", true},
      {"1Gi", "1024Mi", "Static", true},
      {"1Gi", "2Gi", "Static", false},
      {"2Gi", "1Gi", "Static", false},
      {"1Gi", "2Gi", "", false},
      {"1Gi", "2Gi", "ExpandOnly", true},
      {"2Gi", "1Gi", "ExpandOnly", false},
      {"2Gi", "2Gi", "ExpandOnly", true},
  };
  for (const ExpansionCase& row : cases) {
    Volume before = Valid();
    Volume now = before;
    before.spec.resources["storage"] = *meta::Quantity::Parse(row.before);
    now.spec.resources["storage"] = *meta::Quantity::Parse(row.now);
    EXPECT_EQ(RefuseResize(now, before, row.policy).empty(), row.is_allowed)
        << row.before << " " << row.now << " " << row.policy;
  }
}

TEST(VolumeExpansion, SaysWhatAndWhy) {
  Volume before = Valid();
  Volume now = before;
  now.spec.resources["storage"] = *meta::Quantity::Parse("5Gi");
  EXPECT_EQ(RefuseResize(now, before, "ExpandOnly"),
            "spec.resources[storage] may not shrink from 10Gi to 5Gi, the resize policy of its "
            "class is ExpandOnly");
}

TEST(Volume, ShowsPoolImageClassStateAndSize) {
  Volume volume = Valid();
  EXPECT_EQ(CellOf(kVolumeKind, "VolumePoolRef", &volume), "<none>");
  EXPECT_EQ(CellOf(kVolumeKind, "Image", &volume), "os");
  EXPECT_EQ(CellOf(kVolumeKind, "VolumeClass", &volume), "fast");
  EXPECT_EQ(CellOf(kVolumeKind, "State", &volume), "<unknown>");
  EXPECT_EQ(CellOf(kVolumeKind, "Size", &volume), "10Gi");
  volume.status.resources["storage"] = *meta::Quantity::Parse("12Gi");
  EXPECT_EQ(CellOf(kVolumeKind, "Size", &volume), "12Gi");
  EXPECT_EQ(CellOf(kVolumeKind, "Source", &volume), "<none>");
  volume.spec.data_source = {.volume_snapshot_ref = {{"nightly"}}};
  EXPECT_EQ(CellOf(kVolumeKind, "Source", &volume), "volumesnapshot/nightly");
  volume.spec.data_source = {.volume_ref = {{"golden"}}};
  EXPECT_EQ(CellOf(kVolumeKind, "Source", &volume), "volume/golden");
}

}  // namespace
}  // namespace berth::apis::storage
