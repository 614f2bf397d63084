// SPDX-License-Identifier: Apache-2.0
// Defends what the controllers promise together, on a whole server in simulation: nothing outlives
// its owners, deleted namespaces empty themselves, classes in use stay, quotas say what is used.
#include "controller/builtin/builtin_controllers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/resource_quota.h"
#include "apis/k8s/config_map.h"
#include "apis/k8s/namespace.h"
#include "apis/k8s/role.h"
#include "apis/k8s/secret.h"
#include "apiserver/registry/registry_world.h"
#include "rt/join_all.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::berth_dev::kMachineSetKind;
using apis::compute::kMachineClassKind;
using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::core::kResourceQuotaKind;
using apis::core::ResourceQuota;
using apis::k8s::kConfigMapKind;
using apis::k8s::kNamespaceKind;
using apis::k8s::kSecretKind;
using apis::k8s::Namespace;
using client::DeleteOptions;
using client::ObjectKey;
using client::Propagation;
using meta::Object;
using meta::Quantity;

class BuiltinControllersTest : public ::testing::Test {
 protected:
  BuiltinControllersTest() {
    world_.MakeNamespace("default");
    world_.MakeNamespace("other");
    StartControllers();
  }
  ~BuiltinControllersTest() override { StopControllers(); }

  void StartControllers() {
    controllers_ =
        std::make_unique<BuiltinControllers>(world_.loop(), world_.client(), world_.scheme());
    scope_.Spawn("controllers", controllers_->Run());
  }
  void StopControllers() {
    if (controllers_ == nullptr) return;
    EXPECT_TRUE(world_.Run(running_().Close()).ok());
    controllers_.reset();
  }
  rt::TaskScope& running_() { return scope_; }
  // Long enough for everything that needs no further event.
  void Settle() { world_.loop().RunFor(Duration::Seconds(10)); }

  static Object Secret(const std::string& name, std::vector<meta::OwnerReference> owners = {}) {
    apis::k8s::Secret secret;
    secret.metadata.namespace_ = "default";
    secret.metadata.name = name;
    secret.metadata.owner_references = std::move(owners);
    return Object::Of(kSecretKind, std::move(secret));
  }
  static meta::OwnerReference OwnedBy(const Object& owner, bool blocks = false) {
    return {.api_version = "v1",
            .kind = std::string(owner.kind().kind),
            .name = owner.metadata().name,
            .uid = owner.metadata().uid,
            .controller = {},
            .block_owner_deletion = blocks};
  }
  Object Must(Object object) {
    auto made = world_.Run(world_.client().Create(std::move(object), {}));
    CHECK(made.ok()) << made.status();
    return *std::move(made);
  }
  Status Delete(const meta::KindInfo& kind, ObjectKey key, Propagation propagation) {
    DeleteOptions options;
    options.propagation = propagation;
    return world_.Run(world_.client().Delete(kind, std::move(key), std::move(options)));
  }
  Status DeleteSecret(const std::string& name, Propagation propagation = Propagation::kBackground) {
    return Delete(kSecretKind, {"default", name}, propagation);
  }
  bool Exists(const meta::KindInfo& kind, ObjectKey key) {
    const auto found = world_.Run(world_.client().Get(kind, std::move(key)));
    CHECK(found.ok() || found.status().Is(Reason::kNotFound)) << found.status();
    return found.ok();
  }
  size_t Count(const meta::KindInfo& kind) {
    const auto listed = world_.Run(world_.client().List(kind, {}));
    CHECK(listed.ok()) << listed.status();
    return listed->items.size();
  }
  bool SecretExists(const std::string& name) { return Exists(kSecretKind, {"default", name}); }
  Object Get(const meta::KindInfo& kind, ObjectKey key) {
    auto found = world_.Run(world_.client().Get(kind, std::move(key)));
    CHECK(found.ok()) << found.status();
    return *std::move(found);
  }

