// SPDX-License-Identifier: Apache-2.0
// Defends S6 and 8.4 where many hosts say no: everybody who could take something is asked, nobody
// is stopped before that, and what is said of it meanwhile is true.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apis/berth/machine_group.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

using Verdict = fleet::Answer::Verdict;

fleet::FakeFleet::Script Saying(Verdict verdict, const std::string& reason = "") {
  return [verdict, reason](const fleet::Offer&) {
    fleet::Answer answer;
    answer.verdict = verdict;
    answer.reason = reason;
    return std::optional(answer);
  };
}

class RefusingHostsTest : public testing::Test {
 protected:
  // More than one attempt asks.
  static constexpr int kMany = 12;

  // Pools whose hosts say no to everything. More room is ranked first.
  void MakeRefusing(int count, int64_t cpus = 8) {
    for (int i = 0; i < count; ++i) {
      refusing_.push_back(world_.MakePool("pool-" + std::to_string(refusing_.size()), cpus));
      world_.Join(refusing_.back(), cpus);
      world_.fleet().Answers(refusing_.back(), Saying(Verdict::kRejected, "NoDisk"));
    }
  }
  size_t Asked() {
    return static_cast<size_t>(std::ranges::count_if(refusing_, [this](const std::string& pool) {
      return !world_.fleet().offers(pool).empty();
    }));
  }
  // A pool that is ranked behind all of those: it was asked to keep new placements away if it can.
  std::string MakeLast(const std::string& name) {
    const std::string pool = world_.MakePool(name);
    world_.Patch(apis::compute::kMachinePoolKind,
                 name,
                 R"({"spec":{"taints":[{"key":"last","effect":"PreferNoSchedule"}]}})");
    world_.Join(pool);
    return pool;
  }
  std::string Said(const std::string& name) { return world_.ConditionOf(name, "Scheduled"); }

  SchedulerWorld world_{41};
  std::vector<std::string> refusing_;
};

TEST_F(RefusingHostsTest, AnAttemptGoesOnBehindThoseWhoRefused) {
  MakeRefusing(kMany);
  MakeLast("good");
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return world_.PoolOf("web") == "good"; }, Duration::Seconds(3)))
      << Said("web");
  for (const std::string& pool : refusing_) {
    EXPECT_EQ(world_.fleet().offers(pool).size(), 1U);
    EXPECT_TRUE(world_.fleet().releases(pool).empty());
  }
}

TEST_F(RefusingHostsTest, SilentHostsAreNotAskedAgainBeforeTheOthers) {
  MakeRefusing(2 * kMany);
  for (const std::string& pool : refusing_) {
    world_.fleet().Answers(
        pool, [](const fleet::Offer&) -> std::optional<fleet::Answer> { return std::nullopt; });
  }
  MakeLast("good");
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return world_.PoolOf("web") == "good"; }, Duration::Seconds(15)))
      << Said("web");
}

TEST_F(RefusingHostsTest, WhileOthersAreAskedTheReasonSaysSo) {
  MakeRefusing(kMany);
  const std::string good = MakeLast("good");
  // So slow that the first report comes before its answer.
  for (const std::string& pool : refusing_) {
    world_.fleet().Answers(pool, Saying(Verdict::kRejected, "NoDisk"), Duration::Millis(200));
  }
  world_.StartScheduler();
  world_.MakeMachine("web");
  std::vector<std::string> said;
  ASSERT_TRUE(world_.Until([&] {
    const std::string now = Said("web");
    if (!now.empty() && (said.empty() || said.back() != now)) said.push_back(now);
    return !world_.PoolOf("web").empty();
  }));
  ASSERT_EQ(said.size(), 2U) << testing::PrintToString(said);
  EXPECT_TRUE(said[0].starts_with("HostsRefused: ")) << said[0];
  EXPECT_NE(said[0].find(" refused so far, others are asked: "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find(" said NoDisk"), std::string::npos) << said[0];
  EXPECT_TRUE(said[1].starts_with("Bound: ")) << said[1];
}

TEST_F(RefusingHostsTest, WhoIsRefusedByEverybodySaysByHowMany) {
  MakeRefusing(kMany);
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return Said("web").starts_with("AllPoolsRefused: "); }));
  const std::string all = Said("web");
  EXPECT_NE(all.find("none of 12 pools takes it: 12 refused; asked: "), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with(" and 8 more")) << all;
  EXPECT_EQ(Asked(), size_t{kMany});
  const auto machine = world_.GetMachine("web");
  ASSERT_TRUE(machine.status.placement.has_value());
  EXPECT_EQ(machine.status.placement->reason, "AllPoolsRefused");
  EXPECT_GT(machine.status.placement->attempt, 0);
  // Nothing new: they are asked again, more and more seldom, and that is not told each time.
  world_.RunFor(Duration::Minutes(2));
  EXPECT_EQ(Said("web"), all);
  EXPECT_EQ(world_.GetMachine("web").metadata.resource_version, machine.metadata.resource_version);
  const size_t asked = world_.fleet().offers(refusing_[0]).size();
  EXPECT_GE(asked, 8U);
  EXPECT_LE(asked, 40U);
  // Whoever changes its mind gets it.
  world_.fleet().Answers(refusing_[3], Saying(Verdict::kAccepted));
  ASSERT_TRUE(world_.IsPlaced("web"));
  EXPECT_EQ(world_.GetMachine("web").status.placement->attempt, 0);
  EXPECT_EQ(world_.GetMachine("web").status.placement->reason, "");
}

