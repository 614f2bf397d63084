// SPDX-License-Identifier: Apache-2.0
// Defends what happens when a host falls silent. Reservations (PROTOCOL 8.6): the room is looked
// for elsewhere, unless the host came back in time or somebody deletes it. Machines with Move
// (PROTOCOL 3.3): never while a lease that the host was granted may still run. Machines with
// Replace (PROTOCOL 3.2): deleted after ten seconds of silence, and not a moment before.
#include "controller/pool_loss/pool_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/core/reservation.h"
#include "apis/k8s/config_map.h"
#include "apis/k8s/event.h"
#include "apiserver/registry/placement_world.h"
#include "fleet/fake/fake_fleet.h"
#include "rt/sleep.h"

namespace berth::controller {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;

// A store that takes its time to unbind.
class SlowBinder final : public client::Binder {
 public:
  explicit SlowBinder(client::Binder& inner) : inner_(inner) {}
  void SlowUnbinds(Duration pause) { pause_ = pause; }
  // UIDs that it was asked to unbind, in order.
  const std::vector<std::string>& unbinding() const { return unbinding_; }

  rt::Task<std::vector<Result<std::vector<meta::Object>>>> BindBatch(
      std::vector<client::BindRequest> requests) override {
    return inner_.BindBatch(std::move(requests));
  }
  rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                 std::vector<client::BindItem> items,
                                                 std::string holder,
                                                 int64_t term) override {
    return inner_.CreateBoundBatch(std::move(model), std::move(items), std::move(holder), term);
  }
  rt::Task<std::vector<Status>> UnbindBatch(std::vector<client::UnbindRequest> requests) override {
    for (const auto& request : requests) unbinding_.push_back(request.uid);
    const Status slept = co_await rt::Sleep(pause_);
    if (!slept.ok()) co_return std::vector<Status>(requests.size(), slept);
    co_return co_await inner_.UnbindBatch(std::move(requests));
  }

 private:
  client::Binder& inner_;
  Duration pause_;
  std::vector<std::string> unbinding_;
};

class PoolLossTest : public testing::Test {
 protected:
  PoolLossTest() : binder_(world_.registry().binder()), fleet_(world_.loop()) {
    for (const char* name : {"alpha", "beta", "gamma", "delta"}) {
      uids_[name] = world_.MakePool(name, 100);
      Join(name);
    }
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    loss_ = std::make_unique<PoolLoss>(PoolLoss::Deps{.loop = world_.loop(),
                                                      .client = world_.client(),
                                                      .binder = binder_,
                                                      .fleet = fleet_,
                                                      .scheme = world_.scheme()});
    scope_->Spawn("loss", loss_->Run());
    RunFor(Duration::Seconds(2));
  }
  ~PoolLossTest() override { EXPECT_TRUE(world_.Run(scope_->Close()).ok()); }

