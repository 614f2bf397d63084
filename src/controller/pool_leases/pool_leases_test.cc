// SPDX-License-Identifier: Apache-2.0
// Defends rule 5.7: an API-mode pool whose poollet fell silent gets nothing new, by the time that
// passed here, and one that speaks, or never had a Lease, is left alone.
#include "controller/pool_leases/pool_leases.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "apis/core/pool_parts.h"
#include "apiserver/registry/placement_world.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::compute::kMachinePoolKind;
using apis::compute::MachinePool;
using apis::k8s::kLeaseKind;
using apis::k8s::Lease;
using apiserver::PlacementWorld;

class PoolLeasesTest : public testing::Test {
 protected:
  PoolLeasesTest() {
    world_.MakeNamespace(kPoolLeaseNamespace);
    Start();
  }
  ~PoolLeasesTest() override { Stop(); }
  void Start() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    leases_ = std::make_unique<PoolLeases>(world_.loop(), world_.client());
    scope_->Spawn("leases", leases_->Run());
  }
  void Stop() {
    EXPECT_TRUE(world_.Run(scope_->Close()).ok());
    leases_.reset();
  }

  void MakeReadyPool(const std::string& name, std::string_view mode) {
    world_.MakePool(name, 8, mode);
    SayReady(name);
  }
  void SayReady(const std::string& name) {
    meta::Object pool = Get(name);
    auto& conditions = pool.as<MachinePool>().status.conditions;
    conditions.clear();
    auto& ready = conditions.emplace_back();
    ready.type = apis::core::kPoolReady;
    ready.status = "True";
    ready.last_transition_time = world_.loop().WallNow();
    const client::WriteOptions options{.subresource = client::Subresource::kStatus};
    PlacementWorld::Must(world_.Run(world_.client().Update(std::move(pool), options)));
  }
  // As IronCore's poollets do every ten seconds.
  void Renew(const std::string& pool) {
    const client::ObjectKey key{.namespace_ = kPoolLeaseNamespace, .name = pool};
    const auto found = world_.Run(world_.client().Get(kLeaseKind, key));
    Lease lease;
    if (found.ok()) lease = found->as<Lease>();
    lease.metadata.namespace_ = key.namespace_;
    lease.metadata.name = key.name;
    lease.spec.holder_identity = pool + "_1";
    lease.spec.renew_time = meta::MicroTime{world_.loop().WallNow()};
    meta::Object object = meta::Object::Of(kLeaseKind, std::move(lease));
    PlacementWorld::Must(world_.Run(found.ok() ? world_.client().Update(object, {})
                                               : world_.client().Create(object, {})));
  }
  meta::Object Get(const std::string& name) {
    return PlacementWorld::Must(
        world_.Run(world_.client().Get(kMachinePoolKind, {.namespace_ = "", .name = name})));
  }
  std::string ReadyOf(const std::string& name) {
    const meta::Object pool = Get(name);
    for (const auto& condition : pool.as<MachinePool>().status.conditions) {
      if (condition.type == apis::core::kPoolReady) return condition.status;
    }
    return "";
  }
  void Pass(Duration duration) { world_.loop().RunFor(duration); }

  PlacementWorld world_;
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<PoolLeases> leases_;
};

TEST_F(PoolLeasesTest, R5_7_APoolInApiModeWhosePoolletFellSilentIsNotReadyAnyMore) {
  MakeReadyPool("go", apis::core::kPoolModeApi);
  Renew("go");
  for (int i = 0; i < 12; ++i) {
    Pass(Duration::Seconds(10));
    Renew("go");
  }
  EXPECT_EQ(ReadyOf("go"), "True") << "it renews its Lease";
  Pass(Duration::Seconds(45));
  EXPECT_EQ(ReadyOf("go"), "True") << "within the grace";
  Pass(Duration::Seconds(15));
  EXPECT_EQ(ReadyOf("go"), "Unknown");
  const meta::Object pool = Get("go");
  EXPECT_EQ(pool.as<MachinePool>().status.conditions.at(0).reason, kPoolSilentReason);
  // It says itself that it is back.
  Renew("go");
  SayReady("go");
  Pass(Duration::Seconds(30));
  EXPECT_EQ(ReadyOf("go"), "True");
}

TEST_F(PoolLeasesTest, R5_7_ASessionPoolAndAPoolThatNeverHadALeaseAreLeftAlone) {
  MakeReadyPool("ours", apis::core::kPoolModeSession);
  Renew("ours");
  MakeReadyPool("by-hand", apis::core::kPoolModeApi);
  Pass(Duration::Minutes(5));
  EXPECT_EQ(ReadyOf("ours"), "True");
  EXPECT_EQ(ReadyOf("by-hand"), "True");
}

TEST_F(PoolLeasesTest, R5_7_ARestartBeginsTheGraceAnew) {
  MakeReadyPool("go", apis::core::kPoolModeApi);
  Renew("go");
  Pass(Duration::Seconds(40));
  Stop();
  Start();
  Pass(Duration::Seconds(40));
  EXPECT_EQ(ReadyOf("go"), "True");
  Pass(Duration::Seconds(20));
  EXPECT_EQ(ReadyOf("go"), "Unknown");
}

}  // namespace
}  // namespace berth::controller
