// SPDX-License-Identifier: Apache-2.0
// What waits is bound soon after something happened that gives it a place, on whichever pool that
// was: long before it would be looked at again anyway.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "fleet/refusals.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

using apis::compute::kMachinePoolKind;
using apis::storage::kVolumePoolKind;

constexpr char kCordon[] = R"({"spec":{"unschedulable":true}})";
constexpr char kUncordon[] = R"({"spec":{"unschedulable":false}})";
constexpr char kTaint[] = R"({"spec":{"taints":[{"key":"fire","effect":"NoSchedule"}]}})";
constexpr char kUntaint[] = R"({"spec":{"taints":[]}})";

std::string InZone(const std::string& zone) {
  return R"({"metadata":{"labels":{"topology.ironcore.dev/zone":")" + zone + R"("}}})";
}

class WakeTest : public testing::Test {
 protected:
  // What a change brings about by itself is over then: only a wake-up helps from here on.
  void ExpectToWait(const std::string& machine) {
    world_.RunFor(Duration::Minutes(1));
    ASSERT_EQ(world_.PoolOf(machine), "");
  }
  void ExpectToBeBoundSoon(const std::string& machine) {
    const auto is_bound = [&] { return !world_.PoolOf(machine).empty(); };
    EXPECT_TRUE(world_.Until(is_bound, Duration::Seconds(5))) << world_.WhyNot(machine);
  }

  SchedulerWorld world_{17};
};

TEST_F(WakeTest, AClassThatHostsMayHaveByNowWakesWhoWaitsForIt) {
  const auto says = [](fleet::Answer::Verdict verdict, const std::string& reason) {
    return [verdict, reason](const fleet::Offer&) {
      fleet::Answer answer;
      answer.verdict = verdict;
      answer.reason = reason;
      return std::optional(answer);
    };
  };
  const std::string alpha = world_.MakePool("alpha");
  world_.StartScheduler();
  world_.Join(alpha);
  world_.fleet().Answers(alpha, says(fleet::Answer::Verdict::kRejected, fleet::kClassDiffers));
  world_.MakeMachine("web");
  ExpectToWait("web");
  EXPECT_EQ(world_.fleet().offers(alpha).size(), 1U);
  world_.fleet().Answers(alpha, says(fleet::Answer::Verdict::kAccepted, ""));
  world_.Patch(
      apis::compute::kMachineClassKind, "small", R"({"metadata":{"labels":{"looked":"at"}}})");
  ExpectToBeBoundSoon("web");
}

// Before anything else happens that would wake anybody: nobody is told of the refusal yet.
TEST_F(WakeTest, RoomThatARefusedOfferGivesBackWakesWhoWaitsForIt) {
  const std::string alpha = world_.MakePool("alpha", 4);
  world_.StartScheduler();
  world_.Join(alpha, 4);
  const std::string big = world_.MakeMachine("big", "large");
  world_.fleet().Answers(
      alpha,
      [big](const fleet::Offer& offer) {
        using Verdict = fleet::Answer::Verdict;
        fleet::Answer answer;
        answer.verdict = offer.item.uid == big ? Verdict::kRejected : Verdict::kAccepted;
        return std::optional(answer);
      },
      Duration::Millis(100));
  const auto is_asked = [&] { return !world_.fleet().offers(alpha).empty(); };
  ASSERT_TRUE(world_.Until(is_asked, Duration::Millis(50)));
  world_.MakeMachine("web");
  const auto is_bound = [&] { return !world_.PoolOf("web").empty(); };
  EXPECT_TRUE(world_.Until(is_bound, Duration::Millis(400)));
}

// ---- The machine db on pool alpha brings a volume, which may go to the disks of that host.

class WakeVolumesTest : public WakeTest {
 protected:
  WakeVolumesTest() { world_.Join(world_.MakePool("alpha")); }

  std::string MakeDisks() { return world_.MakeVolumePool("disks", "host-alpha", "Host"); }
  void MakeMachineWithVolume() {
    apis::compute::Machine machine = world_.Machine("db");
    machine.spec.volumes.emplace_back().name = "data";
    machine.spec.volumes[0].volume_ref = apis::core::LocalObjectReference{.name = "data"};
    world_.MakeMachine(machine);
  }
  void ExpectAMachineToWait() {
    world_.StartScheduler();
    world_.MakeVolume("data", 40);
    MakeMachineWithVolume();
    ExpectToWait("db");
  }
};

TEST_F(WakeVolumesTest, AVolumePoolThatJoinsWakesTheMachineWhoseVolumeFitNowhere) {
  ExpectAMachineToWait();
  world_.JoinVolumePool(MakeDisks());
  ExpectToBeBoundSoon("db");
}

TEST_F(WakeVolumesTest, AVolumePoolThatIsUncordonedWakesTheMachineWhoseVolumeFitNowhere) {
  world_.JoinVolumePool(MakeDisks());
  world_.Patch(kVolumePoolKind, "disks", kCordon);
  ExpectAMachineToWait();
  world_.Patch(kVolumePoolKind, "disks", kUncordon);
  ExpectToBeBoundSoon("db");
}

TEST_F(WakeVolumesTest, AVolumePoolThatLosesATaintWakesTheMachineWhoseVolumeFitNowhere) {
  world_.JoinVolumePool(MakeDisks());
  world_.Patch(kVolumePoolKind, "disks", kTaint);
  ExpectAMachineToWait();
  world_.Patch(kVolumePoolKind, "disks", kUntaint);
  ExpectToBeBoundSoon("db");
}