  apiserver::RegistryWorld world_{21};
  rt::TaskScope scope_{world_.loop()};
  std::unique_ptr<BuiltinControllers> controllers_;
};

TEST_F(BuiltinControllersTest, EachTellsThatItKeepsUp) {
  client::HealthReport early;
  const BuiltinControllers idle(world_.loop(), world_.client(), world_.scheme());
  idle.Report(early);
  EXPECT_GE(early.all().size(), 10U);
  for (const auto& [name, health] : early.all()) EXPECT_GT(health.unsynced, 0U) << name;
  Settle();
  client::HealthReport report;
  controllers_->Report(report);
  EXPECT_EQ(report.all().size(), early.all().size());
  for (const auto& [name, health] : report.all()) {
    EXPECT_EQ(health.unsynced, 0U) << name;
    EXPECT_EQ(health.failing, 0U) << name;
    EXPECT_EQ(health.lost_longest, Duration()) << name;
  }
}

TEST_F(BuiltinControllersTest, C27_DependentsGoAfterTheirOwner) {
  const Object owner = Must(Secret("owner"));
  const Object child = Must(Secret("child", {OwnedBy(owner)}));
  Must(Secret("grandchild", {OwnedBy(child)}));
  Settle();
  EXPECT_TRUE(SecretExists("grandchild"));
  ASSERT_TRUE(DeleteSecret("owner").ok());
  Settle();
  EXPECT_FALSE(SecretExists("child"));
  EXPECT_FALSE(SecretExists("grandchild"));
}

TEST_F(BuiltinControllersTest, C27_MachinesGoAfterTheirSet) {
  apis::berth_dev::MachineSet set;
  set.metadata.namespace_ = "default";
  set.metadata.name = "web";
  set.spec.replicas = 3;
  set.spec.selector.match_labels = {{"app", "web"}};
  set.spec.machine_template.metadata.labels = {{"app", "web"}};
  set.spec.machine_template.spec.machine_class_ref.name = "small";
  Must(Object::Of(kMachineSetKind, std::move(set)));
  Settle();
  EXPECT_EQ(Count(kMachineKind), 3U);
  ASSERT_TRUE(Delete(kMachineSetKind, {"default", "web"}, Propagation::kBackground).ok());
  Settle();
  EXPECT_FALSE(Exists(kMachineSetKind, {"default", "web"}));
  EXPECT_EQ(Count(kMachineKind), 0U);
}

TEST_F(BuiltinControllersTest, AnObjectWhoseOwnerNeverWasGoes) {
  Object ghost = Secret("ghost");
  ghost.metadata().uid = "00000000-0000-4000-8000-00000000dead";
  Must(Secret("child", {OwnedBy(ghost)}));
  Settle();
  EXPECT_FALSE(SecretExists("child"));
}

TEST_F(BuiltinControllersTest, ANewObjectOfTheOwnersNameIsNotTheOwner) {
  const Object owner = Must(Secret("owner"));
  ASSERT_TRUE(DeleteSecret("owner").ok());
  Must(Secret("owner"));
  Must(Secret("child", {OwnedBy(owner)}));
  Settle();
  EXPECT_FALSE(SecretExists("child"));
}

TEST_F(BuiltinControllersTest, AnOwnerInAnotherNamespaceIsNoOwner) {
  const Object owner = Must(Secret("owner"));
  Object child = Secret("child", {OwnedBy(owner)});
  child.metadata().namespace_ = "other";
  Must(std::move(child));
  Settle();
  EXPECT_FALSE(Exists(kSecretKind, {"other", "child"}));
  EXPECT_TRUE(SecretExists("owner"));
}

TEST_F(BuiltinControllersTest, ANamespacedOwnerOfAClusterScopedObjectIsLeftAlone) {
  const Object owner = Must(Secret("owner"));
  apis::k8s::ClusterRole role;
  role.metadata.name = "role";
  role.metadata.owner_references = {OwnedBy(owner)};
  Must(Object::Of(apis::k8s::kClusterRoleKind, std::move(role)));
  ASSERT_TRUE(DeleteSecret("owner").ok());
  Settle();
  EXPECT_TRUE(Exists(apis::k8s::kClusterRoleKind, {"", "role"}));
}

