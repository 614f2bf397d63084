// SPDX-License-Identifier: Apache-2.0
// Defends: what does not tolerate a NoExecute taint leaves in time, through its host, and what
// cannot leave says why.
#include "controller/taint_eviction/taint_eviction.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/storage/volume_pool.h"
#include "apiserver/registry/placement_world.h"

namespace berth::controller {
namespace {

using apis::compute::Machine;

class TaintEvictionTest : public testing::Test {
 protected:
  TaintEvictionTest() {
    pool_uid_ = world_.MakePool("alpha", 100);
    Start();
  }
  ~TaintEvictionTest() override { Stop(); }
  void Start() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    eviction_ = std::make_unique<TaintEviction>(world_.loop(), world_.client(), world_.scheme());
    scope_->Spawn("eviction", eviction_->Run());
  }
  void Stop() {
    if (scope_ == nullptr) return;
    EXPECT_TRUE(world_.Run(scope_->Close()).ok());
    eviction_.reset();
    scope_.reset();
  }

  void Place(const std::string& name,
             const std::function<void(Machine&)>& change,
             const std::string& pool,
             const std::string& pool_uid) {
    meta::Object machine = apiserver::PlacementWorld::Machine(name);
    change(machine.as<Machine>());
    machine = apiserver::PlacementWorld::Must(world_.Run(world_.client().Create(machine, {})));
    const auto bound = world_.Bind(machine, pool, pool_uid);
    ASSERT_TRUE(bound.ok()) << bound.status();
  }
  void Place(const std::string& name, const std::function<void(Machine&)>& change) {
    Place(name, change, "alpha", pool_uid_);
  }
  static std::function<void(Machine&)> Tolerating(std::optional<int64_t> seconds) {
    return [seconds](Machine& machine) {
      machine.spec.tolerations.push_back({.key = "fire",
                                          .operator_ = "Exists",
                                          .value = "",
                                          .effect = "NoExecute",
                                          .toleration_seconds = seconds});
    };
  }
  void Taint(const std::string& pool, const std::string& taints) {
    const auto patched = world_.Run(world_.client().Patch(apis::compute::kMachinePoolKind,
                                                          {"", pool},
                                                          client::PatchType::kMerge,
                                                          R"({"spec":{"taints":[)" + taints + "]}}",
                                                          {}));
    ASSERT_TRUE(patched.ok()) << patched.status();
  }
  Machine Get(const std::string& name) {
    const auto got =
        world_.Run(world_.client().Get(apis::compute::kMachineKind, {"default", name}));
    EXPECT_TRUE(got.ok()) << got.status();
    return got->as<Machine>();
  }
  std::string ReleaseOf(const std::string& name) { return Get(name).status.placement->release; }
  std::string Released(const std::string& name) {
    for (const auto& condition : Get(name).status.conditions) {
      if (condition.type == "Released") return condition.status + ": " + condition.message;
    }
    return "";
  }
  void RunFor(Duration duration) { world_.loop().RunFor(duration); }

