// SPDX-License-Identifier: Apache-2.0
// Defends quotas: what a write uses is charged in its own commit, so no limit is ever exceeded,
// however many write at once; and a refusal says what was asked for, what is used and what the
// limit is.
#include "apiserver/registry/quota_ledger.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/resource_quota.h"
#include "apis/k8s/secret.h"
#include "apis/quota/names.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "apiserver/registry/registry_world.h"
#include "rt/join_all.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::core::kResourceQuotaKind;
using apis::core::ResourceList;
using apis::core::ResourceQuota;
using apis::storage::kVolumeKind;
using apis::storage::Volume;
using meta::Quantity;

class QuotaLedgerTest : public ::testing::Test {
 protected:
  QuotaLedgerTest() {
    world_.MakeNamespace("default");
    apis::compute::MachineClass small;
    small.metadata.name = "small";
    small.capabilities = {{"cpu", Quantity(4)}, {"memory", *Quantity::Parse("8Gi")}};
    Must(meta::Object::Of(apis::compute::kMachineClassKind, std::move(small)));
    apis::storage::VolumeClass fast;
    fast.metadata.name = "fast";
    fast.capabilities = {{"tps", Quantity(1)}, {"iops", Quantity(1)}};
    fast.resize_policy = "ExpandOnly";
    Must(meta::Object::Of(apis::storage::kVolumeClassKind, std::move(fast)));
  }

  meta::Object Must(meta::Object object) {
    auto made = world_.Run(world_.client().Create(std::move(object), {}));
    CHECK(made.ok()) << made.status();
    return *std::move(made);
  }
  // A quota of which nothing is used yet.
  void MakeQuota(const std::string& name,
                 ResourceList hard,
                 std::optional<apis::core::ResourceScopeSelector> scope = {}) {
    ResourceQuota quota;
    quota.metadata.namespace_ = "default";
    quota.metadata.name = name;
    quota.spec.hard = std::move(hard);
    quota.spec.scope_selector = std::move(scope);
    Count(Must(meta::Object::Of(kResourceQuotaKind, std::move(quota))));
  }
  // What the controller does in an empty namespace.
  void Count(meta::Object object) {
    auto& quota = object.as<ResourceQuota>();
    for (const auto& [resource, limit] : apis::quota::Canonical(world_.scheme(), quota.spec.hard)) {
      quota.status.used[resource] = Quantity(0);
    }
    const auto updated = world_.Run(world_.client().Update(
        std::move(object),
        {.dry_run = client::DryRun::kNo, .subresource = client::Subresource::kStatus}));
    CHECK(updated.ok()) << updated.status();
  }
  void Remove(const meta::KindInfo& kind, const std::string& name) {
    const Status status = world_.Run(world_.client().Delete(kind, {"default", name}, {}));
    CHECK(status.ok()) << status;
  }
  ResourceList Used(const std::string& name) {
    auto quota = world_.Run(world_.client().Get(kResourceQuotaKind, {"default", name}));
    CHECK(quota.ok()) << quota.status();
    return quota->as<ResourceQuota>().status.used;
  }
  static meta::Object NewMachine(const std::string& name, const std::string& of = "small") {
    Machine machine;
    machine.metadata.namespace_ = "default";
    machine.metadata.name = name;
    machine.spec.machine_class_ref.name = of;
    return meta::Object::Of(kMachineKind, std::move(machine));
  }
  static meta::Object NewVolume(const std::string& name, int64_t size) {
    Volume volume;
    volume.metadata.namespace_ = "default";
    volume.metadata.name = name;
    volume.spec.volume_class_ref.emplace().name = "fast";
    volume.spec.resources["storage"] = Quantity(size);
    return meta::Object::Of(kVolumeKind, std::move(volume));
  }
  Status Create(meta::Object object) {
    return world_.Run(world_.client().Create(std::move(object), {})).status();
  }

  RegistryWorld world_{3};
};

TEST_F(QuotaLedgerTest, ARefusalSaysWhatIsAskedForUsedAndLimited) {
  MakeQuota("q", {{"requests.cpu", Quantity(6)}, {"requests.memory", *Quantity::Parse("1Ti")}});
  ASSERT_TRUE(Create(NewMachine("a")).ok());
  EXPECT_EQ(Used("q").at("requests.cpu"), Quantity(4));
  EXPECT_EQ(Used("q").at("requests.memory").ToString(), "8Gi");
  const Status status = Create(NewMachine("b"));
  EXPECT_EQ(status.reason(), Reason::kForbidden);
  EXPECT_EQ(status.message(),
            "machines.compute.ironcore.dev \"b\" is forbidden: exceeded quota: q, requested: "
            "requests.cpu=4, used: requests.cpu=4, limited: requests.cpu=6");
}

