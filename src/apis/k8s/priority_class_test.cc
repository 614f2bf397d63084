// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of PriorityClass.
#include "apis/k8s/priority_class.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::k8s {
namespace {

using testing::CellOf;
using testing::Parse;

constexpr std::string_view kClass = R"({
    "metadata": {"name": "batch", "annotations": {"berth.dev/preemptible": "true"}},
    "value": -10, "description": "what can wait"})";

TEST(PriorityClass, R8_3_HasRules) {
  testing::ExpectRules<PriorityClass>(
      Parse<PriorityClass>(kClass),
      {
          {"the most", [](auto& c) { c.value = kPriorityMax; }, {}},
          {"more than the most", [](auto& c) { c.value = kPriorityMax + 1; }, {"Forbidden value"}},
          {"a system name",
           [](auto& c) { c.metadata.name = "system-critical"; },
           {"Forbidden metadata.name"}},
          {"perhaps preemptible",
           [](auto& c) { c.metadata.annotations["berth.dev/preemptible"] = "maybe"; },
           {"Invalid metadata.annotations[berth.dev/preemptible]"}},
          {"an unknown policy",
           [](auto& c) { c.preemption_policy = "Sometimes"; },
           {"NotSupported preemptionPolicy"}},
      });
}

TEST(PriorityClass, R8_3_ItsValueStays) {
  testing::ExpectUpdateRules<PriorityClass>(
      Parse<PriorityClass>(kClass),
      {
          {"another value", [](auto& c) { c.value = 5; }, {"Forbidden value"}},
          {"another policy",
           [](auto& c) { c.preemption_policy = "Never"; },
           {"Forbidden preemptionPolicy"}},
          {"another description", [](auto& c) { c.description = "x"; }, {}},
          {"the default", [](auto& c) { c.global_default = true; }, {}},
          {"not preemptible", [](auto& c) { c.metadata.annotations.clear(); }, {}},
      });
}

TEST(PriorityClass, R8_4_SaysWhetherItsMachinesMayBeStopped) {
  PriorityClass object = testing::WithDefaults(Parse<PriorityClass>(kClass));
  EXPECT_TRUE(IsPreemptible(object));
  EXPECT_EQ(CellOf(kPriorityClassKind, "Value", &object), "-10");
  EXPECT_EQ(CellOf(kPriorityClassKind, "Global-Default", &object), "false");
  EXPECT_EQ(CellOf(kPriorityClassKind, "PreemptionPolicy", &object), "PreemptLowerPriority");
  EXPECT_EQ(CellOf(kPriorityClassKind, "Preemptible", &object), "true");
  object.metadata.annotations["berth.dev/preemptible"] = "false";
  EXPECT_FALSE(IsPreemptible(object));
}

}  // namespace
}  // namespace berth::apis::k8s
