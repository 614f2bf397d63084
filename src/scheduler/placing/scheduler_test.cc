// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fleet/refusals.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

using Verdict = fleet::Answer::Verdict;

std::optional<fleet::Answer> Say(Verdict verdict, const std::string& reason = "") {
  fleet::Answer answer;
  answer.verdict = verdict;
  answer.reason = reason;
  return answer;
}

class SchedulerTest : public testing::Test {
 protected:
  SchedulerWorld world_{11};
};

TEST_F(SchedulerTest, AMachineIsPlacedOnAPoolWhoseHostSaidYes) {
  const std::string pool = world_.MakePool("alpha");
  world_.StartScheduler();
  world_.Join(pool);
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.IsPlaced("web"));
  const auto machine = world_.GetMachine("web");
  EXPECT_EQ(machine.spec.machine_pool_ref->name, "alpha");
  EXPECT_EQ(machine.status.placement->pool_uid, pool);
  EXPECT_EQ(machine.status.placement->epoch, 1);
  ASSERT_EQ(world_.fleet().offers(pool).size(), 1U);
  const fleet::Offer& offer = world_.fleet().offers(pool)[0];
  EXPECT_EQ(offer.item.placement, 1U);
  EXPECT_EQ(offer.item.resources, (fleet::Vector{{"cpu", 1000}, {"memory", 1LL << 30}}));
  EXPECT_EQ(offer.item.class_name, "small");
  EXPECT_TRUE(world_.fleet().releases(pool).empty());
}

TEST_F(SchedulerTest, C2_C3_AHostThatSaysNoIsFollowedByTheNextOne) {
  const std::string alpha = world_.MakePool("alpha");
  const std::string beta = world_.MakePool("beta");
  world_.StartScheduler();
  world_.Join(alpha);
  world_.Join(beta);
  std::set<std::string> asked;
  for (const std::string& pool : {alpha, beta}) {
    world_.fleet().Answers(pool, [&asked, pool](const fleet::Offer&) {
      const bool is_first = asked.empty();
      asked.insert(pool);
      return Say(is_first ? Verdict::kRejected : Verdict::kAccepted, "NoDisk");
    });
  }
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.IsPlaced("web"));
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(SchedulerTest, C3_AHostThatSaysNothingCountsAsNo) {
  const std::string alpha = world_.MakePool("alpha");
  const std::string beta = world_.MakePool("beta");
  world_.StartScheduler();
  world_.Join(alpha);
  world_.Join(beta);
  std::string silent;
  for (const std::string& pool : {alpha, beta}) {
    world_.fleet().Answers(pool, [&silent, pool](const fleet::Offer&) {
      if (silent.empty()) silent = pool;
      return silent == pool ? std::nullopt : Say(Verdict::kAccepted);
    });
  }
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.IsPlaced("web"));
  EXPECT_NE(world_.GetMachine("web").status.placement->pool_uid, silent);
}

TEST_F(SchedulerTest, C3_APoolIsDeletedWhileItsHostIsAsked) {
  const std::string alpha = world_.MakePool("alpha");
  world_.StartScheduler();
  world_.Join(alpha);
  bool is_asked = false;
  world_.fleet().Answers(alpha, [&is_asked](const fleet::Offer&) -> std::optional<fleet::Answer> {
    is_asked = true;
    return std::nullopt;
  });
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return is_asked; }));
  world_.DeletePool("alpha");
  world_.RunFor(Duration::Seconds(1));
  world_.Join(world_.MakePool("beta"));
  EXPECT_TRUE(world_.IsPlaced("web"));
}

TEST_F(SchedulerTest, C4_WhenEveryHostRefusesTheMachineSaysWhoAndWhy) {
  const std::string pool = world_.MakePool("alpha");
  world_.StartScheduler();
  world_.Join(pool);
  world_.fleet().Answers(
      pool, [](const fleet::Offer&) { return Say(Verdict::kRejected, "ImageNotFound"); });
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("web").empty(); }));
  EXPECT_NE(world_.WhyNot("web").find("alpha said ImageNotFound"), std::string::npos)
      << world_.WhyNot("web");
  // It is tried again by itself, and placed as soon as the host changes its mind.
  world_.fleet().Answers(pool, [](const fleet::Offer&) { return Say(Verdict::kAccepted); });
  EXPECT_TRUE(world_.IsPlaced("web"));
}