TEST_F(QuotaLedgerTest, NoLimitIsExceededHoweverManyCreateAtOnce) {
  MakeQuota("q", {{"count/machines.compute.ironcore.dev", Quantity(5)}});
  std::vector<rt::Task<Result<meta::Object>>> creates;
  for (int i = 0; i < 20; ++i) {
    creates.push_back(world_.client().Create(NewMachine("m" + std::to_string(i)), {}));
  }
  int made = 0;
  for (const auto& result : world_.Run(rt::JoinAll(std::move(creates)))) made += result.ok();
  EXPECT_EQ(made, 5);
  EXPECT_EQ(Used("q").at("count/machines.compute.ironcore.dev"), Quantity(5));
}

TEST_F(QuotaLedgerTest, ALimitHoldsThroughEveryDomainAndSpelling) {
  const std::string canonical = "count/machines.compute.ironcore.dev";
  for (const std::string written : {"count/machines.compute.OpenKCM.dev",
                                    "count/machines.compute.openkcm.dev",
                                    "count/machines.compute.IRONCORE.dev"}) {
    MakeQuota("q", {{written, Quantity(1)}, {"requests.cpu", Quantity(100)}});
    EXPECT_TRUE(Create(NewMachine("a")).ok()) << written;
    EXPECT_EQ(Used("q").at(canonical), Quantity(1)) << written;
    const Status status = Create(NewMachine("b"));
    EXPECT_EQ(status.reason(), Reason::kForbidden) << written;
    EXPECT_NE(status.message().find("limited: " + canonical + "=1"), std::string::npos) << status;
    Remove(kMachineKind, "a");
    Remove(kResourceQuotaKind, "q");
  }
}

TEST_F(QuotaLedgerTest, AQuotaKeepsTheSpellingThatItWasWrittenIn) {
  const std::string written = "count/machines.compute.OpenKCM.dev";
  MakeQuota("q", {{written, Quantity(1)}});
  ASSERT_TRUE(Create(NewMachine("a")).ok());
  // As `kubectl apply` writes a higher limit, and then a limit under another name.
  const auto patch = [this](const std::string& body) {
    auto patched = world_.Run(world_.client().Patch(
        kResourceQuotaKind, {"default", "q"}, client::PatchType::kMerge, body, {}));
    CHECK(patched.ok()) << patched.status();
    return *std::move(patched);
  };
  meta::Object quota = patch(R"({"spec": {"hard": {")" + written + R"(": "2"}}})");
  EXPECT_EQ(quota.as<ResourceQuota>().spec.hard, (ResourceList{{written, Quantity(2)}}));
  EXPECT_EQ(Used("q"), (ResourceList{{"count/machines.compute.ironcore.dev", Quantity(1)}}));
  EXPECT_TRUE(Create(NewMachine("b")).ok());
  quota = patch(R"({"spec": {"hard": {")" + written +
                R"(": null, "count/machines.compute.ironcore.dev": "3"}}})");
  EXPECT_TRUE(Create(NewMachine("c")).ok());
  EXPECT_EQ(Create(NewMachine("d")).reason(), Reason::kForbidden);
}

TEST_F(QuotaLedgerTest, ADomainThatIsNotServedIsNoName) {
  ResourceQuota quota;
  quota.metadata.namespace_ = "default";
  quota.metadata.name = "q";
  quota.spec.hard = {{"count/machines.compute.example.com", Quantity(1)}};
  const Status status = Create(meta::Object::Of(kResourceQuotaKind, std::move(quota)));
  EXPECT_EQ(status.reason(), Reason::kInvalid) << status;
  EXPECT_NE(status.message().find("count/machines.compute.example.com"), std::string::npos);
}

TEST_F(QuotaLedgerTest, ABatchTakesWhatFits) {
  MakeQuota("q", {{"requests.cpu", Quantity(10)}});
  std::vector<meta::Object> objects;
  for (int i = 0; i < 4; ++i) objects.push_back(NewMachine("m" + std::to_string(i)));
  const auto results = world_.Run(world_.client().CreateBatch(std::move(objects), {}));
  EXPECT_TRUE(results[0].ok() && results[1].ok());
  EXPECT_EQ(results[2].status().reason(), Reason::kForbidden);
  EXPECT_EQ(results[3].status().reason(), Reason::kForbidden);
  EXPECT_EQ(Used("q").at("requests.cpu"), Quantity(8));
}

