// SPDX-License-Identifier: Apache-2.0
// Defends what happens when a host falls silent. Reservations (PROTOCOL 8.6): the room is looked
// for elsewhere, unless the host came back in time or somebody deletes it. Machines with Move
// (PROTOCOL 3.3): never while a lease that the host was granted may still run. Machines with
// Replace (PROTOCOL 3.2): deleted after ten seconds of silence, and not a moment before.
#include "controller/pool_loss/pool_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/core/reservation.h"
#include "apis/k8s/config_map.h"
#include "apis/k8s/event.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/placement_world.h"
#include "apiserver/registry/poison.h"
#include "client/passing_client.h"
#include "fleet/fake/fake_fleet.h"
#include "rt/sleep.h"

namespace berth::controller {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;

const client::ObjectKey kStatusKey{.namespace_ = kClusterStatusNamespace,
                                   .name = kClusterStatusName};

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

// A server that does not show what it tells of mass losses, as long as it is told to.
class SilentClient final : public client::PassingClient {
 public:
  explicit SilentClient(client::Client& inner) : PassingClient(inner) {}
  void Refuse(bool refuses) { refuses_ = refuses; }

  rt::Task<Result<meta::Object>> Get(const meta::KindInfo& kind, client::ObjectKey key) override {
    if (refuses_ && &kind == &apis::k8s::kConfigMapKind) {
      co_return Unavailable("the store does not answer");
    }
    co_return co_await inner().Get(kind, std::move(key));
  }

 private:
  bool refuses_ = false;
};

class PoolLossTest : public testing::Test {
 protected:
  explicit PoolLossTest(const std::vector<std::string>& names = {"alpha", "beta", "gamma", "delta"})
      : client_(world_.client()), binder_(world_.registry().binder()), fleet_(world_.loop()) {
    for (const std::string& name : names) {
      uids_[name] = world_.MakePool(name, 100);
      Join(name);
    }
    Start();
    RunFor(Duration::Seconds(2));
  }
  ~PoolLossTest() override { Stop(); }

  // A server begins to lead.
  void Start() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    loss_ = std::make_unique<PoolLoss>(PoolLoss::Deps{.loop = world_.loop(),
                                                      .client = client_,
                                                      .binder = binder_,
                                                      .fleet = fleet_,
                                                      .scheme = world_.scheme()});
    scope_->Spawn("loss", loss_->Run());
  }
  void Stop() {
    EXPECT_TRUE(world_.Run(scope_->Close()).ok());
    loss_.reset();
  }

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

  // What the cluster's status says.
  std::map<std::string, std::string> Told() {
    const auto status = world_.Run(world_.client().Get(apis::k8s::kConfigMapKind, kStatusKey));
    if (status.status().Is(Reason::kNotFound)) return {};
    return apiserver::PlacementWorld::Must(status).as<apis::k8s::ConfigMap>().data;
  }
  // Somebody writes it.
  void Write(const std::map<std::string, std::string>& data) {
    const auto found = world_.Run(world_.client().Get(apis::k8s::kConfigMapKind, kStatusKey));
    apis::k8s::ConfigMap status;
    if (found.ok()) status = found->as<apis::k8s::ConfigMap>();
    status.metadata.namespace_ = kStatusKey.namespace_;
    status.metadata.name = kStatusKey.name;
    status.data = data;
    const meta::Object object = meta::Object::Of(apis::k8s::kConfigMapKind, std::move(status));
    apiserver::PlacementWorld::Must(world_.Run(found.ok() ? world_.client().Update(object, {})
                                                          : world_.client().Create(object, {})));
  }
  // Somebody who does not go through the API.
  void Spoil() {
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(apiserver::StoreKey(apis::k8s::kConfigMapKind, kStatusKey),
                                     Bytes(std::string_view("noise"))));
    ASSERT_TRUE(world_.Run(world_.store().Commit(std::move(txn))).ok());
    ASSERT_TRUE(world_.Run(world_.cache().CatchUp()).ok());
    const auto found = world_.Run(world_.client().Get(apis::k8s::kConfigMapKind, kStatusKey));
    ASSERT_EQ(found.status().reason(), Reason::kInternal);
  }
  void RemoveByForce() {
    client::DeleteOptions options;
    options.force = client::Force::kYes;
    ASSERT_TRUE(
        world_.Run(world_.client().Delete(apis::k8s::kConfigMapKind, kStatusKey, options)).ok());
  }
  bool HasEvent(const std::string& reason) {
    const auto events = world_.Run(world_.client().List(apis::k8s::kCoreEventKind, {}));
    EXPECT_TRUE(events.ok()) << events.status();
    return std::ranges::any_of(events->items, [&reason](const meta::Object& event) {
      return event.as<apis::k8s::CoreEvent>().reason == reason;
    });
  }

  apiserver::PlacementWorld world_{9};
  SilentClient client_;
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