TEST_F(SchedulerTest, HostsWithOtherClassesOfThatNameAreInNobodysWay) {
  // More than one attempt asks, and better than the last one: they stay empty.
  constexpr int kMany = 12;
  std::vector<std::string> differ;
  for (int i = 0; i < kMany; ++i) differ.push_back(world_.MakePool("pool-" + std::to_string(i)));
  const std::string good = world_.MakePool("zulu");
  world_.StartScheduler();
  for (const std::string& pool : differ) {
    world_.Join(pool);
    world_.fleet().Answers(
        pool, [](const fleet::Offer&) { return Say(Verdict::kRejected, fleet::kClassDiffers); });
  }
  world_.Join(good);
  for (int i = 0; i < 8; ++i) {
    const std::string name = "web-" + std::to_string(i);
    world_.MakeMachine(name);
    ASSERT_TRUE(world_.IsPlaced(name));
    EXPECT_EQ(world_.PoolOf(name), "zulu");
  }
  for (const std::string& pool : differ) EXPECT_LE(world_.fleet().offers(pool).size(), 1U);
  // A host that comes back is asked again.
  for (const std::string& pool : differ) {
    world_.fleet().Answers(pool, [](const fleet::Offer&) { return Say(Verdict::kAccepted); });
    world_.Join(pool);
  }
  world_.Cordon("zulu");
  world_.MakeMachine("later");
  EXPECT_TRUE(world_.IsPlaced("later"));
}

TEST_F(SchedulerTest, C5_WithoutAnyPoolAMachineWaitsAndIsPlacedWhenOneComes) {
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("web").empty(); }));
  EXPECT_EQ(world_.WhyNot("web"), "there is no pool of this kind");
  world_.Join(world_.MakePool("alpha"));
  EXPECT_TRUE(world_.IsPlaced("web"));
}

TEST_F(SchedulerTest, C4_AVolumeThatWaitsWithItsMachineSaysSo) {
  world_.StartScheduler();
  world_.MakeVolume("disk");
  apis::compute::Machine machine = world_.Machine("db");
  apis::compute::MachineVolume volume;
  volume.name = "data";
  volume.volume_ref = apis::core::LocalObjectReference{.name = "disk"};
  machine.spec.volumes.push_back(volume);
  world_.MakeMachine(machine);
  const auto why = [&] {
    for (const auto& condition : world_.GetVolume("disk").status.conditions) {
      if (condition.type == "Scheduled" && condition.status == "False") return condition.message;
    }
    return std::string();
  };
  EXPECT_TRUE(world_.Until([&] { return why() == "it is placed together with machine db"; }))
      << why();
}

TEST_F(SchedulerTest, C6_WhatDoesNotFitSaysWhatIsMissingWhere) {
  world_.Join(world_.MakePool("alpha", 2), 2);
  world_.StartScheduler();
  world_.MakeMachine("big", "large");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("big").empty(); }));
  EXPECT_EQ(world_.WhyNot("big"),
            "none of 1 pools takes it: 1 have too little room (1 cpu); nearest is alpha, which "
            "lacks 2 cpu");
}

TEST_F(SchedulerTest, D11_FreedRoomIsGivenToWhoWaitsForIt) {
  world_.Join(world_.MakePool("alpha", 2), 2);
  world_.StartScheduler();
  for (const char* name : {"a", "b", "c"}) world_.MakeMachine(name);
  const auto placed = [&] {
    int count = 0;
    for (const char* name : {"a", "b", "c"}) count += world_.PoolOf(name).empty() ? 0 : 1;
    return count;
  };
  ASSERT_TRUE(world_.Until([&] { return placed() == 2; }));
  world_.RunFor(Duration::Seconds(2));
  ASSERT_EQ(placed(), 2);
  std::string waiting;
  std::string gone;
  for (const char* name : {"a", "b", "c"}) {
    (world_.PoolOf(name).empty() ? waiting : gone) = name;
  }
  // The host lets go of one: what the gateway does when it is told Gone.
  world_.DeleteMachine(gone);
  world_.LetGo(gone, "Deleted");
  EXPECT_TRUE(world_.IsPlaced(waiting));
}

TEST_F(SchedulerTest, Seq08_NothingNewLandsOnACordonedPool) {
  const std::string alpha = world_.MakePool("alpha");
  world_.StartScheduler();
  world_.Join(alpha);
  // The host thinks for a while; meanwhile the pool is cordoned.
  world_.fleet().Answers(
      alpha, [](const fleet::Offer&) { return Say(Verdict::kAccepted); }, Duration::Millis(100));
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.fleet().offers(alpha).empty(); }));
  world_.Cordon("alpha");
  world_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(world_.PoolOf("web"), "");
  // The hold was given back.
  EXPECT_EQ(world_.fleet().releases(alpha).size(), world_.fleet().offers(alpha).size());
  EXPECT_NE(world_.WhyNot("web").find("cordoned"), std::string::npos) << world_.WhyNot("web");
}

