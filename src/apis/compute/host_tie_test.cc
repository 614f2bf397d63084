// SPDX-License-Identifier: Apache-2.0
// Defends who is moved when a host is lost (PROTOCOL 3.2): not who has state there, and nobody of
// whom the host may think that it is kept.
#include "apis/compute/host_tie.h"

#include <gtest/gtest.h>

#include <map>

namespace berth::apis::compute {
namespace {

constexpr WallTime kNow = WallTime::FromSeconds(1000);

class HostTieTest : public testing::Test {
 protected:
  HostTieTest() {
    machine_.metadata.name = "web";
    machine_.spec.placement.emplace().on_pool_loss = core::kOnPoolLossMove;
    machine_.status.placement = core::PlacementStatus{.pool_uid = "p", .epoch = 1};
  }
  MachineVolume& AddDisk(const std::string& name) {
    machine_.spec.volumes.push_back({.name = name});
    return machine_.spec.volumes.back();
  }
  std::string Tie() {
    return HostTieOf(machine_, [this](const std::string& volume) { return reaches_[volume]; });
  }
  bool Look() { return SetMovable(machine_, Tie(), kNow); }
  // "False HostLocalState"; "" without the condition.
  std::string Movable() const {
    for (const MachineCondition& condition : machine_.status.conditions) {
      if (condition.type == "Movable") return condition.status + ' ' + condition.reason;
    }
    return "";
  }

  Machine machine_;
  std::map<std::string, std::string> reaches_;
};

TEST_F(HostTieTest, R3_2_DisksOfTheHostAndVolumesThatOnlyItReachesTieAMachine) {
  EXPECT_EQ(Tie(), "");
  AddDisk("data").volume_ref = core::LocalObjectReference{.name = "vol"};
  AddDisk("made").ephemeral.emplace();
  EXPECT_EQ(VolumesOf(machine_), (std::vector<std::string>{"vol", "web-made"}));
  for (const char* reach : {"", "Any", "Region", "Zone"}) {
    reaches_["vol"] = reach;
    EXPECT_EQ(Tie(), "") << reach;
  }
  reaches_["web-made"] = "Host";
  EXPECT_EQ(Tie(), "its volume web-made can be reached from this host only");
  reaches_["vol"] = "Host";
  EXPECT_EQ(Tie(), "its volume vol can be reached from this host only");
  machine_.spec.volumes.clear();
  AddDisk("scratch").empty_disk.emplace();
  EXPECT_EQ(Tie(), "its disk scratch is on this host only");
  machine_.spec.volumes.clear();
  AddDisk("root").local_disk.emplace();
  EXPECT_EQ(Tie(), "its disk root is on this host only");
}

TEST_F(HostTieTest, R3_2_AMachineWithADiskOnItsHostIsKeptFromTheFirstMoment) {
  EXPECT_TRUE(DiesWithContact(machine_));
  EXPECT_TRUE(MovesOnPoolLoss(machine_));
  AddDisk("root").local_disk.emplace();
  EXPECT_FALSE(DiesWithContact(machine_));
  EXPECT_FALSE(MovesOnPoolLoss(machine_));
}

TEST_F(HostTieTest, R3_2_ATiedMachineSaysWhatTiesItAndIsKept) {
  EXPECT_FALSE(Look());
  EXPECT_EQ(Movable(), "");
  AddDisk("data").volume_ref = core::LocalObjectReference{.name = "vol"};
  reaches_["vol"] = "Host";
  EXPECT_TRUE(Look());
  EXPECT_FALSE(Look()) << "said once";
  EXPECT_EQ(Movable(), "False HostLocalState");
  EXPECT_EQ(machine_.status.conditions[0].message,
            "its volume vol can be reached from this host only: if its host is lost it is kept, as "
            "with Keep, and not moved");
  EXPECT_EQ(machine_.status.conditions[0].last_transition_time, kNow);
  EXPECT_FALSE(DiesWithContact(machine_));
  EXPECT_FALSE(MovesOnPoolLoss(machine_));
}

TEST_F(HostTieTest, R3_2_MoveHoldsAgainOnceTheHostKnowsThatNothingTiesIt) {
  AddDisk("root").local_disk.emplace();
  ASSERT_TRUE(Look());
  machine_.spec.volumes.clear();
  EXPECT_FALSE(MovesOnPoolLoss(machine_)) << "its host was told to keep it";
  EXPECT_TRUE(Look());
  EXPECT_EQ(Movable(), "Unknown HostNotTold");
  EXPECT_TRUE(DiesWithContact(machine_)) << "that is what the host is told";
  EXPECT_FALSE(MovesOnPoolLoss(machine_)) << "but perhaps it was not reached";
  EXPECT_FALSE(Look());
  EXPECT_TRUE(HostWasTold(machine_));
  EXPECT_EQ(Movable(), "");
  EXPECT_TRUE(MovesOnPoolLoss(machine_));
  EXPECT_FALSE(HostWasTold(machine_));
}

TEST_F(HostTieTest, R3_2_AnOldWordOfTheHostDoesNotFreeWhatIsTied) {
  AddDisk("root").local_disk.emplace();
  ASSERT_TRUE(Look());
  EXPECT_FALSE(HostWasTold(machine_));
  EXPECT_EQ(Movable(), "False HostLocalState");
}

TEST_F(HostTieTest, WithoutAPlaceOrTheWishThereIsNobodyToTell) {
  AddDisk("root").local_disk.emplace();
  ASSERT_TRUE(Look());
  machine_.spec.volumes.clear();
  machine_.status.placement->pool_uid.clear();
  EXPECT_TRUE(Look());
  EXPECT_EQ(Movable(), "");

  AddDisk("root").local_disk.emplace();
  machine_.status.placement->pool_uid = "p";
  ASSERT_TRUE(Look());
  machine_.spec.placement->on_pool_loss = core::kOnPoolLossKeep;
  EXPECT_TRUE(Look());
  EXPECT_EQ(Movable(), "");
  EXPECT_FALSE(DiesWithContact(machine_));
}

// Its host has it as one that is kept, and does not kill it.
TEST(HostTie, R3_2_AWishToMoveThatComesLaterWaitsForTheHost) {
  Machine before;
  before.status.placement.emplace();
  before.status.placement->pool_uid = "pool";
  Machine machine = before;
  machine.spec.placement.emplace().on_pool_loss = core::kOnPoolLossMove;
  NoteNewWish(machine, before);
  EXPECT_TRUE(DiesWithContact(machine)) << "its host is told";
  EXPECT_FALSE(MovesOnPoolLoss(machine));
  EXPECT_TRUE(HostWasTold(machine));
  EXPECT_TRUE(MovesOnPoolLoss(machine));
  // The next write wishes nothing new, and a machine without a place has nobody to wait for.
  const Machine known = machine;
  NoteNewWish(machine, known);
  EXPECT_TRUE(MovesOnPoolLoss(machine));
  Machine free = machine;
  free.status.placement.reset();
  Machine free_before = free;
  free_before.spec.placement.reset();
  NoteNewWish(free, free_before);
  EXPECT_TRUE(MovesOnPoolLoss(free));
}

}  // namespace
}  // namespace berth::apis::compute
