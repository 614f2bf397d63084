// SPDX-License-Identifier: Apache-2.0
// Defends what holds for any sequence of applies.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/random.h"
#include "meta/apply/apply.h"
#include "meta/apply/apply_world.h"
#include "meta/apply/created.h"
#include "meta/apply/trees.h"
#include "meta/json.h"

namespace berth::meta {
namespace {

using testing::Json;
using testing::Text;
using testing::widget_type;
using testing::World;

// A configuration of some fields; `half` 0 and 1 have none in common.
Value RandomConfiguration(Random& random, int half) {
  Value spec = Value::Object();
  const std::string side = half == 0 ? "a" : "b";
  if (half == 0) {
    if (random.Chance(0.5)) spec.Set("power", random.Chance(0.5) ? "On" : "Off");
    if (random.Chance(0.3)) spec.Set("ratio", static_cast<int64_t>(1 + random.Below(3)));
  } else {
    if (random.Chance(0.5)) spec.Set("replicas", static_cast<int64_t>(random.Below(3)));
    if (random.Chance(0.3)) spec.Set("extra", Json(R"({"x":[1,2]})"));
  }
  Value disks = Value::Array();
  Value tags = Value::Array();
  Value resources = Value::Object();
  for (int i = 0; i < 3; ++i) {
    const std::string name = side + std::to_string(i);
    if (random.Chance(0.5)) {
      Value& disk = disks.Append(Value::Object());
      disk.Set("name", name);
      if (random.Chance(0.5)) disk.Set("size", std::to_string(1 + random.Below(3)));
    }
    if (random.Chance(0.5)) tags.Append(name);
    if (random.Chance(0.5)) resources.Set(name, std::to_string(1 + random.Below(3)));
  }
  if (!disks.items().empty()) spec.Set("disks", std::move(disks));
  if (!tags.items().empty()) spec.Set("tags", std::move(tags));
  if (!resources.members().empty()) spec.Set("resources", std::move(resources));
  Value configuration = Value::Object();
  configuration.Set("spec", std::move(spec));
  return configuration;
}

TEST(ApplyProperties, ApplyingTwiceIsApplyingOnce) {
  Random random(101);
  for (int i = 0; i < 150; ++i) {
    World world;
    ASSERT_TRUE(world.Apply("other", RandomConfiguration(random, 1)).ok());
    ASSERT_TRUE(world.Apply("me", RandomConfiguration(random, 0)).ok());
    const Value configuration = RandomConfiguration(random, 0);
    ASSERT_TRUE(world.Apply("me", configuration).ok());
    const World once = world;
    ASSERT_TRUE(world.Apply("me", configuration).ok());
    ASSERT_EQ(world.tree, once.tree) << WriteJson(configuration);
    ASSERT_EQ(WriteManagers(world.managers, "v1"), WriteManagers(once.managers, "v1"));
  }
}

// As sets of fields: lists may be in another order.
bool SameObject(const Value& a, const Value& b) { return Compare(widget_type, a, b).empty(); }

TEST(ApplyProperties, ManagersOfDifferentFieldsCommute) {
  Random random(103);
  for (int i = 0; i < 150; ++i) {
    const Value a = RandomConfiguration(random, 0);
    const Value b = RandomConfiguration(random, 1);
    World one;
    ASSERT_TRUE(one.Apply("a", a).ok());
    ASSERT_TRUE(one.Apply("b", b).ok());
    World two;
    ASSERT_TRUE(two.Apply("b", b).ok());
    ASSERT_TRUE(two.Apply("a", a).ok());
    ASSERT_TRUE(SameObject(one.tree, two.tree)) << WriteJson(one.tree) << WriteJson(two.tree);
    ASSERT_EQ(one.Owned("a"), two.Owned("a"));
    ASSERT_EQ(one.Owned("b"), two.Owned("b"));
  }
}

TEST(ApplyProperties, WithdrawingRestoresWhatWasThere) {
  Random random(107);
  for (int i = 0; i < 150; ++i) {
    World world;
    ASSERT_TRUE(world.Apply("other", RandomConfiguration(random, 1)).ok());
    const Value before = world.tree;
    for (int n = 0; n < 3; ++n) ASSERT_TRUE(world.Apply("me", RandomConfiguration(random, 0)).ok());
    ASSERT_TRUE(world.Apply("me", Value::Object()).ok());
    ASSERT_TRUE(SameObject(world.tree, before)) << WriteJson(before) << WriteJson(world.tree);
    ASSERT_EQ(world.Owned("me"), "");
  }
}

TEST(ApplyProperties, WhatIsAppliedIsThereAndOwned) {
  Random random(109);
  for (int i = 0; i < 150; ++i) {
    World world;
    for (int n = 0; n < 4; ++n) {
      const std::string manager = random.Chance(0.5) ? "x" : "y";
      const Value configuration = RandomConfiguration(random, static_cast<int>(random.Below(2)));
      const Conflicts conflicts = random.Chance(0.5) ? Conflicts::kForced : Conflicts::kRefused;
      const World before = world;
      const Status status = world.Apply(manager, configuration, conflicts);
      if (!status.ok()) {
        ASSERT_TRUE(status.Is(Reason::kConflict) && conflicts == Conflicts::kRefused) << status;
        continue;
      }
      const auto stated = FieldsOf(widget_type, configuration);
      ASSERT_TRUE(stated.ok());
      ASSERT_EQ(world.Owned(manager), stated->empty() ? "" : Text(*stated));
      // Merging it again would change nothing.
      ASSERT_TRUE(SameObject(Merge(widget_type, world.tree, configuration), world.tree))
          << WriteJson(configuration) << WriteJson(world.tree);
    }
  }
}

// Which is no apply, but must agree with what one finds later.
TEST(ApplyProperties, ACreatorOwnsWhatAnUpdateFromNothingWouldOwn) {
  Random random(113);
  const Value metadata =
      Json(R"({"name":"w","uid":"u","labels":{"b":"1","a":"2"},"finalizers":["z","y"],)"
           R"("ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"o"}]})");
  for (int i = 0; i < 150; ++i) {
    Value tree = RandomConfiguration(random, static_cast<int>(random.Below(2)));
    if (random.Chance(0.5)) tree.Set("metadata", metadata);
    if (random.Chance(0.5)) tree.Find("spec")->Set("policy", "inlined");
    if (random.Chance(0.5)) tree.Find("spec")->Set("selector", Value::Object());
    if (random.Chance(0.5)) tree.Find("spec")->Set("disks", Json(R"([{"name":"x"},{"name":"x"}])"));
    tree.Set("status", Json(R"({"state":"Ready"})"));
    testing::Widget widget;
    ASSERT_TRUE(FromValue(tree, widget_type, &widget).ok());
    Managers managers;
    const ManagerId creator{.name = "creator"};
    RecordUpdate(widget_type, Value::Object(), TreeOf(widget_type, &widget), creator, {}, managers);
    const std::string expected =
        managers.empty() ? "" : Text(managers.find(creator)->second.fields);
    ASSERT_EQ(CreatedFields(widget_type, &widget).text, expected) << WriteJson(tree);
  }
}

}  // namespace
}  // namespace berth::meta