TEST_F(SchedulerTest, Seq07_AMachineDeletedWhileItsHostThinksIsNotBound) {
  const std::string alpha = world_.MakePool("alpha");
  world_.StartScheduler();
  world_.Join(alpha);
  world_.fleet().Answers(
      alpha, [](const fleet::Offer&) { return Say(Verdict::kAccepted); }, Duration::Millis(100));
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.fleet().offers(alpha).empty(); }));
  world_.DeleteMachine("web");
  world_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(world_.fleet().releases(alpha).size(), 1U);
  EXPECT_EQ(world_.scheduler().board().object_count(), 0U);
}

TEST_F(SchedulerTest, Seq02_ANewSchedulerDecidesAnewUnderALargerTerm) {
  const std::string alpha = world_.MakePool("alpha");
  world_.Join(alpha);
  world_.StartScheduler();
  world_.fleet().Answers(
      alpha, [](const fleet::Offer&) { return Say(Verdict::kAccepted); }, Duration::Millis(250));
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.fleet().offers(alpha).empty(); }));
  world_.StopScheduler();
  world_.StartScheduler();
  ASSERT_TRUE(world_.IsPlaced("web"));
  ASSERT_GE(world_.fleet().offers(alpha).size(), 2U);
  EXPECT_LT(world_.fleet().offers(alpha).front().id.term,
            world_.fleet().offers(alpha).back().id.term);
}

TEST_F(SchedulerTest, D12_APoolThatAUserNamesIsAskedAndNoOther) {
  const std::string alpha = world_.MakePool("alpha");
  const std::string beta = world_.MakePool("beta");
  world_.StartScheduler();
  world_.Join(alpha);
  world_.Join(beta);
  auto machine = world_.Machine("web");
  machine.spec.machine_pool_ref = apis::core::LocalObjectReference{"beta"};
  world_.MakeMachine(machine);
  ASSERT_TRUE(world_.IsPlaced("web"));
  EXPECT_EQ(world_.PoolOf("web"), "beta");
  EXPECT_EQ(world_.fleet().offers(beta).size(), 1U);
  EXPECT_TRUE(world_.fleet().offers(alpha).empty());
  // One that does not fit there waits, although the other pool has room.
  world_.fleet().Answers(beta, [](const fleet::Offer&) { return Say(Verdict::kRejected, "Full"); });
  auto second = world_.Machine("second");
  second.spec.machine_pool_ref = apis::core::LocalObjectReference{"beta"};
  world_.MakeMachine(second);
  world_.RunFor(Duration::Seconds(3));
  EXPECT_EQ(world_.PoolOf("second"), "");
}

TEST_F(SchedulerTest, AMachineThatIsAskedToMoveGoesElsewhereIfItCan) {
  world_.StartWithTwoPools();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.IsPlaced("web"));
  const std::string first = world_.PoolOf("web");
  world_.LetGo("web", "Move");
  ASSERT_TRUE(world_.IsPlaced("web"));
  EXPECT_NE(world_.PoolOf("web"), first);
  // With nowhere else to go it comes back.
  const std::string second = world_.PoolOf("web");
  world_.Cordon(first);
  world_.LetGo("web", "Move");
  ASSERT_TRUE(world_.IsPlaced("web"));
  EXPECT_EQ(world_.PoolOf("web"), second);
}

TEST_F(SchedulerTest, G2_APoolThatGivesBackWhatItAcceptedComesLastForAWhile) {
  world_.StartWithTwoPools();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.IsPlaced("web"));
  const std::string failing = world_.PoolOf("web");
  world_.LetGo("web", "NoDisk");
  for (int i = 0; i < 4; ++i) {
    const std::string name = "m-" + std::to_string(i);
    world_.MakeMachine(name);
    ASSERT_TRUE(world_.IsPlaced(name));
    EXPECT_NE(world_.PoolOf(name), failing);
  }
  EXPECT_NE(world_.PoolOf("web"), failing);
}

