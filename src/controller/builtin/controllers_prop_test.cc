// SPDX-License-Identifier: Apache-2.0
// Defends, for many seeds of random owners, deletions in all three ways, restarts of the server and
// store failures: when everything has come to rest no object is left without its owners, nothing is
// half deleted, deleted namespaces are gone with all their contents, and quotas are exact.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/resource_quota.h"
#include "apis/k8s/config_map.h"
#include "apis/k8s/namespace.h"
#include "apiserver/registry/registry_world.h"
#include "base/log.h"
#include "controller/builtin/builtin_controllers.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::core::kResourceQuotaKind;
using apis::core::ResourceQuota;
using apis::k8s::ConfigMap;
using apis::k8s::kConfigMapKind;
using apis::k8s::kNamespaceKind;
using meta::Quantity;

class Scenario {
 public:
  explicit Scenario(uint64_t seed) : random_(seed * 31 + 7), world_(seed) {
    for (const char* name : {"a", "b", "c"}) world_.MakeNamespace(name);
    apis::compute::MachineClass small;
    small.metadata.name = "small";
    small.capabilities = {{"cpu", Quantity(2)}, {"memory", Quantity(1024)}};
    Must(meta::Object::Of(apis::compute::kMachineClassKind, std::move(small)));
    ResourceQuota quota;
    quota.metadata.namespace_ = "a";
    quota.metadata.name = "q";
    quota.spec.hard = {{"requests.cpu", Quantity(20)}};
    Must(meta::Object::Of(kResourceQuotaKind, std::move(quota)));
  }

  // Writers and controllers for a while; then the server dies.
  void Phase(store::StoreFaults faults) {
    world_.SetFaults(faults);
    rt::TaskScope scope(world_.loop());
    BuiltinControllers controllers(world_.loop(), world_.client(), world_.scheme());
    scope.Spawn("controllers", controllers.Run());
    for (int i = 0; i < 4; ++i) scope.Spawn("writer", Write());
    world_.loop().RunFor(Duration::Millis(random_.Between(100, 600)));
    CHECK(rt::RunTask(world_.loop(), scope.Close()).ok());
    world_.SetFaults({});
    world_.Restart();
  }

  void CheckAtRest() {
    rt::TaskScope scope(world_.loop());
    BuiltinControllers controllers(world_.loop(), world_.client(), world_.scheme());
    scope.Spawn("controllers", controllers.Run());
    auto gone = world_.Run(world_.client().Delete(kNamespaceKind, {"", "b"}, {}));
    EXPECT_TRUE(gone.ok() || gone.Is(Reason::kNotFound)) << gone;
    world_.loop().RunFor(Duration::Minutes(2));
    EXPECT_TRUE(controllers.idle());
    CHECK(rt::RunTask(world_.loop(), scope.Close()).ok());

    const auto maps = world_.Run(world_.client().List(kConfigMapKind, {}));
    ASSERT_TRUE(maps.ok()) << maps.status();
    std::set<std::string> present;
    for (const meta::Object& map : maps->items) present.insert(map.metadata().uid);
    for (const meta::Object& map : maps->items) {
      const meta::ObjectMeta& metadata = map.metadata();
      EXPECT_NE(metadata.namespace_, "b");
      EXPECT_FALSE(metadata.deletion_timestamp.has_value()) << metadata.name;
      for (const meta::OwnerReference& owner : metadata.owner_references) {
        EXPECT_TRUE(present.contains(owner.uid))
            << metadata.namespace_ << "/" << metadata.name << " outlived its owner " << owner.name;
      }
    }
    EXPECT_EQ(world_.Run(world_.client().Get(kNamespaceKind, {"", "b"})).status().reason(),
              Reason::kNotFound);
    CheckQuota();
  }
  size_t made() const { return made_; }

 private:
  void Must(meta::Object object) {
    const auto made = world_.Run(world_.client().Create(std::move(object), {}));
    CHECK(made.ok()) << made.status();
  }
  void CheckQuota() {
    client::ListOptions options;
    options.namespace_ = "a";
    const auto machines = world_.Run(world_.client().List(kMachineKind, options));
    const auto quota = world_.Run(world_.client().Get(kResourceQuotaKind, {"a", "q"}));
    ASSERT_TRUE(machines.ok() && quota.ok());
    const auto count = static_cast<int64_t>(machines->items.size());
    EXPECT_LE(count, 10);
    EXPECT_EQ(quota->as<ResourceQuota>().status.used.at("requests.cpu"), Quantity(2 * count));
  }