  static constexpr char kFire[] = R"({"key":"fire","effect":"NoExecute"})";
  apiserver::PlacementWorld world_{3};
  std::string pool_uid_;
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<TaintEviction> eviction_;
};

TEST_F(TaintEvictionTest, WhatDoesNotTolerateTheTaintLeavesAndTheRestStays) {
  Place("none", [](Machine&) {});
  Place("ever", Tolerating(std::nullopt));
  Place("soon", Tolerating(60));
  RunFor(Duration::Seconds(1));
  EXPECT_EQ(eviction_->watched(), 0U);
  Taint("alpha", kFire);
  RunFor(Duration::Seconds(2));
  EXPECT_EQ(eviction_->watched(), 1U);
  EXPECT_EQ(ReleaseOf("none"), "Taint");
  EXPECT_EQ(Released("none"),
            "True: pool alpha has the taint fire:NoExecute: it is stopped and looks for another "
            "place");
  EXPECT_EQ(ReleaseOf("soon"), "");
  RunFor(Duration::Seconds(55));
  EXPECT_EQ(ReleaseOf("soon"), "");
  RunFor(Duration::Seconds(6));
  EXPECT_EQ(ReleaseOf("soon"), "Taint");
  RunFor(Duration::Minutes(60));
  EXPECT_EQ(ReleaseOf("ever"), "");
}

TEST_F(TaintEvictionTest, ATaintThatGoesInTimeDoesNothing) {
  Place("soon", Tolerating(60));
  Taint("alpha", kFire);
  RunFor(Duration::Seconds(30));
  Taint("alpha", "");
  RunFor(Duration::Seconds(60));
  EXPECT_EQ(ReleaseOf("soon"), "");
  EXPECT_EQ(eviction_->watched(), 0U);
  // And counts anew when it comes again.
  Taint("alpha", kFire);
  RunFor(Duration::Seconds(50));
  EXPECT_EQ(ReleaseOf("soon"), "");
  RunFor(Duration::Seconds(12));
  EXPECT_EQ(ReleaseOf("soon"), "Taint");
}

TEST_F(TaintEvictionTest, ARestartDoesNotBeginToCountAnew) {
  Place("soon", Tolerating(60));
  Taint("alpha", kFire);
  RunFor(Duration::Seconds(40));
  Stop();
  RunFor(Duration::Seconds(10));
  Start();
  RunFor(Duration::Seconds(8));
  EXPECT_EQ(ReleaseOf("soon"), "");
  RunFor(Duration::Seconds(4));
  EXPECT_EQ(ReleaseOf("soon"), "Taint");
}

TEST_F(TaintEvictionTest, WhoComesToATaintedPoolHasItsSecondsFromThenOn) {
  Taint("alpha", kFire);
  RunFor(Duration::Minutes(10));
  Place("late", Tolerating(60));
  RunFor(Duration::Seconds(55));
  EXPECT_EQ(ReleaseOf("late"), "");
  RunFor(Duration::Seconds(7));
  EXPECT_EQ(ReleaseOf("late"), "Taint");
}

TEST_F(TaintEvictionTest, ARestrictedTaintIsToleratedByWhoNamesItOnly) {
  const auto tolerating = [](const std::string& key) {
    return [key](Machine& machine) {
      machine.spec.tolerations.push_back({.key = key, .operator_ = "Exists"});
    };
  };
  Place("all", tolerating(""));
  Place("named", tolerating("restricted.berth.dev/gpu"));
  Taint("alpha", R"({"key":"restricted.berth.dev/gpu","effect":"NoExecute"})");
  RunFor(Duration::Seconds(2));
  EXPECT_EQ(ReleaseOf("all"), "Taint");
  EXPECT_EQ(ReleaseOf("named"), "");
}

TEST_F(TaintEvictionTest, AMachineWithStateOnItsHostStaysAndSaysWhy) {
  Place("tied", [](Machine& machine) {
    machine.spec.volumes.push_back({.name = "scratch"});
    machine.spec.volumes[0].empty_disk.emplace();
  });
  Taint("alpha", kFire);
  RunFor(Duration::Seconds(2));
  EXPECT_EQ(ReleaseOf("tied"), "");
  EXPECT_EQ(Released("tied"),
            "False: pool alpha has the taint fire:NoExecute, but it stays: its disk scratch is on "
            "this host only");
}

TEST_F(TaintEvictionTest, R4_1_AMachineOnAPoolThatSpeaksTheApiStaysAndSaysWhy) {
  const std::string legacy = world_.MakePool("legacy", 100, apis::core::kPoolModeApi);
  Place("old", [](Machine&) {}, "legacy", legacy);
  Taint("legacy", kFire);
  RunFor(Duration::Seconds(2));
  EXPECT_EQ(ReleaseOf("old"), "");
  EXPECT_NE(Released("old").find("speaks the API"), std::string::npos) << Released("old");
}

TEST_F(TaintEvictionTest, AMachineWithAVolumeOfItsHostStaysAndSaysWhy) {
  const std::string disks = world_.MakeVolumePool("disks", 100);
  const auto patched = world_.Run(world_.client().Patch(apis::storage::kVolumePoolKind,
                                                        {"", "disks"},
                                                        client::PatchType::kMerge,
                                                        R"({"spec":{"reach":"Host"}})",
                                                        {}));
  ASSERT_TRUE(patched.ok()) << patched.status();
  const meta::Object volume = world_.MakeVolume("data");
  const meta::Object machine = world_.MakeMachine("tied", {"data"});
  const auto bound = world_.Bind(apiserver::PlacementWorld::RequestFor(
      {apiserver::PlacementWorld::ItemFor(machine, "alpha", pool_uid_),
       apiserver::PlacementWorld::ItemFor(volume, "disks", disks, {{"storage", 10}})}));
  ASSERT_TRUE(bound.ok()) << bound.status();
  Taint("alpha", kFire);
  RunFor(Duration::Seconds(2));
  EXPECT_EQ(ReleaseOf("tied"), "");
  EXPECT_NE(Released("tied").find("its volume data"), std::string::npos) << Released("tied");
}

}  // namespace
}  // namespace berth::controller
