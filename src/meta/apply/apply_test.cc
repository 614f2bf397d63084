// SPDX-License-Identifier: Apache-2.0
#include "meta/apply/apply.h"

#include <gtest/gtest.h>

#include "meta/apply/apply_world.h"
#include "meta/apply/fields_v1.h"
#include "meta/apply/trees.h"
#include "meta/json.h"

namespace berth::meta {
namespace {

using testing::Json;
using testing::Text;
using testing::widget_type;
using testing::World;

TEST(FieldsOf, StatesLeavesKeysItemsAndWhatIsEmpty) {
  struct Test {
    std::string_view configuration;
    std::string_view fields;
  };
  constexpr Test kTests[] = {
      {R"({"spec":{"power":"On"}})", R"({"f:spec":{"f:power":{}}})"},
      {R"({"spec":{"disks":[{"name":"a","size":"1Gi"}]}})",
       R"({"f:spec":{"f:disks":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:size":{}}}}})"},
      // Atomic: a struct, a list, any JSON.
      {R"({"spec":{"poolRef":{"name":"a"},"ips":["10.0.0.1"],"extra":{"a":{"b":1}}}})",
       R"({"f:spec":{"f:extra":{},"f:ips":{},"f:poolRef":{}}})"},
      {R"({"spec":{"tags":["x","y"]}})", R"({"f:spec":{"f:tags":{"v:\"x\"":{},"v:\"y\"":{}}}})"},
      {R"({"metadata":{"labels":{"a":"b"},"annotations":{}}})",
       R"({"f:metadata":{"f:annotations":{},"f:labels":{"f:a":{}}}})"},
      {R"({"spec":{"selector":null,"disks":null,"replicas":0}})",
       R"({"f:spec":{"f:disks":{},"f:replicas":{},"f:selector":{}}})"},
      {R"({"spec":{"resources":{"cpu":"1"},"policy":"x"}})",
       R"({"f:spec":{"f:policy":{},"f:resources":{"f:cpu":{}}}})"},
  };
  for (const auto& test : kTests) {
    const auto fields = FieldsOf(widget_type, Json(test.configuration));
    ASSERT_TRUE(fields.ok()) << fields.status();
    EXPECT_EQ(Text(*fields), test.fields) << test.configuration;
  }
}

TEST(FieldsOf, ItemsThatCannotBeToldApartAreRefused) {
  const auto without_key = FieldsOf(widget_type, Json(R"({"spec":{"disks":[{"size":"1"}]}})"));
  EXPECT_EQ(without_key.status().message(), ".spec.disks: item 0 lacks its key name");
  const auto twice = FieldsOf(widget_type, Json(R"({"spec":{"tags":["x","x"]}})"));
  EXPECT_EQ(twice.status().message(), R"(.spec.tags: two items are [="x"])");
}

TEST(Compare, TellsWhatCameWentAndChanged) {
  const auto differences = Compare(
      widget_type,
      Json(R"({"spec":{"power":"On","disks":[{"name":"a","size":"1Gi"},{"name":"b"}],)"
           R"("resources":{"cpu":"1"},"poolRef":{"name":"p"},"tags":["x"]}})"),
      Json(R"({"spec":{"power":"Off","disks":[{"name":"c"},{"name":"a","size":"1024Mi"}],)"
           R"("resources":{"cpu":"1000m","memory":"1"},"poolRef":{"name":"q"},"selector":{}}})"));
  EXPECT_EQ(Text(differences.added),
            R"({"f:spec":{"f:disks":{"k:{\"name\":\"c\"}":{".":{},"f:name":{}}},"f:resources":)"
            R"({"f:memory":{}},"f:selector":{}}})");
  EXPECT_EQ(Text(differences.modified), R"({"f:spec":{"f:poolRef":{},"f:power":{}}})");
  EXPECT_EQ(Text(differences.removed),
            R"({"f:spec":{"f:disks":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}},"f:tags":)"
            R"({".":{},"v:\"x\"":{}}}})");
}

