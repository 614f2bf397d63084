// SPDX-License-Identifier: Apache-2.0
// Defends what objects count, which quotas take them in, and when a quota says no.
#include "apis/quota.h"

#include <gtest/gtest.h>

#include "apis/compute/machine.h"
#include "apis/registry.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_class.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "apis/testing/rules_of.h"

namespace berth::apis {
namespace {

using testing::Parse;

template <class T>
meta::Object ObjectOf(std::string_view json) {
  return meta::Object::Of(KindOf<T>(), Parse<T>(json));
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

TEST(Quota, MachinesCountCpuAndMemoryOfTheirClass) {
  const auto capabilities = List(R"({"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"})");
  const auto usage = UsageOf(Machine(), &capabilities);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(*usage, List(R"({"count/machines.compute.ironcore.dev": "1", "requests.cpu": "4",
                     "requests.memory": "16Gi"})"));
}

TEST(Quota, MachinesOfAnUnknownClassCannotBeCounted) {
  const auto usage = UsageOf(Machine(), nullptr);
  EXPECT_TRUE(usage.status().Is(Reason::kBadRequest)) << usage.status();
}

TEST(Quota, VolumesCountTheirStorageWithoutLookingAtTheClass) {
  const auto volume = ObjectOf<storage::Volume>(
      R"({"spec": {"volumeClassRef": {"name": "fast"}, "resources": {"storage": "10Gi"}}})");
  const auto usage = UsageOf(volume, nullptr);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(*usage,
            List(R"({"count/volumes.storage.ironcore.dev": "1", "requests.storage": "10Gi"})"));
}

TEST(Quota, BucketsWithoutClassCountOnlyThemselves) {
  const auto usage = UsageOf(ObjectOf<storage::Bucket>(R"({"spec": {}})"), nullptr);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(*usage, List(R"({"count/buckets.storage.ironcore.dev": "1"})"));
}

TEST(Quota, BucketsCountTpsAndIopsOfTheirClass) {
  const auto bucket = ObjectOf<storage::Bucket>(R"({"spec": {"bucketClassRef": {"name": "b"}}})");
  EXPECT_EQ(ClassOf(bucket), (ClassReference{&storage::kBucketClassKind, "b"}));
  const auto capabilities = List(R"({"tps": "1Mi", "iops": "100"})");
  const auto usage = UsageOf(bucket, &capabilities);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(*usage, List(R"({"count/buckets.storage.ironcore.dev": "1", "requests.tps": "1Mi",
                     "requests.iops": "100"})"));
}

TEST(Quota, OtherKindsCountNothing) {
  const meta::Object pool(storage::kVolumeClassKind);
  EXPECT_FALSE(CountsAgainstQuota(pool.kind()));
  EXPECT_EQ(ClassOf(pool), std::nullopt);
  EXPECT_TRUE(UsageOf(pool, nullptr)->empty());
  EXPECT_FALSE(MatchesScopes({}, pool));
}

struct ScopeCase {
  std::string_view expressions;
  bool machine;            // of class "large"
  bool volume_with_class;  // of class "fast"
  bool volume_without_class;
};

TEST(Quota, ScopesSelectByClass) {
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
    EXPECT_EQ(MatchesScopes(quota.spec, Machine()), row.machine) << row.expressions;
    EXPECT_EQ(MatchesScopes(quota.spec, with_class), row.volume_with_class) << row.expressions;
    EXPECT_EQ(MatchesScopes(quota.spec, without_class), row.volume_without_class)
        << row.expressions;
  }
}

TEST(Quota, RefusesOnlyWhatGrowsBeyondTheLimit) {
  const auto quota = Parse<core::ResourceQuota>(
      R"({"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "10"}},
          "status": {"used": {"requests.cpu": "8"}}})");
  EXPECT_TRUE(CheckQuota(quota, List(R"({"requests.cpu": "2", "requests.memory": "1Ti"})")).ok());
  EXPECT_TRUE(CheckQuota(quota, List(R"({"requests.cpu": "-100"})")).ok());
  const Status status = CheckQuota(quota, List(R"({"requests.cpu": "2001m"})"));
  EXPECT_TRUE(status.Is(Reason::kForbidden));
  EXPECT_EQ(status.message(),
            "exceeded quota: q, requested: requests.cpu=2001m, used: requests.cpu=8, limited: "
            "requests.cpu=10");
}

TEST(Quota, RefusesWhileItIsNotKnownWhatIsUsed) {
  const auto quota = Parse<core::ResourceQuota>(
      R"({"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "10"}}})");
  const Status status = CheckQuota(quota, List(R"({"requests.cpu": "1"})"));
  EXPECT_EQ(status.message(), "status unknown for quota: q, resources: requests.cpu");
  EXPECT_TRUE(CheckQuota(quota, List(R"({"requests.memory": "1"})")).ok());
}

TEST(Quota, AddsAndSubtractsEntryByEntry) {
  const auto a = List(R"({"x": "1", "y": "2"})");
  const auto b = List(R"({"y": "3", "z": "4"})");
  EXPECT_EQ(Sum(a, b), List(R"({"x": "1", "y": "5", "z": "4"})"));
  EXPECT_EQ(Difference(a, b), List(R"({"x": "1", "y": "-1", "z": "-4"})"));
  EXPECT_EQ(OnlyLimited(a, b), List(R"({"y": "2"})"));
}

TEST(Quota, NamesAreTheSameThroughEveryDomain) {
  const meta::Scheme scheme(AllKinds(), {"ironcore.dev", "OpenKCM.dev"});
  EXPECT_EQ(CanonicalQuotaName("count/machines.compute.openkcm.dev", scheme), core::kCountMachines);
  EXPECT_EQ(CanonicalQuotaName("count/machines.compute.example.com", scheme),
            "count/machines.compute.example.com");
  EXPECT_EQ(CanonicalQuotaName("count/nothing", scheme), "count/nothing");
  EXPECT_EQ(CanonicalQuotaName("requests.cpu", scheme), "requests.cpu");

  auto quota = Parse<core::ResourceQuota>(
      R"({"spec": {"hard": {"count/machines.compute.OpenKCM.dev": "3",
                            "count/machines.compute.ironcore.dev": "5"}}})");
  CanonicaliseQuota(quota, scheme);
  EXPECT_EQ(quota.spec.hard, List(R"({"count/machines.compute.ironcore.dev": "3"})"));
}

}  // namespace
}  // namespace berth::apis