// Somebody has copied them in the store, with their UIDs, and removed the copies again.
TEST_F(PoolLossTest, TheEndOfACopyIsNotTheEndOfAPoolOrOfAMachine) {
  const meta::Object machine = Movable("m");
  const meta::Object alpha = apiserver::PlacementWorld::Must(
      world_.Run(world_.client().Get(apis::compute::kMachinePoolKind, {"", "alpha"})));
  for (meta::Object copy : {alpha, world_.Read(machine)}) {
    copy.metadata().name = "copy";
    apiserver::PutByHand(world_, copy);
    RunFor(Duration::Seconds(1));
    apiserver::RemoveByHand(world_, copy);
  }
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(20));
  EXPECT_EQ(PoolOf(machine), "");
}

// Lists come in the order of names: the copy is there first.
TEST_F(PoolLossTest, TheOriginalCountsWhenTheCopyThatCameFirstIsGone) {
  const meta::Object machine = Movable("web");
  const meta::Object reservation = Reserve("room");
  std::vector<meta::Object> copies = {world_.Read(machine), world_.Read(reservation)};
  Stop();
  for (meta::Object& copy : copies) {
    copy.metadata().name = "a-copy";
    apiserver::PutByHand(world_, copy);
  }
  Start();
  RunFor(Duration::Seconds(2));
  for (const meta::Object& copy : copies) apiserver::RemoveByHand(world_, copy);
  RunFor(Duration::Seconds(1));
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(20));
  EXPECT_EQ(PoolOf(machine), "");
  EXPECT_EQ(StatusOf(reservation).state, "Lost");
}

TEST_F(PoolLossTest, WhatNoValidationWouldHaveLetInKeepsNobodyWhereItsHostIsLost) {
  const auto poisons =
      apiserver::Poisons(world_.scheme(), "default", uids_["alpha"], uids_["beta"]);
  for (const meta::Object& poison : poisons) apiserver::PutByHand(world_, poison);
  const meta::Object moves = Movable("moves");
  const meta::Object goes = Replaceable("goes", "alpha");
  const meta::Object reservation = Reserve("r");
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(20));
  EXPECT_EQ(PoolOf(moves), "");
  EXPECT_TRUE(IsBeingDeleted(goes));
  EXPECT_EQ(StatusOf(reservation).state, "Lost");
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
  const auto machine = Movable("web");
  for (const char* name : {"alpha", "beta", "gamma"}) fleet_.Leave(uids_[name]);
  RunFor(Duration::Seconds(60));
  EXPECT_EQ(PoolOf(machine), "alpha") << "nothing is moved";
  EXPECT_EQ(Told()["massLoss"], "3 of 4 pools fell silent");
  EXPECT_TRUE(HasEvent("MassLoss"));
  // Another text is no override.
  Write({{"massLoss", "3 of 4 pools fell silent"}, {"override", "2 of 4 pools fell silent"}});
  RunFor(Duration::Seconds(10));
  EXPECT_EQ(PoolOf(machine), "alpha");
  Write({{"massLoss", "3 of 4 pools fell silent"}, {"override", "3 of 4 pools fell silent"}});
  RunFor(Duration::Seconds(10));
  EXPECT_EQ(PoolOf(machine), "");
  EXPECT_EQ(Told()["massLoss"], "");
  EXPECT_FALSE(Told().contains("override"));
  EXPECT_TRUE(HasEvent("BrakeReleased"));
  EXPECT_FALSE(HasEvent("ContactReturned")) << "nobody has been heard of";
}

TEST_F(PoolLossTest, R3_4_ABrakeThatWasToldBeforeARestartEndsWhenContactReturns) {
  const meta::Object machine = Movable("web");
  for (const char* name : {"alpha", "beta", "gamma"}) fleet_.Leave(uids_[name]);
  RunFor(Duration::Seconds(60));
  ASSERT_EQ(Told()["massLoss"], "3 of 4 pools fell silent");
  Stop();
  RunFor(Duration::Seconds(5));
  for (const char* name : {"alpha", "beta", "gamma"}) Join(name);
  Start();
  RunFor(Duration::Seconds(3));
  EXPECT_EQ(Told()["massLoss"], "");
  EXPECT_TRUE(HasEvent("ContactReturned"));
  EXPECT_EQ(PoolOf(machine), "alpha");
}

TEST_F(PoolLossTest, R3_4_ARestartAloneIsNoReturnOfContact) {
  for (const char* name : {"alpha", "beta", "gamma"}) fleet_.Leave(uids_[name]);
  RunFor(Duration::Seconds(60));
  Stop();
  Start();
  for (int i = 0; i < 40; ++i) {
    RunFor(Duration::Millis(500));
    EXPECT_EQ(Told()["massLoss"], "3 of 4 pools fell silent") << i;
  }
  EXPECT_FALSE(HasEvent("ContactReturned"));
}

TEST_F(PoolLossTest, R3_4_AnOverrideThatWasLeftReleasesNoLaterLoss) {
  const meta::Object machine = Movable("web");
  Write({{"massLoss", ""}, {"override", "3 of 4 pools fell silent"}});
  for (const char* name : {"alpha", "beta", "gamma"}) fleet_.Leave(uids_[name]);
  RunFor(Duration::Seconds(60));
  EXPECT_EQ(Told(), (std::map<std::string, std::string>{{"massLoss", "3 of 4 pools fell silent"}}));
  EXPECT_EQ(PoolOf(machine), "alpha");
}