TEST(Merge, KeepsWhatMeansTheSameAndTheOrderThatIsWanted) {
  const Value merged =
      Merge(widget_type,
            Json(R"({"spec":{"disks":[{"name":"a","size":"1Gi"},{"name":"x"},{"name":"b"}],)"
                 R"("resources":{"cpu":"1"}}})"),
            Json(R"({"spec":{"disks":[{"name":"b","device":"odb"},{"name":"n"},)"
                 R"({"name":"a","size":"1024Mi"}],"resources":{"cpu":"1000m"}}})"));
  EXPECT_EQ(
      WriteJson(merged),
      R"({"spec":{"disks":[{"name":"b","device":"odb"},{"name":"n"},{"name":"a","size":"1Gi"},)"
      R"({"name":"x"}],"resources":{"cpu":"1"}}})");
}

TEST(Apply, OwnsWhatItSaysAndRemovesWhatItNoLongerSays) {
  World world;
  ASSERT_TRUE(world.Apply("me", R"({"spec":{"power":"Off","tags":["a","b"]}})").ok());
  EXPECT_EQ(world.Owned("me"), R"({"f:spec":{"f:power":{},"f:tags":{"v:\"a\"":{},"v:\"b\"":{}}}})");
  world.Update("other",
               R"({"spec":{"power":"Off","tags":["a","b","c"],"replicas":3},"status":{}})");
  ASSERT_TRUE(world.Apply("me", R"({"spec":{"tags":["b"]}})").ok());
  EXPECT_EQ(world.SpecText(), R"({"replicas":3,"tags":["b","c"]})");
  EXPECT_EQ(world.Owned("other", ManagerOperation::kUpdate),
            R"({"f:spec":{"f:replicas":{},"f:tags":{"v:\"c\"":{}}}})");
}

TEST(Apply, AConflictNamesFieldAndManagerAsKubernetesDoes) {
  World world;
  ASSERT_TRUE(world.Apply("first", R"({"spec":{"power":"On"}})").ok());
  world.Update("kubectl-edit",
               R"({"spec":{"power":"On","disks":[{"name":"a","size":"1Gi"}]},"status":{}})");
  const Status one = world.Apply("second", R"({"spec":{"power":"Off"}})");
  EXPECT_TRUE(one.Is(Reason::kConflict));
  EXPECT_EQ(one.message(), R"(Apply failed with 1 conflict: conflict with "first": .spec.power)");
  const Status two =
      world.Apply("second", R"({"spec":{"power":"Off","disks":[{"name":"a","size":"2Gi"}]}})");
  EXPECT_EQ(two.message(),
            "Apply failed with 2 conflicts: conflicts with \"first\":\n- .spec.power\n"
            "conflicts with \"kubectl-edit\" using test/v1:\n- .spec.disks[name=\"a\"].size");
  ASSERT_EQ(two.causes().size(), 2);
  EXPECT_EQ(two.causes()[1].field, R"(.spec.disks[name="a"].size)");
  EXPECT_EQ(two.causes()[1].message, R"(conflict with "kubectl-edit" using test/v1)");
  EXPECT_EQ(world.SpecText(), R"({"power":"On","disks":[{"name":"a","size":"1Gi"}]})");
}

TEST(Apply, ForceTakesTheFieldFromItsOwner) {
  World world;
  ASSERT_TRUE(world.Apply("first", R"({"spec":{"power":"On","replicas":1}})").ok());
  ASSERT_TRUE(world.Apply("second", R"({"spec":{"power":"Off"}})", Conflicts::kForced).ok());
  EXPECT_EQ(world.Owned("first"), R"({"f:spec":{"f:replicas":{}}})");
  EXPECT_EQ(world.Owned("second"), R"({"f:spec":{"f:power":{}}})");
  EXPECT_TRUE(world.SpecText().starts_with(R"({"power":"Off")")) << world.SpecText();
}

