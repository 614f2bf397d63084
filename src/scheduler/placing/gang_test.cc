// SPDX-License-Identifier: Apache-2.0
// Defends PROTOCOL 8.5 and sequence 21: members of a group get their pools together or not at all.
#include "scheduler/placing/gang.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "apis/berth/machine_group.h"
#include "scheduler/placing/group_reports.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

using apis::berth_dev::kMachineGroupKind;
using apis::berth_dev::MachineGroup;
using Verdict = fleet::Answer::Verdict;

class GangTest : public testing::Test {
 protected:
  void MakeGroup(const std::string& name, int32_t min_members) {
    MachineGroup group;
    group.metadata.namespace_ = SchedulerWorld::kNamespace;
    group.metadata.name = name;
    group.spec.min_members = min_members;
    const auto made = world_.api().Run(
        world_.api().client().Create(meta::Object::Of(kMachineGroupKind, std::move(group)), {}));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  apis::berth_dev::MachineGroupStatus StatusOfGroup(const std::string& name) {
    const auto got = world_.api().Run(
        world_.api().client().Get(kMachineGroupKind, {SchedulerWorld::kNamespace, name}));
    EXPECT_TRUE(got.ok()) << got.status();
    return got->as<MachineGroup>().status;
  }
  std::string MakeMember(const std::string& name, const std::string& group) {
    auto machine = world_.Machine(name);
    machine.spec.placement.emplace().group_ref = apis::core::LocalObjectReference{group};
    return world_.MakeMachine(std::move(machine));
  }
  std::vector<std::string> MakeMembers(const std::string& group, int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back(group + "-" + std::to_string(i));
      MakeMember(names.back(), group);
    }
    return names;
  }
  size_t Placed(const std::vector<std::string>& names) {
    size_t placed = 0;
    for (const std::string& name : names) placed += world_.PoolOf(name).empty() ? 0 : 1;
    return placed;
  }

  SchedulerWorld world_{31};
};

TEST_F(GangTest, R8_5_NothingIsBoundBeforeAllMembersAreThere) {
  world_.StartScheduler();
  const std::string pool = world_.MakePool("alpha");
  world_.Join(pool);
  MakeMember("m-0", "ring");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("m-0").empty(); }));
  EXPECT_EQ(world_.WhyNot("m-0"), "there is no MachineGroup ring");
  MakeGroup("ring", 3);
  MakeMember("m-1", "ring");
  world_.RunFor(Duration::Seconds(15));
  EXPECT_EQ(Placed({"m-0", "m-1"}), 0U);
  EXPECT_EQ(world_.WhyNot("m-1"), "group ring has 2 of 3 members");
  EXPECT_EQ(StatusOfGroup("ring").phase, "Pending");
  EXPECT_EQ(StatusOfGroup("ring").members, 2);
  EXPECT_EQ(StatusOfGroup("ring").conditions.at(0).reason, "WaitingForMembers");
  EXPECT_TRUE(world_.fleet().offers(pool).empty());
  MakeMember("m-2", "ring");
  ASSERT_TRUE(world_.Until([&] { return Placed({"m-0", "m-1", "m-2"}) == 3; }));
  ASSERT_TRUE(world_.Until([&] { return StatusOfGroup("ring").phase == "Bound"; }));
  EXPECT_EQ(StatusOfGroup("ring").bound, 3);
  // Somebody who comes later finds a group that has its minimum.
  MakeMember("m-3", "ring");
  EXPECT_TRUE(world_.IsPlaced("m-3"));
}

TEST_F(GangTest, R8_5_WithoutRoomForAllNobodyIsAskedAndEverybodySaysWhy) {
  world_.StartScheduler();
  const std::string alpha = world_.MakePool("alpha", 2);
  world_.Join(alpha, 2);
  MakeGroup("ring", 3);
  const auto names = MakeMembers("ring", 3);
  ASSERT_TRUE(world_.Until([&] {
    const auto status = StatusOfGroup("ring");
    return !status.conditions.empty() && status.conditions[0].reason == "Unschedulable";
  }));
  world_.RunFor(Duration::Seconds(15));
  EXPECT_EQ(StatusOfGroup("ring").conditions[0].message,
            "there is no room for 3 members at once; there is for 2");
  EXPECT_NE(world_.WhyNot("ring-1").find("there is no room for 3 members"), std::string::npos)
      << world_.WhyNot("ring-1");
  EXPECT_EQ(Placed(names), 0U);
  EXPECT_TRUE(world_.fleet().offers(alpha).empty());
  // Room that it does not use is everybody's meanwhile.
  world_.MakeMachine("single");
  EXPECT_TRUE(world_.IsPlaced("single"));
  world_.Join(world_.MakePool("beta", 2), 2);
  EXPECT_TRUE(world_.Until([&] { return Placed(names) == 3; }));
}

