// SPDX-License-Identifier: Apache-2.0
// Defends that what decodes and no validation would have let in stops no controller: each goes on
// with what is healthy, whether such objects are there at its start, come, or go.
#include "apiserver/registry/poison.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/berth/machine_set.h"
#include "apis/compute/machine_class.h"
#include "apis/core/resource_quota.h"
#include "apis/ipam/prefix.h"
#include "apis/k8s/secret.h"
#include "apis/networking/network_interface.h"
#include "apiserver/registry/placement_world.h"
#include "controller/builtin/builtin_controllers.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::berth_dev::kMachineSetKind;
using apis::berth_dev::MachineSet;
using apis::compute::kMachineClassKind;
using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::core::kResourceQuotaKind;
using apis::core::ResourceQuota;
using apis::ipam::kPrefixKind;
using apis::ipam::Prefix;
using apis::k8s::kSecretKind;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::NetworkInterface;
using apiserver::PlacementWorld;
using meta::Object;

class PoisonedControllersTest : public testing::Test {
 protected:
  PoisonedControllersTest() {
    taken_ = world_.MakePool("taken", 1000);
    const std::string disks = world_.MakeVolumePool("taken-disks", 1LL << 40);
    poisons_ = apiserver::Poisons(world_.scheme(), "default", taken_, disks);
    Taint("taken");
    Make(kMachineClassKind, "small", R"({"capabilities":{"cpu":"1","memory":"1Gi"}})");
  }
  ~PoisonedControllersTest() override { EXPECT_TRUE(world_.Run(scope_.Close()).ok()); }

  void Start() {
    controllers_ =
        std::make_unique<BuiltinControllers>(world_.loop(), world_.client(), world_.scheme());
    scope_.Spawn("controllers", controllers_->Run());
  }
  void PutAll() {
    for (const Object& poison : poisons_) apiserver::PutByHand(world_, poison);
  }
  void RemoveAll() {
    for (const Object& poison : poisons_) apiserver::RemoveByHand(world_, poison);
  }

  Object Make(const meta::KindInfo& kind, const std::string& name, const std::string& json) {
    Object object(kind);
    const Status decoded = meta::DecodeJson(json, *kind.type, object.data());
    CHECK(decoded.ok()) << decoded;
    object.metadata().name = name;
    if (kind.scope == meta::Scope::kNamespaced) object.metadata().namespace_ = "default";
    return PlacementWorld::Must(world_.Run(world_.client().Create(std::move(object), {})));
  }
  void Taint(const std::string& pool) {
    const auto tainted = world_.Run(
        world_.client().Patch(apis::compute::kMachinePoolKind,
                              {"", pool},
                              client::PatchType::kMerge,
                              R"({"spec":{"taints":[{"key":"fire","effect":"NoExecute"}]}})",
                              {}));
    CHECK(tainted.ok()) << tainted.status();
  }
  template <class Done>
  bool Until(Done done) {
    for (int i = 0; i < 1200; ++i) {
      if (done()) return true;
      world_.loop().RunFor(Duration::Millis(50));
    }
    return false;
  }

