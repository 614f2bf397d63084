// SPDX-License-Identifier: Apache-2.0
// Defends what objects count and which quotas take them in.
#include "apis/quota/usage.h"

#include <gtest/gtest.h>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/reservation.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_class.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "apis/testing/rules_of.h"

namespace berth::apis::quota {
namespace {

using testing::Parse;

template <class T>
meta::Object ObjectOf(std::string_view json) {
  return meta::Object::Of(BerthKind(meta::Tag<T>{}), Parse<T>(json));
}

core::ResourceList List(std::string_view json) {
  auto list = meta::DecodeJsonAs<core::ResourceList>(json);
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? *std::move(list) : core::ResourceList{};
}

meta::Object Machine() {
  return ObjectOf<compute::Machine>(
      R"({"metadata": {"name": "m"}, "spec": {"machineClassRef": {"name": "large"}}})");
}

std::optional<meta::Object> NoClasses(const meta::KindInfo& /*kind*/, std::string_view /*name*/) {
  return std::nullopt;
}

// One machine class "large" and one bucket class "b".
std::optional<meta::Object> SomeClasses(const meta::KindInfo& kind, std::string_view name) {
  if (&kind == &compute::kMachineClassKind && name == "large") {
    return ObjectOf<compute::MachineClass>(
        R"({"capabilities": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}})");
  }
  if (&kind == &storage::kBucketClassKind && name == "b") {
    return ObjectOf<storage::BucketClass>(R"({"capabilities": {"tps": "1Mi", "iops": "100"}})");
  }
  return std::nullopt;
}

TEST(QuotaUsage, MachinesCountCpuAndMemoryOfTheirClass) {
  const auto usage = UsageOf(Machine(), SomeClasses);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(*usage, List(R"({"count/machines.compute.ironcore.dev": "1", "requests.cpu": "4",
                     "requests.memory": "16Gi"})"));
}

TEST(QuotaUsage, R8_6_ReservationsCountLikeTheMachinesThatTheyAreFor) {
  meta::Object reservation = ObjectOf<core::Reservation>(
      R"({"metadata": {"name": "r"}, "spec": {"classRef": {"name": "large"}, "count": 3}})");
  auto usage = UsageOf(reservation, SomeClasses);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(*usage, List(R"({"count/reservations.core.ironcore.dev": "1", "requests.cpu": "12",
                     "requests.memory": "48Gi"})"));
  // Who has used a part counts for itself, and no earlier.
  reservation.as<core::Reservation>().status.consumers = {{.name = "m", .uid = "u"}};
  usage = UsageOf(reservation, SomeClasses);
  EXPECT_EQ(usage->at("requests.cpu"), meta::Quantity(8));
  meta::Object machine = Machine();
  machine.as<compute::Machine>().spec.placement.emplace().reservation_ref =
      core::LocalObjectReference{"r"};
  EXPECT_EQ(*UsageOf(machine, SomeClasses),
            List(R"({"count/machines.compute.ironcore.dev": "1"})"));
  machine.as<compute::Machine>().status.placement = core::PlacementStatus{.epoch = 1};
  EXPECT_EQ(UsageOf(machine, SomeClasses)->at("requests.cpu"), meta::Quantity(4));
  // The parts of one for all pools count, and one that is over does not.
  reservation.as<core::Reservation>().spec.mode = core::kReserveAll;
  EXPECT_FALSE(UsageOf(reservation, SomeClasses)->contains("requests.cpu"));
  reservation.as<core::Reservation>().spec.mode = core::kReserveOne;
  reservation.as<core::Reservation>().status.state = core::kReservationExpired;
  EXPECT_FALSE(UsageOf(reservation, SomeClasses)->contains("requests.cpu"));
}

TEST(QuotaUsage, MachinesOfAnUnknownClassCannotBeCounted) {
  const auto usage = UsageOf(Machine(), NoClasses);
  EXPECT_TRUE(usage.status().Is(Reason::kBadRequest)) << usage.status();
  EXPECT_NE(usage.status().message().find("machine class \"large\""), std::string_view::npos);
}

TEST(QuotaUsage, VolumesCountTheirStorageWithoutLookingAtTheClass) {
  const auto volume = ObjectOf<storage::Volume>(
      R"({"spec": {"volumeClassRef": {"name": "fast"}, "resources": {"storage": "10Gi"}}})");
  const auto usage = UsageOf(volume, NoClasses);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(*usage,
            List(R"({"count/volumes.storage.ironcore.dev": "1", "requests.storage": "10Gi"})"));
}

TEST(QuotaUsage, BucketsWithoutClassCountOnlyThemselves) {
  const auto usage = UsageOf(ObjectOf<storage::Bucket>(R"({"spec": {}})"), NoClasses);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(*usage, List(R"({"count/buckets.storage.ironcore.dev": "1"})"));
}

TEST(QuotaUsage, BucketsCountTpsAndIopsOfTheirClass) {
  const auto bucket = ObjectOf<storage::Bucket>(R"({"spec": {"bucketClassRef": {"name": "b"}}})");
  const auto usage = UsageOf(bucket, SomeClasses);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(*usage, List(R"({"count/buckets.storage.ironcore.dev": "1", "requests.tps": "1Mi",
                     "requests.iops": "100"})"));
  EXPECT_TRUE(UsageOf(bucket, NoClasses).status().Is(Reason::kBadRequest));
}

TEST(QuotaUsage, OnlyWhatIsPlacedIsCounted) {
  for (const meta::KindInfo* kind : {&compute::kMachineKind,
                                     &storage::kVolumeKind,
                                     &storage::kBucketKind,
                                     &core::kReservationKind}) {
    EXPECT_TRUE(IsCounted(*kind)) << kind->kind;
  }
  EXPECT_EQ(CountedKinds().size(), 4U);
  EXPECT_FALSE(IsCounted(storage::kVolumeClassKind));
}

struct ScopeCase {
  std::string_view expressions;
  bool machine;            // of class "large"
  bool volume_with_class;  // of class "fast"
  bool volume_without_class;
};

TEST(QuotaUsage, ScopesSelectByClass) {
  const auto with_class =
      ObjectOf<storage::Volume>(R"({"spec": {"volumeClassRef": {"name": "fast"}}})");
  const auto without_class = ObjectOf<storage::Volume>(R"({"spec": {}})");
  const ScopeCase cases[] = {
      {"[]", true, true, true},
      {R"([{"scopeName": "MachineClass", "operator": "Exists"}])", true, false, false},
      {R"([{"scopeName": "MachineClass", "operator": "In", "values": ["large"]}])",
       true,
       false,
       false},
      {R"([{"scopeName": "MachineClass", "operator": "NotIn", "values": ["large"]}])",
       false,
       false,
       false},
      {R"([{"scopeName": "VolumeClass", "operator": "Exists"}])", false, true, false},
      {R"([{"scopeName": "VolumeClass", "operator": "DoesNotExist"}])", false, false, true},
      {R"([{"scopeName": "VolumeClass", "operator": "In", "values": ["fast"]}])",
       false,
       true,
       false},
      {R"([{"scopeName": "VolumeClass", "operator": "NotIn", "values": ["slow"]}])",
       false,
       true,
       true},
      {R"([{"scopeName": "VolumeClass", "operator": "Exists"},
           {"scopeName": "VolumeClass", "operator": "NotIn", "values": ["fast"]}])",
       false,
       false,
       false},
  };
  for (const ScopeCase& row : cases) {
    const auto quota =
        Parse<core::ResourceQuota>(R"({"spec": {"scopeSelector": {"matchExpressions": )" +
                                   std::string(row.expressions) + "}}}");
    EXPECT_EQ(InScope(quota, Machine()), row.machine) << row.expressions;
    EXPECT_EQ(InScope(quota, with_class), row.volume_with_class) << row.expressions;
    EXPECT_EQ(InScope(quota, without_class), row.volume_without_class) << row.expressions;
  }
}

TEST(QuotaUsage, AQuotaWithoutScopeTakesEverything) {
  EXPECT_TRUE(InScope(core::ResourceQuota{}, Machine()));
}

TEST(QuotaUsage, AddsOnlyWhatIsLimited) {
  auto used = List(R"({"x": "1"})");
  AddLimited(used, List(R"({"x": "2", "y": "3", "z": "4"})"), List(R"({"x": "9", "y": "9"})"));
  EXPECT_EQ(used, List(R"({"x": "3", "y": "3"})"));
}

TEST(QuotaUsage, DescribesAmountsByName) {
  const auto amounts = List(R"({"requests.cpu": "4", "requests.memory": "8Gi", "x": "1"})");
  EXPECT_EQ(Describe(amounts, List(R"({"requests.cpu": "0", "requests.memory": "0", "y": "0"})")),
            "requests.cpu=4,requests.memory=8Gi,y=0");
  EXPECT_EQ(Describe(amounts, {}), "");
}

}  // namespace
}  // namespace berth::apis::quota