TEST_F(GangTest, R8_5_OneHostThatSaysNoGivesEveryHoldBack) {
  world_.StartScheduler();
  const std::string alpha = world_.MakePool("alpha", 2);
  const std::string beta = world_.MakePool("beta", 2);
  world_.Join(alpha, 2);
  world_.Join(beta, 2);
  const auto refuse = [](const fleet::Offer&) {
    fleet::Answer answer;
    answer.verdict = Verdict::kRejected;
    answer.reason = "NoDisk";
    return std::optional(answer);
  };
  world_.fleet().Answers(beta, refuse);
  MakeGroup("ring", 3);
  const auto names = MakeMembers("ring", 3);
  world_.RunFor(Duration::Seconds(10));
  EXPECT_EQ(Placed(names), 0U);
  EXPECT_FALSE(world_.fleet().offers(alpha).empty());
  EXPECT_EQ(world_.fleet().releases(alpha).size(), world_.fleet().offers(alpha).size());
  world_.fleet().Answers(beta, [](const fleet::Offer&) {
    fleet::Answer answer;
    answer.verdict = Verdict::kAccepted;
    return std::optional(answer);
  });
  EXPECT_TRUE(world_.Until([&] { return Placed(names) == 3; }));
}

TEST_F(GangTest, R8_5_TwoGroupsThatCannotBothHaveRoomDoNotBlockEachOther) {
  world_.StartScheduler();
  for (const char* pool : {"alpha", "beta"}) world_.Join(world_.MakePool(pool, 2), 2);
  MakeGroup("one", 3);
  MakeGroup("two", 3);
  for (int i = 0; i < 3; ++i) {
    MakeMember("one-" + std::to_string(i), "one");
    MakeMember("two-" + std::to_string(i), "two");
  }
  const std::vector<std::string> one = {"one-0", "one-1", "one-2"};
  const std::vector<std::string> two = {"two-0", "two-1", "two-2"};
  ASSERT_TRUE(world_.Until([&] { return Placed(one) + Placed(two) == 3; }));
  world_.RunFor(Duration::Seconds(10));
  ASSERT_TRUE(Placed(one) == 3 || Placed(two) == 3);
  ASSERT_EQ(Placed(one) + Placed(two), 3U);
  const auto& first = Placed(one) == 3 ? one : two;
  const auto& second = Placed(one) == 3 ? two : one;
  for (const std::string& name : first) {
    world_.DeleteMachine(name);
    world_.LetGo(name, "Deleted");
  }
  EXPECT_TRUE(world_.Until([&] { return Placed(second) == 3; }));
}

TEST_F(GangTest, R2_4_21_ASmallGroupIsBoundInOneCommit) {
  for (int i = 0; i < 4; ++i) {
    world_.Join(world_.MakePool("pool-" + std::to_string(i), 2), 2);
  }
  world_.StartScheduler();
  MakeGroup("ring", 8);
  const auto names = MakeMembers("ring", 8);
  ASSERT_TRUE(world_.Until([&] { return Placed(names) > 0; }));
  EXPECT_EQ(Placed(names), 8U);
  std::set<std::string> versions;
  for (const std::string& name : names) {
    versions.insert(world_.GetMachine(name).metadata.resource_version);
  }
  EXPECT_EQ(versions.size(), 1U);
}