  // One thing of each controller, with names that begin so.
  void ExpectWork(const std::string& prefix) {
    ExpectCollected(prefix);
    ExpectProtected(prefix);
    ExpectMembers(prefix);
    ExpectAddress(prefix);
    ExpectCounted(prefix);
    ExpectEvicted(prefix);
  }
  void ExpectCollected(const std::string& prefix) {
    const Object owner = Make(kSecretKind, prefix + "-owner", "{}");
    const Object child =
        Make(kSecretKind,
             prefix + "-child",
             R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":")" +
                 owner.metadata().name + R"(","uid":")" + owner.metadata().uid + R"("}]}})");
    ASSERT_TRUE(world_.Delete(owner).ok());
    EXPECT_TRUE(Until([&] { return !world_.Exists(child); })) << prefix;
  }
  void ExpectProtected(const std::string& prefix) {
    const Object size =
        Make(kMachineClassKind, prefix + "-size", R"({"capabilities":{"cpu":"1","memory":"1Gi"}})");
    const Object user = Make(kMachineKind,
                             prefix + "-user",
                             R"({"spec":{"machineClassRef":{"name":")" + prefix + R"(-size"}}})");
    EXPECT_TRUE(Until([&] { return !world_.Read(size).metadata().finalizers.empty(); })) << prefix;
    ASSERT_TRUE(world_.Delete(size).ok());
    world_.loop().RunFor(Duration::Seconds(2));
    EXPECT_TRUE(world_.Exists(size)) << prefix;
    ASSERT_TRUE(world_.Delete(user).ok());
    EXPECT_TRUE(Until([&] { return !world_.Exists(size); })) << prefix;
  }
  void ExpectMembers(const std::string& prefix) {
    const Object set = Make(kMachineSetKind,
                            prefix + "-set",
                            R"({"spec":{"replicas":3,"selector":{"matchLabels":{"of":")" + prefix +
                                R"("}},"template":{"metadata":{"labels":{"of":")" + prefix +
                                R"("}},"spec":{"machineClassRef":{"name":"small"}}}}})");
    EXPECT_TRUE(Until([&] { return world_.Read(set).as<MachineSet>().status.replicas == 3; }))
        << prefix;
  }
  void ExpectAddress(const std::string& prefix) {
    Make(kPrefixKind, prefix + "-net", R"({"spec":{"ipFamily":"IPv4","prefix":"10.0.0.0/24"}})");
    const Object nic = Make(kNetworkInterfaceKind,
                            prefix + "-nic",
                            R"({"spec":{"networkRef":{"name":"net"},"ipFamilies":["IPv4"],"ips":[
                            {"ephemeral":{"prefixTemplate":{"spec":{"ipFamily":"IPv4","parentRef":
                            {"name":")" +
                                prefix + R"(-net"}}}}}]}})");
    EXPECT_TRUE(Until([&] { return !world_.Read(nic).as<NetworkInterface>().status.ips.empty(); }))
        << prefix;
  }
  void ExpectCounted(const std::string& prefix) {
    const Object quota =
        Make(kResourceQuotaKind,
             prefix + "-quota",
             R"({"spec":{"hard":{"count/machines.compute.ironcore.dev":"1000"}}})");
    EXPECT_TRUE(Until([&] {
      return world_.Read(quota).as<ResourceQuota>().status.used.contains(
          "count/machines.compute.ironcore.dev");
    })) << prefix;
  }
  void ExpectEvicted(const std::string& prefix) {
    const std::string pool = prefix + "-pool";
    const std::string uid = world_.MakePool(pool, 100);
    const Object machine = world_.MakeMachine(prefix + "-leaves");
    const auto bound = world_.Bind(machine, pool, uid);
    ASSERT_TRUE(bound.ok()) << bound.status();
    Taint(pool);
    const auto leaves = [this](const Object& it) {
      return world_.Read(it).as<Machine>().status.placement->release == "Taint";
    };
    EXPECT_TRUE(Until([&] { return leaves(machine); })) << prefix;
    // Beside those that cannot be asked, which come first.
    const Object beside = world_.MakeMachine(prefix + "-beside");
    const auto there = world_.Bind(beside, "taken", taken_);
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_TRUE(Until([&] { return leaves(beside); })) << prefix;
  }

  PlacementWorld world_{5};
  std::string taken_;
  std::vector<Object> poisons_;
  rt::TaskScope scope_{world_.loop()};
  std::unique_ptr<BuiltinControllers> controllers_;
};

TEST_F(PoisonedControllersTest, WhatIsThereAtTheStartStopsNone) {
  PutAll();
  Start();
  ExpectWork("first");
  RemoveAll();
  ExpectWork("second");
}

TEST_F(PoisonedControllersTest, WhatComesAndGoesStopsNone) {
  Start();
  ExpectWork("first");
  PutAll();
  ExpectWork("second");
  RemoveAll();
  world_.loop().RunFor(Duration::Minutes(5));
  ExpectWork("third");
}

}  // namespace
}  // namespace berth::controller