// What an operator takes from a host was not refused by it, and waits for nothing.
TEST_F(SchedulerTest, G2_WhatAnOperatorFencedMayComeBackToItsPoolAtOnce) {
  world_.Join(world_.MakePool("alpha"));
  world_.StartScheduler();
  world_.MakeMachine("web");
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(world_.IsPlaced("web"));
    const Time fenced = world_.Now();
    world_.LetGo(
        apis::compute::kMachineKind, "web", "OperatorFenced", client::UnbindProof::kOperatorFenced);
    ASSERT_TRUE(world_.Until([&] { return !world_.PoolOf("web").empty(); }));
    EXPECT_LT(world_.Now() - fenced, Duration::Millis(400)) << i;
  }
}

TEST_F(SchedulerTest, G2_WhatTheOnlyPoolsRefuseComesBackToThemMoreAndMoreSeldom) {
  world_.StartWithTwoPools();
  world_.MakeMachine("web");
  const Time start = world_.Now();
  int given_back = 0;
  for (; world_.Now() - start < Duration::Minutes(2); ++given_back) {
    const auto is_placed = [&] { return !world_.PoolOf("web").empty(); };
    ASSERT_TRUE(world_.Until(is_placed, Duration::Minutes(2)));
    world_.LetGo("web", "NoDisk");
  }
  EXPECT_GE(given_back, 6);
  EXPECT_LE(given_back, 12) << "hosts that refuse for good were asked all the time";
  // Who edits it does not wait.
  const Time edited = world_.Now();
  world_.Edit("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.PoolOf("web").empty(); }));
  EXPECT_LT(world_.Now() - edited, Duration::Seconds(1));
}

TEST_F(SchedulerTest, G2_WhatAHostReportsOfItsRoomStandsWhenItRefusesSomething) {
  fleet::PoolFacts facts;
  facts.pool_uid = world_.MakePool("alpha", 2);
  facts.ledger = {.boot = "boot", .counter = 1};
  facts.capacity = {{"cpu", 2000}, {"memory", 8LL << 30}};
  facts.allocated = {{"cpu", 2000}};  // nobody knows for whom
  world_.fleet().Join(facts);
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("web").empty(); }));
  world_.fleet().Refuse(facts.pool_uid, "NoRoom");
  world_.RunFor(Duration::Seconds(5));
  EXPECT_TRUE(world_.fleet().offers(facts.pool_uid).empty());
  EXPECT_EQ(world_.PoolOf("web"), "");
}

TEST_F(SchedulerTest, AVolumeIsPlacedWithTheMachineThatNamesIt) {
  const std::string alpha = world_.MakePool("alpha");
  const std::string disks = world_.MakeVolumePool("alpha-disks", "host-alpha", "Host");
  world_.MakeVolumePool("far-disks", "host-far", "Host");
  world_.StartScheduler();
  world_.Join(alpha);
  auto machine = world_.Machine("web");
  machine.spec.volumes.push_back({.name = "root", .device = "oda"});
  machine.spec.volumes[0].volume_ref = apis::core::LocalObjectReference{"root"};
  world_.MakeMachine(machine);
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("web").empty(); }));
  EXPECT_EQ(world_.WhyNot("web"), "there is no Volume root");
  world_.MakeVolume("root");
  world_.JoinVolumePool(disks);
  ASSERT_TRUE(world_.IsPlaced("web"));
  const auto volume = world_.GetVolume("root");
  ASSERT_TRUE(volume.status.placement.has_value());
  EXPECT_EQ(volume.status.placement->pool, "alpha-disks");
  // One offer to the one host, for both.
  ASSERT_EQ(world_.fleet().offers(alpha).size(), 1U);
  EXPECT_EQ(world_.fleet().offers(alpha)[0].joint.size(), 1U);
  EXPECT_EQ(volume.spec.claim_ref->name, "web");
}

TEST_F(SchedulerTest, AVolumeThatAPlacedMachineNamesLaterComesWithinItsReach) {
  const std::string alpha = world_.MakePool("alpha");
  // Names decide between pools that are alike: without the machine all of them would be spread.
  for (const std::string host : {"a-far", "alpha", "z-far"}) {
    const std::string disks = world_.MakeVolumePool(host + "-disks", "host-" + host, "Host");
    world_.JoinVolumePool(disks);
  }
  world_.StartScheduler();
  world_.Join(alpha);
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.IsPlaced("web"));
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) names.push_back("data-" + std::to_string(i));
  world_.NameVolumes("web", names);
  for (const std::string& name : names) world_.MakeVolume(name);
  for (const std::string& name : names) {
    ASSERT_TRUE(world_.Until([&] { return !world_.VolumePoolOf(name).empty(); })) << name;
    EXPECT_EQ(world_.VolumePoolOf(name), "alpha-disks") << name;
  }
}

