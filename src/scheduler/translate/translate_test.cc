// SPDX-License-Identifier: Apache-2.0
#include "scheduler/translate/translate.h"

#include <gtest/gtest.h>

#include "apis/core/placement.h"
#include "apis/core/pool_parts.h"
#include "fleet/fleet.h"

namespace berth::scheduler {
namespace {

using apis::compute::Machine;
using apis::compute::MachineClass;
using apis::compute::MachinePool;

meta::Quantity Q(std::string_view text) { return *meta::Quantity::Parse(text); }

MachinePool SessionPool() {
  MachinePool pool;
  pool.metadata.name = "alpha";
  pool.metadata.uid = "u-1";
  pool.metadata.labels["zone"] = "a";
  pool.spec.host_ref = apis::core::LocalObjectReference{"host-1"};
  pool.status.agent = apis::core::PoolAgent{.mode = "Session"};
  pool.status.conditions.push_back({.type = "Ready", .status = "True"});
  pool.status.capacity = {{"cpu", Q("8")}, {"memory", Q("32Gi")}, {"class/machine.small", Q("4")}};
  pool.status.available_machine_classes = {{"small"}, {"large"}};
  return pool;
}

TEST(Translate, ASessionPoolIsAVectorAndHasNoSessionByItself) {
  const TranslatedPool pool = Translate(SessionPool());
  EXPECT_EQ(pool.mode, PoolMode::kSession);
  EXPECT_EQ(pool.spec.name, "alpha");
  EXPECT_EQ(pool.spec.uid, "u-1");
  EXPECT_EQ(pool.spec.host, "host-1");
  EXPECT_TRUE(pool.spec.state.is_ready);
  EXPECT_FALSE(pool.spec.state.has_session);
  EXPECT_EQ(pool.spec.capacity, (Resources{{"cpu", 8000}, {"memory", 32LL << 30}}));
  EXPECT_EQ(pool.spec.classes, (std::vector<std::string>{"small", "large"}));
  EXPECT_TRUE(pool.spec.class_counts.empty());
}

TEST(Translate, LimitsCapWhatAHostClaimsToHave) {
  MachinePool pool = SessionPool();
  pool.spec.limits = {{"memory", Q("1Gi")}, {"cpu", Q("100")}};
  EXPECT_EQ(Translate(pool).spec.capacity, (Resources{{"cpu", 8000}, {"memory", 1LL << 30}}));
}

TEST(Translate, D1_D2_AnApiPoolIsCountedByCapacityAndClassesShareIt) {
  MachinePool pool;
  pool.status.state = "Ready";
  pool.status.capacity = {{"class/machine.small", Q("10")}, {"class/machine.large", Q("3")}};
  pool.status.allocatable = {{"class/machine.small", Q("1")}};
  const TranslatedPool out = Translate(pool);
  EXPECT_EQ(out.mode, PoolMode::kApi);
  EXPECT_TRUE(out.spec.state.has_session);
  EXPECT_TRUE(out.spec.state.is_ready);
  EXPECT_EQ(out.spec.class_counts, (std::map<std::string, int64_t>{{"small", 10}, {"large", 3}}));
  EXPECT_EQ(TakenOf(out, "large", {{"cpu", 1}}), (Resources{{"share", fleet::kShareWhole / 3}}));
}

TEST(Translate, APoolThatNobodyAnnouncedHasNoMode) {
  EXPECT_EQ(Translate(MachinePool()).mode, PoolMode::kUnknown);
}

TEST(Translate, ACordonADeletionAndAReadyConditionThatIsFalseAreSeen) {
  MachinePool pool = SessionPool();
  pool.spec.unschedulable = true;
  pool.metadata.deletion_timestamp = WallTime::FromSeconds(1);
  pool.status.conditions[0].status = "Unknown";
  pool.status.state = "Ready";
  const PoolState state = Translate(pool).spec.state;
  EXPECT_TRUE(state.is_cordoned);
  EXPECT_TRUE(state.is_deleting);
  EXPECT_FALSE(state.is_ready);
}

TEST(Translate, AMachineIsItsClassAndItsLocalDisks) {
  Machine machine;
  machine.metadata.namespace_ = "team";
  machine.metadata.labels["app"] = "web";
  machine.spec.machine_class_ref.name = "small";
  machine.spec.machine_pool_selector["zone"] = "a";
  machine.spec.volumes.push_back({.name = "root"});
  machine.spec.volumes[0].local_disk = apis::compute::LocalDiskVolumeSource{};
  machine.spec.volumes[0].local_disk->size_limit = Q("10Gi");
  machine.spec.tolerations.push_back({.key = "gpu", .operator_ = "Exists", .effect = "NoExecute"});
  MachineClass size;
  size.capabilities = {{"cpu", Q("1500m")}, {"memory", Q("4Gi")}, {"nvidia.com/gpu", Q("2")}};
  const Requirements out = Translate(machine, size);
  EXPECT_EQ(
      out.resources,
      (Resources{
          {"cpu", 1500}, {"memory", 4LL << 30}, {"nvidia.com/gpu", 2}, {"storage", 10LL << 30}}));
  EXPECT_EQ(out.class_name, "small");
  EXPECT_TRUE(out.pools.Matches({{"zone", "a"}}));
  EXPECT_FALSE(out.pools.Matches({{"zone", "b"}}));
  ASSERT_EQ(out.tolerations.size(), 1U);
  EXPECT_EQ(out.tolerations[0].op, Toleration::Op::kExists);
  EXPECT_EQ(out.tolerations[0].effect, TaintEffect::kNoExecute);
  EXPECT_FALSE(out.needs_fence);
  EXPECT_TRUE(HasLocalState(machine));
}

TEST(Translate, ARestrictedTaintIsToleratedByWhoNamesItOnly) {
  MachinePool pool = SessionPool();
  pool.spec.taints.push_back({.key = "restricted.berth.dev/gpu", .effect = "NoSchedule"});
  const TranslatedPool out = Translate(pool);
  ASSERT_EQ(out.spec.taints.size(), 1U);
  const auto tolerates = [&](const std::string& key) {
    Machine machine;
    machine.spec.tolerations.push_back({.key = key, .operator_ = "Exists"});
    return IsTolerated(out.spec.taints[0], Translate(machine, MachineClass()).tolerations);
  };
  EXPECT_FALSE(tolerates(""));
  EXPECT_FALSE(tolerates("gpu"));
  EXPECT_TRUE(tolerates("restricted.berth.dev/gpu"));
}

TEST(Translate, PlacementWishesAreCarriedOver) {
  Machine machine;
  machine.metadata.labels["app"] = "web";
  machine.spec.placement.emplace();
  machine.spec.placement->on_pool_loss = "Move";
  machine.spec.placement->policy = "spread";
  machine.spec.placement->anti_affinity.emplace();
  machine.spec.placement->anti_affinity->required.push_back(
      {.label_selector = {.match_labels = {{"app", "web"}}}, .topology_key = "berth.dev/pool"});
  machine.spec.placement->anti_affinity->preferred.push_back(
      {.weight = 10, .term = {.label_selector = {}, .topology_key = "zone"}});
  machine.spec.placement->spread.push_back({.topology_key = "zone", .max_skew = 2});
  const Requirements out = Translate(machine, MachineClass());
  EXPECT_TRUE(out.needs_fence);
  Machine tied = machine;
  tied.spec.volumes.push_back({.name = "root"});
  tied.spec.volumes[0].local_disk.emplace();
  EXPECT_FALSE(Translate(tied, MachineClass()).needs_fence) << "it is kept: nobody kills it";
  EXPECT_EQ(out.policy, Policy::kSpread);
  ASSERT_EQ(out.anti_affinity.size(), 1U);
  EXPECT_TRUE(out.anti_affinity[0].selector.Matches({{"app", "web"}}));
  ASSERT_EQ(out.preferred_company.size(), 1U);
  EXPECT_EQ(out.preferred_company[0].weight, -10);
  ASSERT_EQ(out.spread.size(), 1U);
  EXPECT_EQ(out.spread[0].max_skew, 2);
  EXPECT_TRUE(out.spread[0].company.selector.Matches({{"app", "web"}, {"more", "labels"}}));
}

TEST(Translate, VolumesAreNamedAsTheyAreMade) {
  Machine machine;
  machine.metadata.name = "web";
  machine.spec.volumes.push_back({.name = "data"});
  machine.spec.volumes[0].volume_ref = apis::core::LocalObjectReference{"shared"};
  machine.spec.volumes.push_back({.name = "scratch"});
  machine.spec.volumes[1].ephemeral.emplace();
  EXPECT_EQ(VolumeNamesOf(machine), (std::vector<std::string>{"shared", "web-scratch"}));
  EXPECT_FALSE(HasLocalState(machine));
}

TEST(Translate, AVolumePoolThatCountsPerClassHasItsBytesOnce) {
  apis::storage::VolumePool pool;
  pool.status.state = "Available";
  pool.status.capacity = {{"class/volume.fast", Q("1Ti")}, {"class/volume.slow", Q("1Ti")}};
  const TranslatedPool out = Translate(pool);
  EXPECT_TRUE(out.spec.state.is_ready);
  EXPECT_EQ(out.spec.capacity, (Resources{{"storage", 1LL << 40}}));
  EXPECT_EQ(out.spec.reach, Reach::kAny);
  // What the server counts of such a pool is its share, so that is what a volume takes.
  EXPECT_EQ(TakenOf(out, "fast", {{"storage", 1LL << 39}}),
            (Resources{{"share", fleet::kShareWhole / 2}}));
}

TEST(Translate, VolumesAndBucketsAskForTheirClassAndSize) {
  apis::storage::Volume volume;
  volume.spec.volume_class_ref = apis::core::LocalObjectReference{"fast"};
  volume.spec.resources = {{"storage", Q("1Gi")}};
  EXPECT_EQ(Translate(volume).kind, PoolKind::kVolume);
  EXPECT_EQ(Translate(volume).resources, (Resources{{"storage", 1LL << 30}}));
  apis::storage::Bucket bucket;
  bucket.spec.bucket_class_ref = apis::core::LocalObjectReference{"b"};
  EXPECT_EQ(Translate(bucket).kind, PoolKind::kBucket);
  EXPECT_TRUE(Translate(bucket).resources.empty());
}

}  // namespace
}  // namespace berth::scheduler