TEST_F(GangTest, R2_4_21_ALeaderThatDiesBeforeTheCommitLeavesNothingBehind) {
  const std::string alpha = world_.MakePool("alpha");
  world_.Join(alpha);
  world_.fleet().Answers(
      alpha,
      [](const fleet::Offer&) {
        fleet::Answer answer;
        answer.verdict = Verdict::kAccepted;
        return std::optional(answer);
      },
      Duration::Millis(250));
  world_.StartScheduler();
  MakeGroup("ring", 3);
  const auto names = MakeMembers("ring", 3);
  ASSERT_TRUE(world_.Until([&] { return world_.fleet().offers(alpha).size() == 3; }));
  world_.StopScheduler();
  EXPECT_EQ(Placed(names), 0U);
  world_.StartScheduler();
  EXPECT_TRUE(world_.Until([&] { return Placed(names) == 3; }));
}

TEST_F(GangTest, R2_4_21_APlanOfALargeGroupIsDurableFirstAndAnyLeaderRollsItForward) {
  constexpr int kMembers = 60;
  for (int i = 0; i < 12; ++i) {
    world_.Join(world_.MakePool("pool-" + std::to_string(i), 5), 5);
  }
  MakeGroup("ring", kMembers);
  const auto names = MakeMembers("ring", kMembers);
  world_.StartScheduler();
  std::map<std::string, std::string> plan;
  ASSERT_TRUE(world_.Until([&] {
    plan = StatusOfGroup("ring").committed;
    return !plan.empty();
  }));
  // Nothing was bound before the plan was durable; the leader dies right then.
  world_.StopScheduler();
  EXPECT_EQ(plan.size(), static_cast<size_t>(kMembers));
  world_.StartScheduler();
  ASSERT_TRUE(world_.Until([&] { return Placed(names) == kMembers; }));
  for (const std::string& name : names) {
    const auto machine = world_.GetMachine(name);
    EXPECT_EQ(machine.status.placement->pool, plan[machine.metadata.uid]) << name;
    EXPECT_EQ(machine.status.placement->epoch, 1) << name;
  }
  ASSERT_TRUE(world_.Until([&] { return StatusOfGroup("ring").phase == "Bound"; }));
  EXPECT_TRUE(StatusOfGroup("ring").committed.empty());
}

TEST_F(GangTest, R2_4_21_AStoreThatLosesAnswersBindsEveryMemberOnceAllTheSame) {
  for (int i = 0; i < 4; ++i) world_.Join(world_.MakePool("pool-" + std::to_string(i)));
  MakeGroup("small", 5);
  MakeGroup("more", 7);
  auto names = MakeMembers("small", 5);
  for (const std::string& name : MakeMembers("more", 7)) names.push_back(name);
  world_.StartScheduler();
  world_.api().SetFaults({.refuse = 0.1, .lose_answer = 0.3});
  world_.RunFor(Duration::Minutes(2));
  world_.api().SetFaults({});
  world_.RunFor(Duration::Minutes(2));
  for (const std::string& name : names) {
    const auto machine = world_.GetMachine(name);
    ASSERT_TRUE(machine.status.placement.has_value()) << name << ' ' << world_.WhyNot(name);
    EXPECT_EQ(machine.status.placement->epoch, 1) << name;
  }
  EXPECT_EQ(world_.scheduler().board().object_count(), names.size());
}

TEST(GroupStatus, R8_5_SaysHowFarTheGroupIs) {
  GroupRecord group;
  group.uid = "u";
  group.min_members = 2;
  const WallTime now = WallTime::FromSeconds(100);
  EXPECT_EQ(StatusOf(group, std::nullopt, now).conditions[0].message, "0 of 2 members exist");
  group.members = {{"a", {}}, {"b", {}}};
  const GangWait wait{
      .due = {}, .tried = {}, .pause = {}, .reason = "Unschedulable", .message = "no room"};
  EXPECT_EQ(StatusOf(group, wait, now).conditions[0].message, "no room");
  group.status.committed = {{"a", "p"}, {"b", "p"}, {"gone", "p"}};
  EXPECT_EQ(StatusOf(group, std::nullopt, now).phase, "Committed");
  EXPECT_EQ(StatusOf(group, std::nullopt, now).committed.size(), 2U);
  group.members["a"].is_placed = group.members["b"].is_placed = true;
  group.placed = 2;
  const auto bound = StatusOf(group, std::nullopt, now);
  EXPECT_EQ(bound.phase, "Bound");
  EXPECT_TRUE(bound.committed.empty());
  EXPECT_EQ(bound.conditions[0].status, "True");
}

}  // namespace
}  // namespace berth::scheduler
