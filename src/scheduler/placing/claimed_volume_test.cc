// SPDX-License-Identifier: Apache-2.0
// A machine that lost its host still has what it claimed: a volume whose deletion waits for it does
// not keep it from a new place.
#include <gtest/gtest.h>

#include <string>

#include "apis/core/well_known.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

class ClaimedVolumeTest : public testing::Test {
 protected:
  static constexpr const char* kNamespace = SchedulerWorld::kNamespace;

  // "web" on pool alpha with its volume "data", which its user has deleted; beta has joined too.
  ClaimedVolumeTest() {
    const std::string alpha = world_.MakePool("alpha");
    world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-disks", "Any"));
    world_.StartScheduler();
    world_.Join(alpha);
    world_.MakeVolume("data");
    world_.MakeMachine("web");
    world_.NameVolumes("web", {"data"});
    CHECK(world_.IsPlaced("web"));
    CHECK(world_.Until([&] { return world_.GetVolume("data").spec.claim_ref.has_value(); }));
    DeleteVolume();
    world_.Join(world_.MakePool("beta"));
    world_.Cordon("alpha");
  }
  void DeleteVolume() {
    const Status deleted = world_.api().Run(
        world_.api().client().Delete(apis::storage::kVolumeKind, {kNamespace, "data"}, {}));
    CHECK(deleted.ok()) << deleted;
    CHECK(world_.GetVolume("data").metadata.deletion_timestamp);
  }

  SchedulerWorld world_{11};
};

TEST_F(ClaimedVolumeTest, R4_6_AMachineThatLostItsHostIsBoundAgainWithAVolumeThatWaitsForIt) {
  world_.LetGo(apis::compute::kMachineKind, "web", "PoolLost", client::UnbindProof::kFenced);
  ASSERT_TRUE(world_.IsPlaced("web")) << world_.WhyNot("web");
  EXPECT_EQ(world_.PoolOf("web"), "beta");
  const auto volume = world_.GetVolume("data");
  EXPECT_EQ(volume.spec.claim_ref->name, "web");
  EXPECT_TRUE(volume.metadata.deletion_timestamp) << "its deletion is only deferred";
  // Nobody else gets it.
  world_.MakeMachine("other");
  world_.NameVolumes("other", {"data"});
  const auto says = [&] { return world_.WhyNot("other") == "Volume data is being deleted"; };
  EXPECT_TRUE(world_.Until(says)) << world_.WhyNot("other") << world_.PoolOf("other");
}

TEST_F(ClaimedVolumeTest, R4_6_AVolumeThatLostItsPlaceTooGetsNoOtherAndTheMachineSaysHowToGoOn) {
  world_.LetGo(apis::storage::kVolumeKind, "data", "NoDisk");
  world_.LetGo(apis::compute::kMachineKind, "web", "PoolLost", client::UnbindProof::kFenced);
  const std::string why =
      "Volume data is being deleted and gets no pool any more: it goes when the machine is deleted "
      "or does not name it in spec.volumes any more";
  ASSERT_TRUE(world_.Until([&] { return world_.WhyNot("web") == why; })) << world_.WhyNot("web");
  EXPECT_EQ(world_.PoolOf("web"), "");
  world_.NameVolumes("web", {});
  ASSERT_TRUE(world_.IsPlaced("web")) << world_.WhyNot("web");
}

}  // namespace
}  // namespace berth::scheduler