TEST_F(WakeVolumesTest, AVolumePoolThatGainsRoomWakesTheMachineWhoseVolumeFitNowhere) {
  fleet::PoolFacts facts;
  facts.pool_uid = MakeDisks();
  facts.ledger = {.boot = "boot", .counter = 1};
  facts.capacity = {{"storage", 100LL << 30}};
  facts.allocated = {{"storage", 80LL << 30}};
  world_.fleet().Join(facts);
  ExpectAMachineToWait();
  facts.ledger.counter = 2;
  facts.allocated = {};
  world_.fleet().Report(facts);
  ExpectToBeBoundSoon("db");
}

TEST_F(WakeVolumesTest, AVolumePoolThatComesWithinReachWakesTheMachineThatHasItsVolumeThere) {
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-disks", "Zone"));
  world_.Patch(kVolumePoolKind, "disks", InZone("z2"));
  world_.Patch(kMachinePoolKind, "alpha", InZone("z1"));
  world_.StartScheduler();
  world_.MakeVolume("data", 40);
  ASSERT_TRUE(world_.Until([&] { return world_.VolumePoolOf("data") == "disks"; }));
  MakeMachineWithVolume();
  ExpectToWait("db");
  world_.Patch(kVolumePoolKind, "disks", InZone("z1"));
  ExpectToBeBoundSoon("db");
}

// ---- The machine db has its place on pool alpha, and names a volume later that no pool within
// reach has room for.

class WakeLateVolumesTest : public WakeVolumesTest {
 protected:
  void ExpectAVolumeToWait() {
    world_.StartScheduler();
    world_.MakeMachine("db");
    ASSERT_TRUE(world_.IsPlaced("db"));
    world_.NameVolumes("db", {"data"});
    world_.MakeVolume("data", 40);
    world_.RunFor(Duration::Minutes(1));
    ASSERT_EQ(world_.VolumePoolOf("data"), "");
  }
  void ExpectTheVolumeToBeBoundSoon() {
    const auto is_bound = [&] { return world_.VolumePoolOf("data") == "disks"; };
    EXPECT_TRUE(world_.Until(is_bound, Duration::Seconds(5)));
  }
};

TEST_F(WakeLateVolumesTest, AVolumePoolThatComesIntoTheZoneWakesTheVolume) {
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-disks", "Zone"));
  world_.Patch(kVolumePoolKind, "disks", InZone("z2"));
  world_.Patch(kMachinePoolKind, "alpha", InZone("z1"));
  ExpectAVolumeToWait();
  world_.Patch(kVolumePoolKind, "disks", InZone("z1"));
  ExpectTheVolumeToBeBoundSoon();
}

TEST_F(WakeLateVolumesTest, AHostThatComesIntoTheZoneWakesTheVolumeOfItsMachine) {
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-disks", "Zone"));
  world_.Patch(kVolumePoolKind, "disks", InZone("z2"));
  ExpectAVolumeToWait();
  world_.Patch(kMachinePoolKind, "alpha", InZone("z2"));
  ExpectTheVolumeToBeBoundSoon();
}

TEST_F(WakeLateVolumesTest, AVolumePoolWhoseHostIsKnownWakesTheVolume) {
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "", "Host"));
  ExpectAVolumeToWait();
  world_.Patch(kVolumePoolKind, "disks", R"({"spec":{"hostRef":{"name":"host-alpha"}}})");
  ExpectTheVolumeToBeBoundSoon();
}

TEST_F(WakeLateVolumesTest, AVolumePoolThatReachesFurtherWakesTheVolume) {
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-disks", "Host"));
  ExpectAVolumeToWait();
  world_.Patch(kVolumePoolKind, "disks", R"({"spec":{"reach":"Any"}})");
  ExpectTheVolumeToBeBoundSoon();
}

// ---- Zone a has two machines of a kind, and zone b one and no room for more: as long as b counts,
// a third one in a would be one too many.

class WakeSpreadTest : public WakeTest {
 protected:
  WakeSpreadTest() {
    world_.Join(world_.MakePool("alpha", 8, "a"));
    beta_ = world_.MakePool("beta", 1, "b");
    world_.Join(beta_, 1);
    world_.StartScheduler();
    for (const char* name : {"m-1", "m-2", "m-3"}) {
      MakeMachine(name);
      CHECK(world_.IsPlaced(name)) << name << ": " << world_.WhyNot(name);
    }
    MakeMachine("m-4");
    ExpectToWait("m-4");
  }
  void MakeMachine(const std::string& name) {
    apis::compute::Machine machine = world_.Machine(name);
    machine.metadata.labels["app"] = "web";
    apis::core::SpreadConstraint zones;
    zones.topology_key = "zone";
    zones.max_skew = 1;
    machine.spec.placement.emplace().spread.push_back(std::move(zones));
    world_.MakeMachine(std::move(machine));
  }
  std::string beta_;  // UID
};

TEST_F(WakeSpreadTest, AZoneThatIsCordonedHoldsTheOthersBackNoMore) {
  world_.Cordon("beta");
  ExpectToBeBoundSoon("m-4");
}

TEST_F(WakeSpreadTest, AZoneThatIsTaintedHoldsTheOthersBackNoMore) {
  world_.Patch(kMachinePoolKind, "beta", kTaint);
  ExpectToBeBoundSoon("m-4");
}

TEST_F(WakeSpreadTest, AZoneWhoseHostIsLostHoldsTheOthersBackNoMore) {
  world_.fleet().Leave(beta_);
  ExpectToBeBoundSoon("m-4");
}

}  // namespace
}  // namespace berth::scheduler
