// SPDX-License-Identifier: Apache-2.0
#include "apis/placement.h"

#include <gtest/gtest.h>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "meta/field_errors.h"
#include "meta/validate.h"

namespace berth::apis {
namespace {

meta::Quantity Q(std::string_view text) { return *meta::Quantity::Parse(text); }

TEST(Placement, AllocatableIsTheCapacityAsFarAsTheLimitsAllow) {
  const core::ResourceList capacity = {
      {"cpu", Q("8")}, {"memory", Q("16Gi")}, {"class/machine.small", Q("4")}};
  EXPECT_EQ(Allocatable(capacity, {}), (Amounts{{"cpu", 8000}, {"memory", 16LL << 30}}));
  EXPECT_EQ(Allocatable(capacity, {{"cpu", Q("1500m")}, {"memory", Q("1Ti")}, {"gpu", Q("4")}}),
            (Amounts{{"cpu", 1500}, {"memory", 16LL << 30}}));
  EXPECT_EQ(Allocatable({{"class/machine.small", Q("4")}}, {}), (Amounts{{"share", kShareWhole}}));
  EXPECT_EQ(Allocatable({}, {{"cpu", Q("4")}}), Amounts{});
}

TEST(Placement, AReportedStateAloneMeansThatThePoolletSpeaksTheApi) {
  compute::MachinePool pool;
  const auto mode = [&pool] {
    return PoolTermsOf(meta::Object::Of(compute::kMachinePoolKind, pool)).mode;
  };
  EXPECT_EQ(mode(), "");
  pool.status.state = "Ready";
  EXPECT_EQ(mode(), core::kPoolModeApi);
  pool.status.agent = core::PoolAgent{.mode = std::string(core::kPoolModeSession)};
  EXPECT_EQ(mode(), core::kPoolModeSession);
}

TEST(Placement, SharesFillAPoolExactlyWithAsManyAsItCounts) {
  for (const int64_t quantity : {1, 2, 3, 7, 96, 999'983}) {
    const int64_t share = ShareOf(1, quantity);
    EXPECT_LE(share * quantity, kShareWhole) << quantity;
    EXPECT_GT(share * (quantity + 1), kShareWhole) << quantity;
  }
  EXPECT_GT(ShareOf(1, 0), kShareWhole);
  EXPECT_GT(ShareOf(5, 4), kShareWhole);
  EXPECT_EQ(ShareOf(0, 4), 1);
  EXPECT_EQ(ShareOf(1LL << 60, 1LL << 60), kShareWhole);
}

TEST(Placement, AmountsSurviveTheWayThroughQuantities) {
  const Amounts amounts = {{"cpu", 1500}, {"memory", 3LL << 30}, {"share", 333'333'333'333}};
  EXPECT_EQ(ToAmounts(ToResources(amounts)), amounts);
  EXPECT_EQ(ToResources(amounts).at("memory").ToString(), "3Gi");
  EXPECT_EQ(ToResources(amounts).at("cpu").ToString(), "1500m");
}

TEST(Placement, OneViewServesMachinesVolumesAndBuckets) {
  for (const meta::KindInfo* kind :
       {&compute::kMachineKind, &storage::kVolumeKind, &storage::kBucketKind}) {
    ASSERT_TRUE(IsPlaceable(*kind));
    ASSERT_TRUE(IsPool(PoolKindOf(*kind)));
    meta::Object object(*kind);
    EXPECT_FALSE(IsBound(object));
    EXPECT_EQ(EpochOf(object), 0);
    PoolRefOf(object) = core::LocalObjectReference{.name = "a"};
    PlacementOf(object) = core::PlacementStatus{.pool = "a", .pool_uid = "u", .epoch = 3};
    EXPECT_TRUE(IsBound(object));
    EXPECT_EQ(EpochOf(object), 3);
  }
  EXPECT_FALSE(IsPlaceable(compute::kMachinePoolKind));
  EXPECT_FALSE(IsPool(compute::kMachineKind));
}

TEST(Placement, TheTimeOfScheduledChangesOnlyWithItsStatus) {
  meta::Object object(compute::kMachineKind);
  SetScheduled(object, "False", "NoRoom", "a", WallTime::FromSeconds(10));
  SetScheduled(object, "False", "NoRoom", "b", WallTime::FromSeconds(20));
  const auto& conditions = object.as<compute::Machine>().status.conditions;
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].message, "b");
  EXPECT_EQ(conditions[0].last_transition_time, WallTime::FromSeconds(10));
  SetScheduled(object, "True", "Bound", "", WallTime::FromSeconds(30));
  EXPECT_EQ(conditions[0].last_transition_time, WallTime::FromSeconds(30));
}

TEST(Placement, StatusWritesKeepWhatOnlyBindingsWrite) {
  const std::optional<core::PlacementStatus> before =
      core::PlacementStatus{.pool = "a", .pool_uid = "u", .epoch = 3, .attempt = 1};
  std::optional<core::PlacementStatus> now =
      core::PlacementStatus{.pool = "b", .pool_uid = "v", .epoch = 9, .attempt = 2, .reason = "R"};
  core::KeepPlacementStatus(now, before);
  EXPECT_EQ(now,
            (core::PlacementStatus{
                .pool = "a", .pool_uid = "u", .epoch = 3, .attempt = 2, .reason = "R"}));
  now.reset();
  core::KeepPlacementStatus(now, before);
  EXPECT_EQ(now, before);
  now = core::PlacementStatus{.pool = "b", .epoch = 9};
  core::KeepPlacementStatus(now, std::nullopt);
  EXPECT_EQ(now, std::nullopt);
}

TEST(Placement, WishesAreChecked) {
  struct Case {
    core::Placement placement;
    std::string_view path;
  };
  const Case cases[] = {
      {{.priority_class_name = "A b"}, "spec.placement.priorityClassName"},
      {{.affinity = core::Affinity{.required = {{.topology_key = "a b"}}}},
       "spec.placement.affinity.required[0].topologyKey"},
      {{.affinity = core::Affinity{.required = {{.topology_key = ""}}}},
       "spec.placement.affinity.required[0].topologyKey"},
      {{.anti_affinity =
            core::Affinity{.preferred = {{.weight = 101, .term = {.topology_key = "zone"}}}}},
       "spec.placement.antiAffinity.preferred[0].weight"},
      {{.spread = {{.topology_key = "zone"}}}, "spec.placement.spread[0].maxSkew"},
      {{.spread = {{.topology_key = "zone", .max_skew = -1}}}, "spec.placement.spread[0].maxSkew"},
      {{.spread = {{.topology_key = "z", .max_skew = 1}, {.topology_key = "z", .max_skew = 2}}},
       "spec.placement.spread[1]"},
      {{.group_ref = core::LocalObjectReference{.name = "A b"}}, "spec.placement.groupRef.name"},
      {{.on_pool_loss = "Replace"}, "spec.placement.onPoolLoss"},
      {{.policy = "best"}, "spec.placement.policy"},
  };
  for (const Case& test : cases) {
    compute::Machine machine;
    machine.metadata.name = "a";
    machine.metadata.namespace_ = "default";
    machine.spec.machine_class_ref.name = "small";
    machine.spec.placement = test.placement;
    meta::FieldErrors errors;
    meta::ValidateObject(meta::Object::Of(compute::kMachineKind, machine), errors);
    ASSERT_EQ(errors.causes().size(), 1U) << test.path;
    EXPECT_EQ(errors.causes()[0].field, test.path);
  }
}

}  // namespace
}  // namespace berth::apis