TEST_F(BuiltinControllersTest, AnObjectStaysAsLongAsOneOwnerDoes) {
  const Object one = Must(Secret("one"));
  const Object two = Must(Secret("two"));
  Must(Secret("child", {OwnedBy(one), OwnedBy(two)}));
  ASSERT_TRUE(DeleteSecret("one").ok());
  Settle();
  const Object child = Get(kSecretKind, {"default", "child"});
  ASSERT_EQ(child.metadata().owner_references.size(), 1U);
  EXPECT_EQ(child.metadata().owner_references[0].name, "two");
  ASSERT_TRUE(DeleteSecret("two").ok());
  Settle();
  EXPECT_FALSE(SecretExists("child"));
}

TEST_F(BuiltinControllersTest, ForegroundDeletionWaitsForBlockingDependents) {
  const Object owner = Must(Secret("owner"));
  Object child = Secret("child", {OwnedBy(owner, true)});
  child.metadata().finalizers = {"example.com/hold"};
  Must(std::move(child));
  Settle();
  ASSERT_TRUE(DeleteSecret("owner", Propagation::kForeground).ok());
  Settle();
  EXPECT_TRUE(SecretExists("owner"));
  Object held = Get(kSecretKind, {"default", "child"});
  EXPECT_TRUE(held.metadata().deletion_timestamp.has_value());
  held.metadata().finalizers.clear();
  ASSERT_TRUE(world_.Run(world_.client().Update(held, {})).ok());
  Settle();
  EXPECT_FALSE(SecretExists("child"));
  EXPECT_FALSE(SecretExists("owner"));
}

TEST_F(BuiltinControllersTest, ForegroundDeletionOfACircleEnds) {
  Object a = Must(Secret("a"));
  const Object b = Must(Secret("b", {OwnedBy(a, true)}));
  a.metadata().owner_references = {OwnedBy(b, true)};
  ASSERT_TRUE(world_.Run(world_.client().Update(a, {})).ok());
  Settle();
  ASSERT_TRUE(DeleteSecret("a", Propagation::kForeground).ok());
  Settle();
  EXPECT_FALSE(SecretExists("a"));
  EXPECT_FALSE(SecretExists("b"));
}

TEST_F(BuiltinControllersTest, OrphanedDependentsStayWithoutOwner) {
  const Object owner = Must(Secret("owner"));
  Must(Secret("child", {OwnedBy(owner)}));
  Settle();
  ASSERT_TRUE(DeleteSecret("owner", Propagation::kOrphan).ok());
  Settle();
  EXPECT_FALSE(SecretExists("owner"));
  EXPECT_TRUE(Get(kSecretKind, {"default", "child"}).metadata().owner_references.empty());
}

TEST_F(BuiltinControllersTest, OwnersThatGoWhileNoControllerRunsAreNoticedAfterwards) {
  const Object owner = Must(Secret("owner"));
  Must(Secret("child", {OwnedBy(owner)}));
  Settle();
  StopControllers();
  ASSERT_TRUE(DeleteSecret("owner").ok());
  rt::TaskScope scope(world_.loop());
  BuiltinControllers controllers(world_.loop(), world_.client(), world_.scheme());
  scope.Spawn("controllers", controllers.Run());
  Settle();
  EXPECT_FALSE(SecretExists("child"));
  EXPECT_TRUE(world_.Run(scope.Close()).ok());
}