TEST_F(PoolLossTest, R3_4_NothingIsMovedBeforeWhatAnEarlierServerToldWasRead) {
  const meta::Object machine = Movable("web");
  Stop();
  client_.Refuse(true);
  Start();
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Minutes(1));
  EXPECT_EQ(PoolOf(machine), "alpha");
  client_.Refuse(false);
  RunFor(Duration::Seconds(20));
  EXPECT_EQ(PoolOf(machine), "");
}

TEST_F(PoolLossTest, R3_4_ARecordThatCannotBeReadStopsNoHandlingOfALostPool) {
  const meta::Object moved = Movable("moved");
  const meta::Object replaced = Replaceable("replaced", "alpha");
  Write({{"massLoss", ""}});
  Stop();
  Spoil();
  Start();
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(9));
  EXPECT_FALSE(IsBeingDeleted(replaced));
  RunFor(Duration::Seconds(11));
  EXPECT_TRUE(IsBeingDeleted(replaced));
  EXPECT_EQ(PoolOf(moved), "");
}

// The brake holds whether or not it can be told, and an operator can release it once it is.
TEST_F(PoolLossTest, R3_4_AMassLossIsToldWhenTheRecordThatCannotBeReadIsRemoved) {
  const meta::Object machine = Movable("web");
  Write({{"massLoss", "3 of 4 pools fell silent"}});
  for (const char* name : {"alpha", "beta", "gamma"}) fleet_.Leave(uids_[name]);
  Stop();
  Spoil();
  Start();
  RunFor(Duration::Seconds(60));
  EXPECT_EQ(PoolOf(machine), "alpha");
  RemoveByForce();
  RunFor(Duration::Seconds(2));
  EXPECT_EQ(Told(), (std::map<std::string, std::string>{{"massLoss", "3 of 4 pools fell silent"}}));
  EXPECT_EQ(PoolOf(machine), "alpha");
  Write({{"massLoss", "3 of 4 pools fell silent"}, {"override", "3 of 4 pools fell silent"}});
  RunFor(Duration::Seconds(10));
  EXPECT_EQ(PoolOf(machine), "");
}

TEST_F(PoolLossTest, R3_4_ABrakeEndsAlthoughItsRecordCannotBeReadAnyMore) {
  const meta::Object machine = Replaceable("m", "alpha");
  for (const char* name : {"alpha", "beta", "gamma"}) fleet_.Leave(uids_[name]);
  RunFor(Duration::Seconds(60));
  ASSERT_EQ(Told()["massLoss"], "3 of 4 pools fell silent");
  Spoil();
  RunFor(Duration::Seconds(10));
  EXPECT_FALSE(IsBeingDeleted(machine));
  for (const char* name : {"beta", "gamma"}) Join(name);
  RunFor(Duration::Seconds(2));
  EXPECT_TRUE(IsBeingDeleted(machine));
  EXPECT_TRUE(HasEvent("ContactReturned"));
}

// Their UIDs come first, so that turns would be theirs.
TEST_F(PoolLossTest, R3_4_AHostsOtherPoolsUseUpNoTurns) {
  const meta::Object machine = Replaceable("m", "alpha");
  const std::vector<std::string> others = {"0-disks", "0-fast-disks", "0-buckets"};
  for (const std::string& uid : others)
    fleet_.Join({.pool_uid = uid, .ledger = {}, .capacity = {}});
  for (int i = 0; i < 6; ++i) {
    fleet_.Join({.pool_uid = "disks-" + std::to_string(i), .ledger = {}, .capacity = {}});
  }
  RunFor(Duration::Seconds(2));
  for (const std::string& uid : others) fleet_.Leave(uid);
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(11));
  EXPECT_TRUE(IsBeingDeleted(machine));
}

class TwoHostsTest : public PoolLossTest {
 protected:
  TwoHostsTest() : PoolLossTest({"alpha", "beta"}) {
    for (const std::string& host : {std::string("alpha"), std::string("beta")}) {
      uids_[host + "-disks"] = world_.MakeVolumePool(host + "-disks", 1000);
      uids_[host + "-buckets"] = "buckets-of-" + host;
      Join(host + "-disks");
      Join(host + "-buckets");
    }
  }
};

TEST_F(TwoHostsTest, R3_4_OneHostOfTwoWithPoolsOfThreeKindsIsNoMassLoss) {
  const meta::Object moved = Movable("moved");
  const meta::Object replaced = Replaceable("replaced", "alpha");
  for (const char* pool : {"alpha", "alpha-disks", "alpha-buckets"}) fleet_.Leave(uids_[pool]);
  RunFor(Duration::Seconds(20));
  EXPECT_EQ(Told(), (std::map<std::string, std::string>()));
  EXPECT_TRUE(IsBeingDeleted(replaced));
  EXPECT_EQ(PoolOf(moved), "");
}

}  // namespace
}  // namespace berth::controller