TEST(Apply, WhoSaysTheSameSharesAndWhoLeavesRemovesNothing) {
  World world;
  ASSERT_TRUE(world.Apply("first", R"({"spec":{"resources":{"cpu":"1"}}})").ok());
  ASSERT_TRUE(world.Apply("second", R"({"spec":{"resources":{"cpu":"1000m"}}})").ok());
  EXPECT_EQ(world.Owned("first"), world.Owned("second"));
  EXPECT_TRUE(world.Apply("second", R"({"spec":{"resources":{"cpu":"2"}}})").Is(Reason::kConflict));
  ASSERT_TRUE(world.Apply("first", "{}").ok());
  EXPECT_EQ(world.Owned("first"), "");
  EXPECT_NE(world.SpecText().find(R"("cpu":"1")"), std::string::npos) << world.SpecText();
  ASSERT_TRUE(world.Apply("second", "{}").ok());
  EXPECT_EQ(world.SpecText().find("cpu"), std::string::npos) << world.SpecText();
}

TEST(Apply, AnItemGoesWithItsOwnerUnlessAnotherApplierNeedsIt) {
  World world;
  ASSERT_TRUE(world.Apply("first", R"({"spec":{"disks":[{"name":"a","size":"1"}]}})").ok());
  ASSERT_TRUE(world.Apply("second", R"({"spec":{"disks":[{"name":"a","device":"odx"}]}})").ok());
  ASSERT_TRUE(world.Apply("first", "{}").ok());
  EXPECT_EQ(WriteJson(*world.tree.Get({"spec", "disks"})), R"([{"name":"a","device":"odx"}])");
  ASSERT_TRUE(world.Apply("second", "{}").ok());
  EXPECT_EQ(world.tree.Get({"spec", "disks"}), nullptr);
}

TEST(Apply, SubresourcesHaveSetsOfTheirOwn) {
  World world;
  ASSERT_TRUE(world.Apply("me", R"({"spec":{"power":"On"}})").ok());
  ASSERT_TRUE(
      world.Apply("me", Json(R"({"status":{"state":"Ready"}})"), Conflicts::kRefused, "status")
          .ok());
  EXPECT_EQ(world.Owned("me", ManagerOperation::kApply, "status"),
            R"({"f:status":{"f:state":{}}})");
  EXPECT_EQ(world.Owned("me"), R"({"f:spec":{"f:power":{}}})");
  ASSERT_TRUE(world.Apply("me", "{}").ok());
  EXPECT_NE(world.tree.Get({"status", "state"}), nullptr);
}

TEST(Apply, WhatIsTheServersOwnBelongsToNobody) {
  World world;
  ASSERT_TRUE(
      world.Apply("me", R"({"metadata":{"name":"a","creationTimestamp":null,"labels":{"a":"b"}}})")
          .ok());
  EXPECT_EQ(world.Owned("me"), R"({"f:metadata":{"f:labels":{"f:a":{}}}})");
}

TEST(Apply, TheTimeOfAnEntryChangesOnlyWithTheObject) {
  World world;
  ASSERT_TRUE(world.Apply("me", R"({"spec":{"replicas":1}})").ok());
  const auto time = world.managers.begin()->second.time;
  ASSERT_TRUE(world.Apply("me", R"({"spec":{"replicas":1}})").ok());
  EXPECT_EQ(world.managers.begin()->second.time, time);
  ASSERT_TRUE(world.Apply("me", R"({"spec":{"replicas":2}})").ok());
  EXPECT_GT(world.managers.begin()->second.time, time);
}

TEST(Apply, ManagersAreBounded) {
  World world;
  for (size_t i = 0; i < kMaxApplyManagers; ++i) {
    ASSERT_TRUE(world.Apply("m" + std::to_string(i), R"({"spec":{"replicas":1}})").ok());
  }
  EXPECT_TRUE(world.Apply("more", R"({"spec":{"replicas":1}})").Is(Reason::kRequestTooLarge));
  std::vector<Value::Member> many;
  for (size_t i = 0; i <= kMaxOwnedFields; ++i) many.push_back({"k" + std::to_string(i), "v"});
  Value labels = Json(R"({"metadata":{}})");
  labels.Find("metadata")->Set("labels", Value::Object(std::move(many)));
  EXPECT_TRUE(FieldsOf(widget_type, labels).status().Is(Reason::kRequestTooLarge));
}

