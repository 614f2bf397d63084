// SPDX-License-Identifier: Apache-2.0
// Defends that Move is refused, with the reason, for machines whose state is on their host only
// (PROTOCOL 3.2), and that it holds again when what tied them is gone.
#include "controller/move_refusal/move_refusal.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/storage/volume_pool.h"
#include "apiserver/registry/placement_world.h"

namespace berth::controller {
namespace {

using apis::compute::Machine;
using apiserver::PlacementWorld;

class MoveRefusalTest : public testing::Test {
 protected:
  MoveRefusalTest() {
    pool_uid_ = world_.MakePool("alpha", 100);
    disks_uid_ = world_.MakeVolumePool("disks", 100);
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    refusal_ = std::make_unique<MoveRefusal>(world_.loop(), world_.client());
    scope_->Spawn("refusal", refusal_->Run());
    Pass();
  }
  ~MoveRefusalTest() override { EXPECT_TRUE(world_.Run(scope_->Close()).ok()); }

  meta::Object Make(const std::string& name, const std::vector<std::string>& volumes = {}) {
    meta::Object machine = PlacementWorld::Machine(name, volumes);
    machine.as<Machine>().spec.placement.emplace().on_pool_loss = apis::core::kOnPoolLossMove;
    return PlacementWorld::Must(world_.Run(world_.client().Create(machine, {})));
  }
  void Reach(const std::string& reach) {
    const auto patched =
        world_.Run(world_.client().Patch(apis::storage::kVolumePoolKind,
                                         {"", "disks"},
                                         client::PatchType::kMerge,
                                         R"({"spec":{"reach":")" + reach + R"("}})",
                                         {}));
    ASSERT_TRUE(patched.ok()) << patched.status();
    Pass();
  }
  // "False HostLocalState its volume ..."; "" without the condition.
  std::string Movable(const meta::Object& machine) {
    const meta::Object now = world_.Read(machine);
    for (const auto& condition : now.as<Machine>().status.conditions) {
      if (condition.type != "Movable") continue;
      return condition.status + ' ' + condition.reason + ' ' + condition.message;
    }
    return "";
  }
  void Pass() { world_.loop().RunFor(Duration::Seconds(2)); }

  PlacementWorld world_{5};
  std::string pool_uid_;
  std::string disks_uid_;
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<MoveRefusal> refusal_;
};

TEST_F(MoveRefusalTest, R3_2_ADiskOnTheHostIsNamedAndGoesWithoutAPlaceAtOnce) {
  meta::Object machine = PlacementWorld::Machine("tied");
  machine.as<Machine>().spec.placement.emplace().on_pool_loss = apis::core::kOnPoolLossMove;
  machine.as<Machine>().spec.volumes.push_back({.name = "scratch"});
  machine.as<Machine>().spec.volumes[0].local_disk.emplace();
  machine = PlacementWorld::Must(world_.Run(world_.client().Create(machine, {})));
  const meta::Object free = Make("free");
  Pass();
  EXPECT_EQ(Movable(machine),
            "False HostLocalState its disk scratch is on this host only: if its host is lost it is "
            "kept, as with Keep, and not moved");
  EXPECT_EQ(Movable(free), "");
  ASSERT_TRUE(world_.Patch(machine, R"({"spec":{"volumes":null}})").ok());
  Pass();
  EXPECT_EQ(Movable(machine), "");
  EXPECT_TRUE(refusal_->idle());
}

TEST_F(MoveRefusalTest, R3_2_AVolumeThatOnlyTheHostReachesTiesItsMachineFromItsPlaceOn) {
  Reach("Host");
  const meta::Object volume = world_.MakeVolume("data");
  const meta::Object machine = Make("tied", {"data"});
  Pass();
  EXPECT_EQ(Movable(machine), "") << "the volume may come to be anywhere";
  ASSERT_TRUE(world_
                  .Bind(PlacementWorld::RequestFor(
                      {PlacementWorld::ItemFor(machine, "alpha", pool_uid_),
                       PlacementWorld::ItemFor(volume, "disks", disks_uid_, {{"storage", 10}})}))
                  .ok());
  Pass();
  EXPECT_NE(Movable(machine).find("False HostLocalState its volume data"), std::string::npos)
      << Movable(machine);
}

TEST_F(MoveRefusalTest, R3_2_WhatIsReachedFromElsewhereTiesNobodyAnyMoreOnceTheHostKnows) {
  Reach("Host");
  const meta::Object volume = world_.MakeVolume("data");
  const meta::Object machine = Make("tied", {"data"});
  ASSERT_TRUE(world_
                  .Bind(PlacementWorld::RequestFor(
                      {PlacementWorld::ItemFor(machine, "alpha", pool_uid_),
                       PlacementWorld::ItemFor(volume, "disks", disks_uid_, {{"storage", 10}})}))
                  .ok());
  Pass();
  ASSERT_NE(Movable(machine), "");
  Reach("Any");
  EXPECT_EQ(Movable(machine),
            "Unknown HostNotTold what tied it to its host is gone; it may be moved once its host "
            "knows");
  world_.loop().RunFor(Duration::Minutes(10));
  EXPECT_NE(Movable(machine), "") << "only its host's word ends it";
  Reach("Host");
  EXPECT_NE(Movable(machine).find("False HostLocalState"), std::string::npos) << Movable(machine);
}

TEST_F(MoveRefusalTest, AMachineThatDoesNotAskToMoveSaysNothing) {
  meta::Object machine = PlacementWorld::Machine("kept");
  machine.as<Machine>().spec.volumes.push_back({.name = "scratch"});
  machine.as<Machine>().spec.volumes[0].local_disk.emplace();
  machine = PlacementWorld::Must(world_.Run(world_.client().Create(machine, {})));
  Pass();
  EXPECT_EQ(Movable(machine), "");
  ASSERT_TRUE(world_.Patch(machine, R"({"spec":{"placement":{"onPoolLoss":"Move"}}})").ok());
  Pass();
  EXPECT_NE(Movable(machine), "");
  ASSERT_TRUE(world_.Patch(machine, R"({"spec":{"placement":{"onPoolLoss":"Keep"}}})").ok());
  Pass();
  EXPECT_EQ(Movable(machine), "");
}

}  // namespace
}  // namespace berth::controller
