// SPDX-License-Identifier: Apache-2.0
#include "controller/machine_sets/set_plan.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace berth::controller {
namespace {

using apis::berth_dev::MachineSetSpec;
using apis::berth_dev::RollingUpdate;
using apis::berth_dev::SetStrategy;

MachineSetSpec Spec(int32_t replicas, int32_t surge = 1, int32_t unavailable = 0) {
  MachineSetSpec spec;
  spec.replicas = replicas;
  spec.strategy = SetStrategy{RollingUpdate{.max_unavailable = unavailable, .max_surge = surge}};
  return spec;
}

SetMember Member(const std::string& name, const std::string& hash, bool is_ready) {
  return {.name = name,
          .uid = name,
          .template_hash = hash,
          .is_ready = is_ready,
          .is_placed = is_ready,
          .is_deleting = false,
          .created = WallTime::FromSeconds(1000)};
}

using Uids = std::vector<std::string>;

TEST(SetPlan, C7_ANewSetMakesAllItsMachinesInBatches) {
  EXPECT_EQ(PlanSet(Spec(3), {}, "h", 100).create, 3U);
  EXPECT_EQ(PlanSet(Spec(3000), {}, "h", 1000).create, 1000U);
  EXPECT_EQ(PlanSet(Spec(0), {}, "h", 100), SetPlan{});
}

TEST(SetPlan, AFullSetNeedsNothing) {
  const SetPlan plan = PlanSet(Spec(2), {Member("a", "h", true), Member("b", "h", false)}, "h", 9);
  EXPECT_EQ(plan.create, 0U);
  EXPECT_TRUE(plan.remove.empty());
  EXPECT_EQ(plan.replicas, 2);
  EXPECT_EQ(plan.ready, 1);
  EXPECT_EQ(plan.updated, 2);
}

TEST(SetPlan, C8_AMachineThatIsGoingIsReplacedAtOnce) {
  std::vector<SetMember> members = {Member("a", "h", true), Member("b", "h", true)};
  members[0].is_deleting = true;
  EXPECT_EQ(PlanSet(Spec(2), members, "h", 9).create, 1U);
}

TEST(SetPlan, AShrinkingSetLosesThoseThatAreMissedLeast) {
  std::vector<SetMember> members = {
      Member("runs", "h", true), Member("pending", "h", false), Member("young", "h", true)};
  members[2].created = WallTime::FromSeconds(2000);
  EXPECT_EQ(PlanSet(Spec(2), members, "h", 9).remove, Uids{"pending"});
  EXPECT_EQ(PlanSet(Spec(1), members, "h", 9).remove, (Uids{"pending", "young"}));
}

TEST(SetPlan, ANewTemplateIsFollowedStepByStep) {
  std::vector<SetMember> members = {Member("a", "old", true), Member("b", "old", true)};
  SetPlan plan = PlanSet(Spec(2), members, "new", 9);
  EXPECT_EQ(plan.create, 1U);  // one more than wanted, none less
  EXPECT_TRUE(plan.remove.empty());
  members.push_back(Member("c", "new", false));
  plan = PlanSet(Spec(2), members, "new", 9);
  EXPECT_EQ(plan.create, 0U);
  EXPECT_TRUE(plan.remove.empty());  // the new one does not run yet
  members[2].is_ready = true;
  plan = PlanSet(Spec(2), members, "new", 9);
  EXPECT_EQ(plan.remove.size(), 1U);
}

TEST(SetPlan, WhateverHappensAnUpdateEndsAndNeverHasTooFewOrTooMany) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const auto wanted = static_cast<int32_t>(random.Below(6));
    const auto surge = static_cast<int32_t>(random.Below(3));
    const auto unavailable =
        static_cast<int32_t>(surge == 0 ? 1 + random.Below(2) : random.Below(3));
    const MachineSetSpec spec = Spec(wanted, surge, unavailable);
    std::vector<SetMember> members;
    for (int32_t i = 0; i < wanted; ++i) {
      members.push_back(Member("old-" + std::to_string(i), "old", true));
    }
    int made = 0;
    for (int step = 0; step < 200; ++step) {
      const SetPlan plan = PlanSet(spec, members, "new", 2);
      for (size_t i = 0; i < plan.create; ++i) {
        members.push_back(Member("new-" + std::to_string(made++), "new", false));
      }
      for (const std::string& uid : plan.remove) {
        std::erase_if(members, [&](const SetMember& member) { return member.uid == uid; });
      }
      ASSERT_LE(members.size(), static_cast<size_t>(wanted + surge)) << "seed " << seed;
      const auto ready = std::count_if(
          members.begin(), members.end(), [](const SetMember& member) { return member.is_ready; });
      ASSERT_GE(ready, wanted - unavailable) << "seed " << seed;
      for (SetMember& member : members) {
        if (random.Chance(0.5)) member.is_ready = member.is_placed = true;
      }
    }
    ASSERT_EQ(members.size(), static_cast<size_t>(wanted)) << "seed " << seed;
    for (const SetMember& member : members) EXPECT_EQ(member.template_hash, "new");
    SetPlan done;
    done.replicas = done.ready = done.updated = wanted;
    EXPECT_EQ(PlanSet(spec, members, "new", 2), done) << "seed " << seed;
  }
}

TEST(SetPlan, C34_OrdinalsAreUsedAgainOnceTheirMachineIsGone) {
  std::vector<SetMember> members = {Member("web-0", "h", true), Member("web-2", "h", true)};
  members[1].is_deleting = true;
  EXPECT_EQ(OrdinalNames("web", members, 3), (Uids{"web-1", "web-3", "web-4"}));
}

}  // namespace
}  // namespace berth::controller