TEST_F(SchedulerTest, AVolumeWaitsForAPoolWithinReachOfTheMachineThatNamesIt) {
  const std::string alpha = world_.MakePool("alpha");
  world_.JoinVolumePool(world_.MakeVolumePool("far-disks", "host-far", "Host"));
  world_.StartScheduler();
  world_.Join(alpha);
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.IsPlaced("web"));
  world_.NameVolumes("web", {"data"});
  world_.MakeVolume("data");
  const auto says = [&](const std::string& text) {
    return world_.Until([&] {
      for (const auto& condition : world_.GetVolume("data").status.conditions) {
        if (condition.type == "Scheduled" && condition.message == text) return true;
      }
      return false;
    });
  };
  EXPECT_TRUE(says("Machine web names it, and no pool is within reach of alpha"));
  EXPECT_EQ(world_.VolumePoolOf("data"), "");
  const std::string disks = world_.MakeVolumePool("near-disks", "host-alpha", "Host");
  world_.JoinVolumePool(disks);
  ASSERT_TRUE(world_.Until([&] { return !world_.VolumePoolOf("data").empty(); }));
  EXPECT_EQ(world_.VolumePoolOf("data"), "near-disks");
}

TEST_F(SchedulerTest, AMachineThatCameBeforeItsClassIsPlacedWhenTheClassComes) {
  world_.StartScheduler();
  world_.MakeMachine("early", "tiny");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("early").empty(); }));
  EXPECT_EQ(world_.WhyNot("early"), "there is no MachineClass tiny");
  const std::string pool = world_.MakePool("alpha", 8, "a", {"small", "tiny"});
  world_.Join(pool);
  world_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(world_.PoolOf("early"), "");
  world_.MakeClass("tiny", "100m", "64Mi");
  EXPECT_TRUE(world_.IsPlaced("early"));
}

TEST_F(SchedulerTest, AVolumeThatNobodyNamesIsPlacedAtOnce) {
  const std::string disks = world_.MakeVolumePool("disks", "host", "Any");
  world_.JoinVolumePool(disks);
  world_.StartScheduler();
  world_.MakeVolume("lonely");
  EXPECT_TRUE(world_.Until([&] {
    const auto volume = world_.GetVolume("lonely");
    return volume.status.placement && volume.status.placement->pool == "disks";
  }));
}

TEST_F(SchedulerTest, S2_ManyMachinesFillThePoolsAndNoPoolIsOverfull) {
  std::map<std::string, int64_t> capacity;
  for (int i = 0; i < 10; ++i) {
    const int64_t cpus = 2 + i % 3;
    const std::string name = "pool-" + std::to_string(i);
    world_.Join(world_.MakePool(name, cpus), cpus);
    capacity[name] = cpus;
  }
  world_.StartScheduler();
  for (int i = 0; i < 60; ++i) world_.MakeMachine("m-" + std::to_string(i));
  world_.RunFor(Duration::Seconds(20));
  std::map<std::string, int64_t> used;
  int waiting = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string pool = world_.PoolOf("m-" + std::to_string(i));
    if (pool.empty()) {
      ++waiting;
    } else {
      ++used[pool];
    }
  }
  EXPECT_EQ(used, capacity);  // 29 cpus in all
  EXPECT_EQ(waiting, 60 - 29);
}

TEST_F(SchedulerTest, S4_D10_AStoreThatLosesAnswersPlacesEverythingOnceAllTheSame) {
  for (int i = 0; i < 5; ++i) world_.Join(world_.MakePool("pool-" + std::to_string(i)));
  for (int i = 0; i < 40; ++i) world_.MakeMachine("m-" + std::to_string(i));
  world_.StartScheduler();
  world_.api().SetFaults({.refuse = 0.1, .lose_answer = 0.2});
  world_.RunFor(Duration::Minutes(2));
  world_.api().SetFaults({});
  world_.RunFor(Duration::Minutes(2));
  std::map<std::string, int> used;
  for (int i = 0; i < 40; ++i) {
    const auto machine = world_.GetMachine("m-" + std::to_string(i));
    ASSERT_TRUE(machine.status.placement.has_value())
        << i << ' ' << world_.WhyNot("m-" + std::to_string(i));
    EXPECT_EQ(machine.status.placement->epoch, 1) << i;
    ++used[machine.status.placement->pool];
  }
  for (const auto& [pool, count] : used) EXPECT_EQ(count, 8) << pool;
  EXPECT_EQ(world_.scheduler().board().object_count(), 40U);
  EXPECT_TRUE(world_.scheduler().idle());
}

}  // namespace
}  // namespace berth::scheduler