  // A session begins, and with it a lease of eight seconds.
  void Join(const std::string& name) {
    fleet_.Join({.pool_uid = uids_[name], .ledger = {}, .capacity = {{"cpu", 100'000}}});
  }
  // One on alpha that may be moved.
  meta::Object Movable(const std::string& name) {
    meta::Object machine = apiserver::PlacementWorld::Machine(name);
    auto& placement = machine.as<apis::compute::Machine>().spec.placement.emplace();
    placement.on_pool_loss = apis::core::kOnPoolLossMove;
    const meta::Object made =
        apiserver::PlacementWorld::Must(world_.Run(world_.client().Create(machine, {})));
    EXPECT_TRUE(world_.Bind(made, "alpha", uids_["alpha"]).ok());
    return made;
  }
  // One as sets make them, for whose loss the set makes another.
  meta::Object Replaceable(const std::string& name, const std::string& pool) {
    meta::Object machine = apiserver::PlacementWorld::Machine(name);
    machine.metadata().annotations[std::string(apis::core::kOnPoolLossAnnotation)] =
        apis::core::kOnPoolLossReplace;
    const meta::Object made =
        apiserver::PlacementWorld::Must(world_.Run(world_.client().Create(machine, {})));
    EXPECT_TRUE(world_.Bind(made, pool, uids_[pool]).ok());
    return made;
  }
  // Its host has yet to say that it is gone: until then it keeps its pool.
  bool IsBeingDeleted(const meta::Object& machine) {
    return world_.Read(machine).metadata().deletion_timestamp.has_value();
  }
  std::string PoolOf(const meta::Object& machine) {
    return world_.Read(machine).as<apis::compute::Machine>().status.placement->pool;
  }
  // One on alpha.
  meta::Object Reserve(const std::string& name) {
    Reservation reservation;
    reservation.metadata.namespace_ = "default";
    reservation.metadata.name = name;
    reservation.spec.resources["cpu"] = meta::Quantity(2);
    const meta::Object made = apiserver::PlacementWorld::Must(world_.Run(
        world_.client().Create(meta::Object::Of(kReservationKind, std::move(reservation)), {})));
    EXPECT_TRUE(world_
                    .Bind(apiserver::PlacementWorld::RequestFor({apiserver::PlacementWorld::ItemFor(
                        made, "alpha", uids_["alpha"], {{"cpu", 2000}})}))
                    .ok());
    return made;
  }
  apis::core::ReservationStatus StatusOf(const meta::Object& object) {
    return world_.Read(object).as<Reservation>().status;
  }
  void RunFor(Duration duration) { world_.loop().RunFor(duration); }

  apiserver::PlacementWorld world_{9};
  SlowBinder binder_;
  fleet::FakeFleet fleet_;
  std::map<std::string, std::string> uids_;
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<PoolLoss> loss_;
};

TEST_F(PoolLossTest, R8_6_ReservationsOfALostPoolAreLostAndLookForAnother) {
  const meta::Object reservation = Reserve("r");
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(8));
  EXPECT_EQ(StatusOf(reservation).state, "Accepted") << "silence is not loss";
  RunFor(Duration::Seconds(4));
  const auto status = StatusOf(reservation);
  EXPECT_EQ(status.state, "Lost");
  EXPECT_EQ(status.placement->pool, "");
  EXPECT_EQ(status.placement->epoch, 2) << "its host is told to forget it when it returns";
  EXPECT_FALSE(world_.Guard(uids_["alpha"])->allocated.contains("cpu"));
}

TEST_F(PoolLossTest, R8_6_Seq18_AHostThatIsBackInTimeKeepsIt) {
  const meta::Object reservation = Reserve("r");
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(8));
  Join("alpha");
  ASSERT_TRUE(fleet_.Confirm(uids_["alpha"], reservation.metadata().uid, 1));
  RunFor(Duration::Seconds(30));
  EXPECT_EQ(StatusOf(reservation).state, "Accepted");
}

TEST_F(PoolLossTest, R8_6_OneThatIsBeingDeletedWaitsForItsHost) {
  const meta::Object reservation = Reserve("r");
  fleet_.Leave(uids_["alpha"]);
  ASSERT_TRUE(world_.Delete(reservation).ok());
  RunFor(Duration::Minutes(1));
  EXPECT_TRUE(world_.Exists(reservation));
}

TEST_F(PoolLossTest, R3_3_4_MachinesAreMovedOnceTheirLeaseMustHaveEnded) {
  const meta::Object machine = Movable("m");
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(9));
  EXPECT_EQ(PoolOf(machine), "alpha");
  RunFor(Duration::Seconds(6));
  EXPECT_EQ(PoolOf(machine), "");
}

TEST_F(PoolLossTest, R3_2_AMachineWithADiskOnItsHostIsKept) {
  meta::Object tied = apiserver::PlacementWorld::Machine("tied");
  auto& spec = tied.as<apis::compute::Machine>().spec;
  spec.placement.emplace().on_pool_loss = apis::core::kOnPoolLossMove;
  spec.volumes.push_back({.name = "scratch"});
  spec.volumes[0].local_disk.emplace();
  tied = apiserver::PlacementWorld::Must(world_.Run(world_.client().Create(tied, {})));
  ASSERT_TRUE(world_.Bind(tied, "alpha", uids_["alpha"]).ok());
  const meta::Object free = Movable("free");
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(20));
  EXPECT_EQ(PoolOf(free), "");
  EXPECT_EQ(PoolOf(tied), "alpha");
}

TEST_F(PoolLossTest, R3_2_AMachineOfWhichItsHostMayNotKnowThatItMovesIsKept) {
  const meta::Object machine = Movable("m");
  for (const char* status : {"False", "Unknown"}) {
    const std::string condition =
        R"({"type":"Movable","status":")" + std::string(status) + R"(","reason":"X","message":""})";
    ASSERT_TRUE(world_
                    .Patch(machine,
                           R"({"status":{"conditions":[)" + condition + "]}}",
                           client::Subresource::kStatus)
                    .ok());
    fleet_.Leave(uids_["alpha"]);
    RunFor(Duration::Seconds(20));
    EXPECT_EQ(PoolOf(machine), "alpha") << status;
    Join("alpha");
    RunFor(Duration::Seconds(2));
  }
  ASSERT_TRUE(
      world_.Patch(machine, R"({"status":{"conditions":[]}})", client::Subresource::kStatus).ok());
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(20));
  EXPECT_EQ(PoolOf(machine), "");
}