// The gateway says it in the place of hosts, which are asked for nothing yet.
TEST_F(RefusingHostsTest, WhatARestoreHasNotSettledIsNotToldAsARefusal) {
  MakeRefusing(2);
  for (const std::string& pool : refusing_) {
    world_.fleet().Answers(pool, Saying(Verdict::kRejected, "NotSettled"));
  }
  world_.StartScheduler();
  world_.MakeMachine("web");
  EXPECT_TRUE(world_.Until([&] { return Said("web").starts_with("NotSettled: "); })) << Said("web");
}

TEST_F(RefusingHostsTest, WhoJoinsAfterEverybodyRefusedIsAsked) {
  MakeRefusing(kMany);
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return Said("web").starts_with("AllPoolsRefused: "); }));
  MakeLast("good");
  EXPECT_TRUE(world_.Until([&] { return world_.PoolOf("web") == "good"; }));
}

TEST_F(RefusingHostsTest, WhoEditsItIsAskedForAnewEverywhere) {
  MakeRefusing(kMany);
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return Asked() >= 8; }));
  const std::string first = *std::ranges::find_if(
      refusing_, [this](const std::string& pool) { return !world_.fleet().offers(pool).empty(); });
  world_.fleet().Answers(first, Saying(Verdict::kAccepted));
  world_.Edit("web");
  EXPECT_TRUE(world_.Until([&] { return !world_.PoolOf("web").empty(); }, Duration::Millis(500)));
}

TEST_F(RefusingHostsTest, R8_4_NobodyIsStoppedWhileAFreePoolWasNotAsked) {
  world_.MakePriorityClass("low", -10, "true");
  world_.MakePriorityClass("high", 1000, "false");
  const std::string full = world_.MakePool("full", 1);
  world_.StartScheduler();
  world_.Join(full, 1);
  world_.MakeRanked("victim", "low");
  ASSERT_TRUE(world_.IsPlaced("victim"));
  MakeRefusing(kMany);
  const std::string last = MakeLast("good");
  world_.MakeRanked("vip", "high");
  ASSERT_TRUE(world_.IsPlaced("vip"));
  EXPECT_EQ(world_.PoolOf("vip"), "good");
  EXPECT_EQ(world_.ReleaseOf("victim"), "");
  // When all have said no, room is made as ever.
  world_.fleet().Answers(last, Saying(Verdict::kRejected, "NoDisk"));
  world_.MakeRanked("second", "high");
  EXPECT_TRUE(world_.Until([&] { return world_.ReleaseOf("victim") == "Preempted"; }));
}

TEST_F(RefusingHostsTest, R8_5_AGroupGoesOnBehindThoseWhoRefused) {
  MakeRefusing(kMany, 4);
  MakeLast("good");
  apis::berth_dev::MachineGroup group;
  group.metadata.namespace_ = SchedulerWorld::kNamespace;
  group.metadata.name = "ring";
  group.spec.min_members = 3;
  const auto made = world_.api().Run(world_.api().client().Create(
      meta::Object::Of(apis::berth_dev::kMachineGroupKind, std::move(group)), {}));
  ASSERT_TRUE(made.ok()) << made.status();
  world_.StartScheduler();
  const std::vector<std::string> names = {"m-0", "m-1", "m-2"};
  for (const std::string& name : names) {
    auto machine = world_.Machine(name);
    machine.spec.placement.emplace().group_ref = apis::core::LocalObjectReference{"ring"};
    world_.MakeMachine(std::move(machine));
  }
  EXPECT_TRUE(world_.Until([&] {
    return std::ranges::all_of(names, [&](const auto& m) { return world_.PoolOf(m) == "good"; });
  })) << world_.WhyNot("m-0");
}

}  // namespace
}  // namespace berth::scheduler