TEST_F(BuiltinControllersTest, ADeletedNamespaceEmptiesItselfAndGoes) {
  world_.MakeNamespace("going");
  for (int i = 0; i < 100; ++i) {
    Object secret = Secret("s" + std::to_string(i));
    secret.metadata().namespace_ = "going";
    Must(std::move(secret));
  }
  apis::k8s::ConfigMap map;
  map.metadata.namespace_ = "going";
  map.metadata.name = "m";
  Must(Object::Of(kConfigMapKind, std::move(map)));
  ASSERT_TRUE(Delete(kNamespaceKind, {"", "going"}, Propagation::kBackground).ok());
  Settle();
  EXPECT_FALSE(Exists(kNamespaceKind, {"", "going"}));
  EXPECT_FALSE(Exists(kSecretKind, {"going", "s42"}));
}

TEST_F(BuiltinControllersTest, R4_5_ANamespaceThatCannotGoSaysWhatKeepsIt) {
  world_.MakeNamespace("going");
  Object secret = Secret("held");
  secret.metadata().namespace_ = "going";
  secret.metadata().finalizers = {"example.com/hold"};
  Must(std::move(secret));
  ASSERT_TRUE(Delete(kNamespaceKind, {"", "going"}, Propagation::kBackground).ok());
  Settle();
  const Object space = Get(kNamespaceKind, {"", "going"});
  const auto& status = space.as<Namespace>().status;
  EXPECT_EQ(status.phase, "Terminating");
  ASSERT_EQ(status.conditions.size(), 2U);
  EXPECT_EQ(status.conditions[0].message,
            "Some resources are remaining: secrets has 1 resource instances");
  EXPECT_EQ(
      status.conditions[1].message,
      "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource "
      "instances");
  Object held = Get(kSecretKind, {"going", "held"});
  held.metadata().finalizers.clear();
  ASSERT_TRUE(world_.Run(world_.client().Update(held, {})).ok());
  Settle();
  EXPECT_FALSE(Exists(kNamespaceKind, {"", "going"}));
}

class WithClass : public BuiltinControllersTest {
 protected:
  WithClass() {
    apis::compute::MachineClass small;
    small.metadata.name = "small";
    small.capabilities = {{"cpu", Quantity(4)}, {"memory", Quantity(1024)}};
    Must(Object::Of(kMachineClassKind, std::move(small)));
  }
  static Object NewMachine(const std::string& name) {
    Machine machine;
    machine.metadata.namespace_ = "default";
    machine.metadata.name = name;
    machine.spec.machine_class_ref.name = "small";
    return Object::Of(kMachineKind, std::move(machine));
  }
  Quantity Used(const std::string& resource) {
    const Object quota = Get(kResourceQuotaKind, {"default", "q"});
    const auto& used = quota.as<ResourceQuota>().status.used;
    CHECK(used.contains(resource)) << resource;
    return used.at(resource);
  }
  void MakeQuota(int64_t cpu) {
    ResourceQuota quota;
    quota.metadata.namespace_ = "default";
    quota.metadata.name = "q";
    quota.spec.hard = {{"requests.cpu", Quantity(cpu)},
                       {"count/machines.compute.ironcore.dev", Quantity(100)}};
    Must(Object::Of(kResourceQuotaKind, std::move(quota)));
    Settle();
  }
};

TEST_F(WithClass, R4_6_AClassInUseStaysUntilItsLastUserGoes) {
  Must(NewMachine("a"));
  ASSERT_TRUE(Delete(kMachineClassKind, {"", "small"}, Propagation::kBackground).ok());
  Settle();
  EXPECT_TRUE(Exists(kMachineClassKind, {"", "small"}));
  ASSERT_TRUE(Delete(kMachineKind, {"default", "a"}, Propagation::kBackground).ok());
  Settle();
  EXPECT_FALSE(Exists(kMachineClassKind, {"", "small"}));
}

TEST_F(WithClass, AnUnusedClassGoesAtOnce) {
  Settle();
  ASSERT_TRUE(Delete(kMachineClassKind, {"", "small"}, Propagation::kBackground).ok());
  Settle();
  EXPECT_FALSE(Exists(kMachineClassKind, {"", "small"}));
}