  std::string Space() { return std::string(1, static_cast<char>('a' + random_.Below(3))); }

  rt::Task<Status> Write() {
    for (;;) {
      const Duration pause = Duration::Micros(random_.Between(1, 8000));
      CO_TRY_STATUS(co_await rt::Sleep(pause));
      const uint64_t choice = random_.Below(10);
      Status status;
      if (choice < 5) {
        status = co_await CreateMap();
      } else if (choice < 7) {
        status = co_await DeleteMap();
      } else if (choice < 9) {
        status = co_await CreateMachine();
      } else {
        const client::ObjectKey key{.namespace_ = "a",
                                    .name = "m" + std::to_string(random_.Below(20))};
        status = co_await world_.client().Delete(kMachineKind, key, {});
      }
      if (status.Is(Reason::kCancelled)) co_return status;
    }
  }
  rt::Task<Status> CreateMap() {
    ConfigMap map;
    map.metadata.namespace_ = Space();
    map.metadata.generate_name = "x-";
    client::ListOptions options;
    options.namespace_ = map.metadata.namespace_;
    CO_TRY(const client::ObjectList others, co_await world_.client().List(kConfigMapKind, options));
    for (int i = 0; i < 2 && !others.items.empty(); ++i) {
      if (random_.Chance(0.3)) continue;
      const meta::ObjectMeta& owner = others.items[random_.Below(others.items.size())].metadata();
      if (!map.metadata.owner_references.empty() &&
          map.metadata.owner_references[0].uid == owner.uid) {
        continue;
      }
      map.metadata.owner_references.push_back({.api_version = "v1",
                                               .kind = "ConfigMap",
                                               .name = owner.name,
                                               .uid = owner.uid,
                                               .controller = {},
                                               .block_owner_deletion = random_.Chance(0.5)});
    }
    meta::Object object = meta::Object::Of(kConfigMapKind, std::move(map));
    const auto made = co_await world_.client().Create(std::move(object), {});
    made_ += made.ok() ? 1 : 0;
    co_return made.status();
  }
  rt::Task<Status> DeleteMap() {
    client::ListOptions options;
    CO_TRY(const client::ObjectList maps, co_await world_.client().List(kConfigMapKind, options));
    if (maps.items.empty()) co_return OkStatus();
    const meta::ObjectMeta& victim = maps.items[random_.Below(maps.items.size())].metadata();
    client::DeleteOptions how;
    how.uid = victim.uid;
    how.propagation = static_cast<client::Propagation>(random_.Below(3));
    const client::ObjectKey key{.namespace_ = victim.namespace_, .name = victim.name};
    co_return co_await world_.client().Delete(kConfigMapKind, key, std::move(how));
  }
  rt::Task<Status> CreateMachine() {
    Machine machine;
    machine.metadata.namespace_ = "a";
    machine.metadata.name = "m" + std::to_string(random_.Below(20));
    machine.spec.machine_class_ref.name = "small";
    meta::Object object = meta::Object::Of(kMachineKind, std::move(machine));
    const auto made = co_await world_.client().Create(std::move(object), {});
    co_return made.status();
  }

  Random random_;
  apiserver::RegistryWorld world_;
  size_t made_ = 0;
};

TEST(ControllerProperties, NothingOutlivesItsOwnersAndQuotasAreExact) {
  log::Configure({.level = log::Level::kError, .format = log::Format::kText});
  size_t made = 0;
  for (uint64_t seed = 1; seed <= 12 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scenario scenario(seed);
    scenario.Phase({});
    scenario.Phase({.refuse = 0.05, .lose_answer = 0.05, .delay = 0.1, .end_watch = 0.02});
    scenario.Phase({});
    scenario.CheckAtRest();
    made += scenario.made();
  }
  EXPECT_GT(made, 300U) << "the test has tested nothing";
}

}  // namespace
}  // namespace berth::controller