TEST_F(QuotaLedgerTest, AQuotaThatWasNotCountedYetRefuses) {
  ResourceQuota quota;
  quota.metadata.namespace_ = "default";
  quota.metadata.name = "new";
  quota.spec.hard = {{"requests.cpu", Quantity(100)}};
  Must(meta::Object::Of(kResourceQuotaKind, std::move(quota)));
  const Status status = Create(NewMachine("a"));
  EXPECT_EQ(status.reason(), Reason::kForbidden);
  EXPECT_NE(status.message().find("status unknown for quota: new, resources: requests.cpu"),
            std::string::npos);
  EXPECT_TRUE(Create(NewVolume("v", 10)).ok());
}

TEST_F(QuotaLedgerTest, GrowingAVolumeIsCharged) {
  MakeQuota("q", {{"requests.storage", Quantity(100)}});
  meta::Object volume = Must(NewVolume("v", 60));
  volume.as<Volume>().spec.resources["storage"] = Quantity(90);
  auto grown = world_.Run(world_.client().Update(volume, {}));
  ASSERT_TRUE(grown.ok()) << grown.status();
  EXPECT_EQ(Used("q").at("requests.storage"), Quantity(90));
  grown->as<Volume>().spec.resources["storage"] = Quantity(120);
  const Status status = world_.Run(world_.client().Update(*grown, {})).status();
  EXPECT_NE(status.message().find("requested: requests.storage=30, used: requests.storage=90, "
                                  "limited: requests.storage=100"),
            std::string::npos)
      << status;
}

TEST_F(QuotaLedgerTest, AScopeSelectsByClass) {
  apis::core::ResourceScopeSelector scope;
  scope.match_expressions = {
      {.scope_name = "MachineClass", .operator_ = "In", .values = {"large"}}};
  MakeQuota("q", {{"count/machines.compute.ironcore.dev", Quantity(0)}}, scope);
  EXPECT_TRUE(Create(NewMachine("a")).ok());
}

TEST_F(QuotaLedgerTest, AnUnknownClassIsABadRequestWhereItWouldBeCounted) {
  EXPECT_TRUE(Create(NewMachine("a", "unknown")).ok());
  MakeQuota("q", {{"requests.cpu", Quantity(10)}});
  const Status status = Create(NewMachine("b", "unknown"));
  EXPECT_EQ(status.reason(), Reason::kBadRequest) << status;
}

TEST_F(QuotaLedgerTest, DryRunRefusesWithoutCharging) {
  MakeQuota("q", {{"requests.cpu", Quantity(4)}});
  const client::WriteOptions dry{.dry_run = client::DryRun::kYes};
  EXPECT_TRUE(world_.Run(world_.client().Create(NewMachine("a"), dry)).ok());
  EXPECT_EQ(Used("q").at("requests.cpu"), Quantity(0));
  ASSERT_TRUE(Create(NewMachine("a")).ok());
  EXPECT_EQ(world_.Run(world_.client().Create(NewMachine("b"), dry)).status().reason(),
            Reason::kForbidden);
}

TEST_F(QuotaLedgerTest, ACreateThatOverlapsANewQuotaDoesNotSlipPastIt) {
  ResourceQuota quota;
  quota.metadata.namespace_ = "default";
  quota.metadata.name = "q";
  quota.spec.hard = {{"requests.cpu", Quantity(0)}};
  std::vector<rt::Task<Result<meta::Object>>> creates;
  creates.push_back(
      world_.client().Create(meta::Object::Of(kResourceQuotaKind, std::move(quota)), {}));
  creates.push_back(world_.client().Create(NewMachine("a"), {}));
  const auto results = world_.Run(rt::JoinAll(std::move(creates)));
  ASSERT_TRUE(results[0].ok());
  const auto number = [](const meta::Object& object) {
    return std::stoll(object.metadata().resource_version);
  };
  if (results[1].ok()) EXPECT_LT(number(*results[1]), number(*results[0]));
}

TEST_F(QuotaLedgerTest, WhatIsNotCountedIsNotHeldUp) {
  MakeQuota("q", {{"requests.cpu", Quantity(0)}});
  apis::k8s::Secret secret;
  secret.metadata.namespace_ = "default";
  secret.metadata.name = "s";
  EXPECT_TRUE(Create(meta::Object::Of(apis::k8s::kSecretKind, std::move(secret))).ok());
}

}  // namespace
}  // namespace berth::apiserver