TEST_F(PoolLossTest, R3_2_AMachineWithReplaceIsDeletedAfterTenSecondsOfSilenceNotAfterNine) {
  const meta::Object machine = Replaceable("m", "alpha");
  const meta::Object elsewhere = Replaceable("elsewhere", "beta");
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(9));
  EXPECT_FALSE(IsBeingDeleted(machine));
  RunFor(Duration::Seconds(2));
  EXPECT_TRUE(IsBeingDeleted(machine));
  EXPECT_EQ(PoolOf(machine), "alpha") << "its host removes the copy when it returns";
  EXPECT_FALSE(IsBeingDeleted(elsewhere));
}

TEST_F(PoolLossTest, R3_2_AMachineWithReplaceStaysIfItsHostIsBackInTime) {
  const meta::Object machine = Replaceable("m", "alpha");
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(9));
  Join("alpha");
  RunFor(Duration::Seconds(30));
  EXPECT_FALSE(IsBeingDeleted(machine));
}

TEST_F(PoolLossTest, R3_2_R3_4_NothingIsReplacedWhileTheBrakeHolds) {
  const meta::Object machine = Replaceable("m", "alpha");
  for (const char* name : {"alpha", "beta", "gamma"}) fleet_.Leave(uids_[name]);
  RunFor(Duration::Seconds(60));
  EXPECT_FALSE(IsBeingDeleted(machine));
  for (const char* name : {"beta", "gamma"}) Join(name);
  RunFor(Duration::Seconds(2));
  EXPECT_TRUE(IsBeingDeleted(machine)) << "one silent host of four is lost like any other";
}

// Its host came back while the first of two was moved, was granted a lease, started the second one
// again under it, and fell silent once more: that lease has to end first.
TEST_F(PoolLossTest, R3_3_Seq18_WhatAReturnedHostWasGrantedCountsAlthoughItIsSilentAgain) {
  const meta::Object one = Movable("a");
  const meta::Object two = Movable("b");
  binder_.SlowUnbinds(Duration::Seconds(3));
  fleet_.Leave(uids_["alpha"]);
  while (binder_.unbinding().empty()) RunFor(Duration::Millis(100));
  const bool is_one = binder_.unbinding() == std::vector{one.metadata().uid};
  const meta::Object& first = is_one ? one : two;
  const meta::Object& second = is_one ? two : one;

  Join("alpha");
  EXPECT_FALSE(fleet_.Confirm(uids_["alpha"], first.metadata().uid, 1)) << "it is being moved";
  EXPECT_TRUE(fleet_.Confirm(uids_["alpha"], second.metadata().uid, 1)) << "it may run again";
  RunFor(Duration::Seconds(1));
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(10));
  EXPECT_EQ(PoolOf(first), "");
  EXPECT_EQ(PoolOf(second), "alpha") << "the lease that it was granted may still run";
  RunFor(Duration::Seconds(8));
  EXPECT_EQ(PoolOf(second), "");
}

// The brake: an event and a word in the cluster's status, nothing is done, and the operator's
// override lets go of it.
TEST_F(PoolLossTest, R3_4_AMassLossIsToldAndAnOperatorReleasesIt) {
  const client::ObjectKey status{.namespace_ = kClusterStatusNamespace, .name = kClusterStatusName};
  const auto machine = Movable("web");
  for (const char* name : {"alpha", "beta", "gamma"}) fleet_.Leave(uids_[name]);
  RunFor(Duration::Seconds(60));
  EXPECT_EQ(PoolOf(machine), "alpha") << "nothing is moved";
  auto told = apiserver::PlacementWorld::Must(
      world_.Run(world_.client().Get(apis::k8s::kConfigMapKind, status)));
  auto& data = told.as<apis::k8s::ConfigMap>().data;
  EXPECT_EQ(data.at("massLoss"), "3 of 4 pools fell silent");
  const auto events = world_.Run(world_.client().List(apis::k8s::kCoreEventKind, {}));
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_TRUE(std::ranges::any_of(events->items, [](const meta::Object& event) {
    return event.as<apis::k8s::CoreEvent>().reason == "MassLoss";
  }));
  // Another text is no override.
  data["override"] = "2 of 4 pools fell silent";
  told = apiserver::PlacementWorld::Must(world_.Run(world_.client().Update(told, {})));
  RunFor(Duration::Seconds(10));
  EXPECT_EQ(PoolOf(machine), "alpha");
  told = apiserver::PlacementWorld::Must(
      world_.Run(world_.client().Get(apis::k8s::kConfigMapKind, status)));
  told.as<apis::k8s::ConfigMap>().data["override"] = "3 of 4 pools fell silent";
  apiserver::PlacementWorld::Must(world_.Run(world_.client().Update(told, {})));
  RunFor(Duration::Seconds(10));
  EXPECT_EQ(PoolOf(machine), "");
}

}  // namespace
}  // namespace berth::controller