TEST_F(WithClass, AProtectionThatSomeoneTookOffComesBack) {
  Settle();
  Object object = Get(kMachineClassKind, {"", "small"});
  object.metadata().finalizers.clear();
  ASSERT_TRUE(world_.Run(world_.client().Update(object, {})).ok());
  Settle();
  EXPECT_EQ(Get(kMachineClassKind, {"", "small"}).metadata().finalizers.size(), 1U);
}

TEST_F(WithClass, ANewQuotaIsCountedAndDeletedObjectsAreGivenBack) {
  Must(NewMachine("a"));
  Must(NewMachine("b"));
  MakeQuota(8);
  EXPECT_EQ(Used("requests.cpu"), Quantity(8));
  EXPECT_EQ(world_.Run(world_.client().Create(NewMachine("c"), {})).status().reason(),
            Reason::kForbidden);
  ASSERT_TRUE(Delete(kMachineKind, {"default", "a"}, Propagation::kBackground).ok());
  Settle();
  EXPECT_EQ(Used("requests.cpu"), Quantity(4));
  EXPECT_EQ(Used("count/machines.compute.ironcore.dev"), Quantity(1));
  Must(NewMachine("c"));
  EXPECT_EQ(Used("requests.cpu"), Quantity(8));
}

TEST_F(WithClass, AQuotaThatNamesAnAliasIsCountedUnderTheCanonicalName) {
  Must(NewMachine("a"));
  ResourceQuota quota;
  quota.metadata.namespace_ = "default";
  quota.metadata.name = "q";
  quota.spec.hard = {{"count/machines.compute.OpenKCM.dev", Quantity(2)}};
  Must(Object::Of(kResourceQuotaKind, std::move(quota)));
  Settle();
  EXPECT_EQ(Used("count/machines.compute.ironcore.dev"), Quantity(1));
  const Object counted = Get(kResourceQuotaKind, {"default", "q"});
  EXPECT_TRUE(counted.as<ResourceQuota>().spec.hard.contains("count/machines.compute.OpenKCM.dev"));
  EXPECT_TRUE(
      counted.as<ResourceQuota>().status.hard.contains("count/machines.compute.ironcore.dev"));
  Must(NewMachine("b"));
  EXPECT_EQ(world_.Run(world_.client().Create(NewMachine("c"), {})).status().reason(),
            Reason::kForbidden);
  ASSERT_TRUE(Delete(kMachineKind, {"default", "a"}, Propagation::kBackground).ok());
  Settle();
  Must(NewMachine("c"));
}

TEST_F(WithClass, AQuotaIsNeverExceededAndExactAtRestUnderConcurrentWrites) {
  MakeQuota(40);
  Random& random = world_.loop().random();
  for (int round = 0; round < 20; ++round) {
    std::vector<rt::Task<Result<Object>>> creates;
    std::vector<rt::Task<Status>> deletes;
    for (int i = 0; i < 6; ++i) {
      creates.push_back(
          world_.client().Create(NewMachine("m" + std::to_string(random.Below(30))), {}));
      deletes.push_back(world_.client().Delete(
          kMachineKind, {"default", "m" + std::to_string(random.Below(30))}, {}));
    }
    world_.Run(rt::JoinAll(std::move(creates)));
    world_.Run(rt::JoinAll(std::move(deletes)));
    const size_t machines = world_.cache().Of(kMachineKind).objects().size();
    EXPECT_LE(machines, 10U);
    EXPECT_LE(Used("requests.cpu"), Quantity(40));
    world_.loop().RunFor(Duration::Millis(static_cast<int64_t>(random.Below(200))));
  }
  Settle();
  const auto machines = static_cast<int64_t>(world_.cache().Of(kMachineKind).objects().size());
  EXPECT_EQ(Used("requests.cpu"), Quantity(4 * machines));
  EXPECT_EQ(Used("count/machines.compute.ironcore.dev"), Quantity(machines));
}

}  // namespace
}  // namespace berth::controller