TEST(RecordUpdate, ANewObjectBelongsToItsCreator) {
  World world;
  world.Update("kubectl-create",
               R"({"metadata":{"name":"a","uid":"u","labels":{"x":"y"}},"spec":{"power":"On",)"
               R"("disks":[{"name":"a"}]},"status":{"state":"Ready"}})");
  EXPECT_EQ(world.Owned("kubectl-create", ManagerOperation::kUpdate),
            R"({"f:metadata":{"f:labels":{".":{},"f:x":{}}},"f:spec":{"f:disks":{".":{},)"
            R"("k:{\"name\":\"a\"}":{".":{},"f:name":{}}},"f:power":{}}})");
}

TEST(RecordUpdate, TakesWhatItChangesFromAllOthers) {
  World world;
  ASSERT_TRUE(world.Apply("first", R"({"spec":{"power":"On","replicas":1}})").ok());
  world.Update("edit", R"({"spec":{"power":"Off"},"status":{}})");
  EXPECT_EQ(world.Owned("first"), "");
  EXPECT_EQ(world.Owned("edit", ManagerOperation::kUpdate), R"({"f:spec":{"f:power":{}}})");
  world.Update("edit", R"({"spec":{"power":"Off"},"status":{"state":"Ready"}})", "status");
  EXPECT_EQ(world.Owned("edit", ManagerOperation::kUpdate, "status"),
            R"({"f:status":{"f:state":{}}})");
}

TEST(RecordUpdate, OldUpdatesBecomeOneEntry) {
  World world;
  for (int i = 0; i < 30; ++i) {
    Value labels = Value::Object();
    for (int k = 0; k <= i; ++k) labels.Set("k" + std::to_string(k), "v");
    Value next = Json(R"({"metadata":{}})");
    next.Find("metadata")->Set("labels", std::move(labels));
    world.Update("m" + std::to_string(i), WriteJson(next));
    ASSERT_LE(world.managers.size(), kMaxUpdateManagers);
  }
  EXPECT_NE(world.Owned(kAncientManager, ManagerOperation::kUpdate).find("f:k20"),
            std::string::npos);
  EXPECT_EQ(world.Owned("m20", ManagerOperation::kUpdate), "");
  EXPECT_NE(world.Owned("m29", ManagerOperation::kUpdate), "");
}

TEST(ManagedFields, RoundTripInKubernetesOrder) {
  World world;
  world.Update("edit", R"({"spec":{"power":"Off"},"status":{}})");
  ASSERT_TRUE(world.Apply("me", R"({"spec":{"replicas":1}})").ok());
  const auto entries = WriteManagers(world.managers, "test/v1");
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[0].operation, "Apply");
  EXPECT_EQ(entries[1].manager, "edit");
  EXPECT_EQ(entries[1].fields_type, "FieldsV1");
  const auto read = ReadManagers(entries);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(WriteManagers(*read, "test/v1"), entries);
}

TEST(ManagedFields, MalformedEntriesAreRefused) {
  const ManagedFieldsEntry good{.manager = "m",
                                .operation = "Update",
                                .api_version = "v1",
                                .fields_type = "FieldsV1",
                                .fields_v1 = {R"({"f:a":{}})"}};
  EXPECT_TRUE(ReadManagers({good}).ok());
  ManagedFieldsEntry bad = good;
  bad.operation = "Delete";
  EXPECT_FALSE(ReadManagers({bad}).ok());
  bad = good;
  bad.fields_type = "FieldsV2";
  EXPECT_FALSE(ReadManagers({bad}).ok());
  bad = good;
  bad.fields_v1.text = R"({"a":{}})";
  EXPECT_FALSE(ReadManagers({bad}).ok());
  bad = good;
  bad.manager = std::string(kMaxManagerName + 1, 'x');
  EXPECT_FALSE(ReadManagers({bad}).ok());
  EXPECT_TRUE(IsReset({ManagedFieldsEntry{}}));
  EXPECT_FALSE(IsReset({good}));
  EXPECT_FALSE(IsReset({}));
}

}  // namespace
}  // namespace berth::meta
