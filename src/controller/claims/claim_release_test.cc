// SPDX-License-Identifier: Apache-2.0
#include "controller/claims/claim_release.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "apis/compute/machine.h"
#include "apis/storage/volume.h"
#include "apiserver/registry/registry_world.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::storage::kVolumeKind;
using apis::storage::Volume;

class ClaimReleaseTest : public testing::Test {
 protected:
  ClaimReleaseTest() {
    world_.MakeNamespace("team");
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    claims_ = std::make_unique<ClaimRelease>(world_.loop(), world_.client());
    scope_->Spawn("claims", claims_->Run());
  }
  ~ClaimReleaseTest() override { EXPECT_TRUE(world_.Run(scope_->Close()).ok()); }

  std::string MakeMachine(const std::string& name) {
    Machine machine;
    machine.metadata.namespace_ = "team";
    machine.metadata.name = name;
    machine.spec.machine_class_ref.name = "small";
    auto made = world_.Run(world_.client().Create(meta::Object::Of(kMachineKind, machine), {}));
    CHECK(made.ok()) << made.status();
    return made->metadata().uid;
  }
  void MakeVolume(const std::string& name, const std::string& machine, const std::string& uid) {
    Volume volume;
    volume.metadata.namespace_ = "team";
    volume.metadata.name = name;
    volume.spec.volume_class_ref.emplace().name = "fast";
    volume.spec.resources["storage"] = *meta::Quantity::Parse("1Gi");
    volume.spec.claim_ref.emplace();
    volume.spec.claim_ref->name = machine;
    volume.spec.claim_ref->uid = uid;
    auto made = world_.Run(world_.client().Create(meta::Object::Of(kVolumeKind, volume), {}));
    CHECK(made.ok()) << made.status();
  }
  bool IsClaimed(const std::string& name) {
    const auto found = world_.Run(world_.client().Get(kVolumeKind, {"team", name}));
    CHECK(found.ok()) << found.status();
    return found->as<Volume>().spec.claim_ref.has_value();
  }
  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < 500; ++i) {
      if (done()) return true;
      world_.loop().RunFor(Duration::Millis(20));
    }
    return false;
  }

  apiserver::RegistryWorld world_{12};
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<ClaimRelease> claims_;
};

TEST_F(ClaimReleaseTest, R6_3_AClaimEndsWithItsMachine) {
  const std::string uid = MakeMachine("a");
  MakeVolume("data", "a", uid);
  world_.loop().RunFor(Duration::Seconds(2));
  EXPECT_TRUE(IsClaimed("data"));
  ASSERT_TRUE(world_.Run(world_.client().Delete(kMachineKind, {"team", "a"}, {})).ok());
  EXPECT_TRUE(Until([&] { return !IsClaimed("data"); }));
}

TEST_F(ClaimReleaseTest, R6_3_AClaimOfAMachineOfTheSameNameThatIsGoneEndsToo) {
  MakeMachine("a");
  MakeVolume("data", "a", "00000000-0000-4000-8000-00000000dead");
  EXPECT_TRUE(Until([&] { return !IsClaimed("data"); })) << "the UID counts";
}

TEST_F(ClaimReleaseTest, R6_3_AClaimOfOneWhoIsDeletedButNotGoneStays) {
  const std::string uid = MakeMachine("a");
  auto found = world_.Run(world_.client().Get(kMachineKind, {"team", "a"}));
  ASSERT_TRUE(found.ok());
  meta::Object kept = *found;
  kept.metadata().finalizers = {"test.example/keeps"};
  ASSERT_TRUE(world_.Run(world_.client().Update(kept, {})).ok());
  MakeVolume("data", "a", uid);
  ASSERT_TRUE(world_.Run(world_.client().Delete(kMachineKind, {"team", "a"}, {})).ok());
  world_.loop().RunFor(Duration::Seconds(20));
  EXPECT_TRUE(IsClaimed("data")) << "its host may still run it";
}

TEST_F(ClaimReleaseTest, R6_3_AClaimEndsWhenTheHostOfItsMachineHasLetGo) {
  const std::string uid = MakeMachine("a");
  MakeVolume("data", "a", uid);
  const auto report = [&](std::function<void(Machine&)> change) {
    auto found = world_.Run(world_.client().Get(kMachineKind, {"team", "a"}));
    CHECK(found.ok()) << found.status();
    change(found->as<Machine>());
    client::WriteOptions options;
    options.subresource = client::Subresource::kStatus;
    const Status written = world_.Run(world_.client().Update(*found, options)).status();
    CHECK(written.ok()) << written;
    world_.loop().RunFor(Duration::Seconds(5));
  };
  report([](Machine& machine) {
    machine.status.machine_id = "test://m-1";
    machine.status.observed_generation = machine.metadata.generation - 1;
  });
  EXPECT_TRUE(IsClaimed("data")) << "the host does not know yet that nobody names it";
  report([](Machine& machine) {
    machine.status.observed_generation = machine.metadata.generation;
    machine.status.volumes.push_back({.name = "data", .state = "Attached", .volume_ref = {"data"}});
  });
  EXPECT_TRUE(IsClaimed("data")) << "the host has it";
  report([](Machine& machine) { machine.status.volumes.clear(); });
  EXPECT_TRUE(Until([&] { return !IsClaimed("data"); }));
}

}  // namespace
}  // namespace berth::controller
