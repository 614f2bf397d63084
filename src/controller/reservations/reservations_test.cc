// SPDX-License-Identifier: Apache-2.0
// Defends PROTOCOL 8.6: the time of a reservation runs while a host keeps its room, survives a
// restart as what is left of it, and ends it; one with mode All has a part on every pool.
#include "controller/reservations/reservations.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "apis/registry.h"
#include "apiserver/registry/placement_world.h"
#include "apiserver/registry/poison.h"
#include "controller/gc/garbage_collector.h"
#include "controller/reservations/reservation_plan.h"

namespace berth::controller {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;

class ReservationsTest : public testing::Test {
 protected:
  ReservationsTest() {
    pool_uid_ = world_.MakePool("alpha", 100);
    Start();
  }
  ~ReservationsTest() override { Stop(); }
  void Start() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    controller_ =
        std::make_unique<Reservations>(Reservations::Deps{.loop = world_.loop(),
                                                          .client = world_.client(),
                                                          .binder = world_.registry().binder(),
                                                          .scheme = world_.scheme()});
    scope_->Spawn("reservations", controller_->Run());
  }
  void Stop() {
    if (scope_ == nullptr) return;
    EXPECT_TRUE(world_.Run(scope_->Close()).ok());
    controller_.reset();
    scope_.reset();
  }

  meta::Object Make(const std::string& name, const std::string& ttl, const std::string& mode = "") {
    Reservation reservation;
    reservation.metadata.namespace_ = "default";
    reservation.metadata.name = name;
    reservation.spec.resources["cpu"] = meta::Quantity(2);
    reservation.spec.ttl = ttl;
    reservation.spec.mode = mode;
    return apiserver::PlacementWorld::Must(world_.Run(
        world_.client().Create(meta::Object::Of(kReservationKind, std::move(reservation)), {})));
  }
  // What the scheduler does once a host has said yes.
  void Accept(const std::string& name, const std::string& pool, const std::string& pool_uid) {
    const meta::Object now = Read(name);
    const auto bound = world_.Bind(apiserver::PlacementWorld::RequestFor(
        {apiserver::PlacementWorld::ItemFor(now, pool, pool_uid, {{"cpu", 2000}})}));
    ASSERT_TRUE(bound.ok()) << bound.status();
  }
  meta::Object Read(const std::string& name) {
    return apiserver::PlacementWorld::Must(
        world_.Run(world_.client().Get(kReservationKind, {"default", name})));
  }
  Reservation Get(const std::string& name) { return Read(name).as<Reservation>(); }
  bool Exists(const std::string& name) {
    return world_.Run(world_.client().Get(kReservationKind, {"default", name})).ok();
  }
  void RunFor(Duration duration) { world_.loop().RunFor(duration); }

  apiserver::PlacementWorld world_{3};
  std::string pool_uid_;
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<Reservations> controller_;
};

TEST_F(ReservationsTest, R8_6_TheTimeRunsFromAcceptanceAndEndsIt) {
  Make("r", "1h");
  RunFor(Duration::Hours(2));
  EXPECT_EQ(Get("r").status.remaining, "") << "nobody keeps room for it yet";
  Accept("r", "alpha", pool_uid_);
  RunFor(Duration::Minutes(59));
  EXPECT_EQ(Get("r").status.state, "Accepted");
  EXPECT_EQ(Get("r").status.placement->release, "");
  RunFor(Duration::Seconds(61));
  const Reservation over = Get("r");
  EXPECT_EQ(over.status.state, "Expired");
  EXPECT_EQ(over.status.placement->release, "Expired") << "its host is told";
  EXPECT_EQ(over.status.placement->pool, "alpha") << "until that has let go, it is there";
  EXPECT_EQ(over.status.remaining, "0s");
  ASSERT_TRUE(world_.Unbind(Read("r"), 1).ok());
  RunFor(Duration::Minutes(1));
  EXPECT_EQ(Get("r").status.state, "Expired");
}

TEST_F(ReservationsTest, WhatNoValidationWouldHaveLetInKeepsNobodysTimeFromEnding) {
  const auto poisons = apiserver::Poisons(
      world_.scheme(), "default", pool_uid_, world_.MakeVolumePool("disks", 1LL << 40));
  for (const meta::Object& poison : poisons) apiserver::PutByHand(world_, poison);
  Make("r", "10m");
  Accept("r", "alpha", pool_uid_);
  Make("all", "", "All");
  RunFor(Duration::Seconds(5));
  EXPECT_FALSE(Get("all").status.pools.empty());
  Stop();
  Start();
  RunFor(Duration::Minutes(11));
  EXPECT_EQ(Get("r").status.state, "Expired");
}

TEST_F(ReservationsTest, R8_6_ARestartGoesOnWithWhatWasLeft) {
  Make("r", "10m");
  Accept("r", "alpha", pool_uid_);
  RunFor(Duration::Minutes(4));
  Stop();
  RunFor(Duration::Hours(5));
  Start();
  RunFor(Duration::Minutes(5));
  EXPECT_EQ(Get("r").status.state, "Accepted");
  RunFor(Duration::Seconds(91));
  EXPECT_EQ(Get("r").status.state, "Expired");
}

TEST_F(ReservationsTest, R8_6_TheTimeStandsStillWhileItsRoomIsLookedForAgain) {
  Make("r", "10m");
  Accept("r", "alpha", pool_uid_);
  RunFor(Duration::Minutes(4));
  ASSERT_TRUE(world_.Unbind(Read("r"), 1).ok());
  RunFor(Duration::Hours(1));
  EXPECT_EQ(Get("r").status.state, "Pending");
  EXPECT_EQ(Get("r").status.remaining, "6m");
  Accept("r", "alpha", pool_uid_);
  RunFor(Duration::Seconds(350));
  EXPECT_EQ(Get("r").status.state, "Accepted");
  RunFor(Duration::Seconds(15));
  EXPECT_EQ(Get("r").status.state, "Expired");
}

TEST_F(ReservationsTest, R8_6_WithoutATimeItStaysForEver) {
  Make("r", "");
  Accept("r", "alpha", pool_uid_);
  RunFor(Duration::Hours(48));
  EXPECT_EQ(Get("r").status.state, "Accepted");
}

TEST_F(ReservationsTest, R8_6_WhereNoHostIsAskedTheRoomIsGivenBackAtOnce) {
  const std::string legacy = world_.MakePool("legacy", 100, apis::core::kPoolModeApi);
  Make("r", "10s");
  Accept("r", "legacy", legacy);
  RunFor(Duration::Seconds(12));
  EXPECT_EQ(Get("r").status.state, "Expired");
  EXPECT_EQ(Get("r").status.placement->pool, "");
  EXPECT_FALSE(world_.Guard(legacy)->allocated.contains("cpu"));
}

TEST_F(ReservationsTest, R8_6_OneThatIsToLeaveAPoolWhereNoHostIsAskedLeavesAtOnce) {
  const std::string legacy = world_.MakePool("legacy", 100, apis::core::kPoolModeApi);
  const std::string drain = R"({"status":{"placement":{"release":"Drain"}}})";
  Make("r", "10m");
  Accept("r", "legacy", legacy);
  Make("kept", "");
  Accept("kept", "alpha", pool_uid_);
  RunFor(Duration::Minutes(4));
  ASSERT_TRUE(world_.Patch(Read("r"), drain, client::Subresource::kStatus).ok());
  ASSERT_TRUE(world_.Patch(Read("kept"), drain, client::Subresource::kStatus).ok());
  RunFor(Duration::Seconds(2));
  EXPECT_EQ(Get("r").status.placement->pool, "");
  EXPECT_EQ(Get("r").status.state, "Pending") << "another place is looked for";
  EXPECT_EQ(Get("r").status.remaining, "6m");
  EXPECT_FALSE(world_.Guard(legacy)->allocated.contains("cpu"));
  EXPECT_EQ(Get("kept").status.placement->pool, "alpha") << "its host has to say so";
}

// Whatever domains the server shows its kinds in.
TEST_F(ReservationsTest, R8_6_PartsGoWithTheirOwnerInEveryDomain) {
  for (const std::string domain : {"ironcore.dev", "OpenKCM.dev"}) {
    const meta::Scheme scheme{apis::AllKinds(), {domain}};
    GarbageCollector collector(world_.loop(), world_.client(), scheme);
    rt::TaskScope scope(world_.loop());
    scope.Spawn("gc", collector.Run());
    Make("r", "", "All");
    RunFor(Duration::Seconds(1));
    ASSERT_TRUE(Exists(PartName("r", "alpha"))) << domain;
    ASSERT_TRUE(world_.Run(world_.client().Delete(kReservationKind, {"default", "r"}, {})).ok());
    RunFor(Duration::Seconds(10));
    EXPECT_FALSE(Exists(PartName("r", "alpha"))) << domain;
    EXPECT_TRUE(world_.Run(scope.Close()).ok());
  }
}

TEST_F(ReservationsTest, R8_6_OneForAllPoolsHasAPartOnEach) {
  const std::string beta = world_.MakePool("beta", 100);
  Make("r", "", "All");
  RunFor(Duration::Seconds(1));
  const std::string on_alpha = PartName("r", "alpha");
  const std::string on_beta = PartName("r", "beta");
  const Reservation part = Get(on_alpha);
  EXPECT_EQ(part.spec.pools, std::vector<std::string>{"alpha"});
  EXPECT_EQ(part.spec.mode, "One");
  EXPECT_TRUE(apis::core::IsNamedBy(part, "r"));
  EXPECT_EQ(part.metadata.owner_references.at(0).uid, Get("r").metadata.uid);
  EXPECT_EQ(Get("r").status.state, "Pending");
  EXPECT_EQ(Get("r").status.conditions.at(0).message, "0 of 2 pools keep the room");
  Accept(on_alpha, "alpha", pool_uid_);
  RunFor(Duration::Seconds(1));
  EXPECT_EQ(Get("r").status.state, "Accepted");
  EXPECT_EQ(Get("r").status.conditions.at(0).status, "False");
  Accept(on_beta, "beta", beta);
  RunFor(Duration::Seconds(1));
  EXPECT_EQ(Get("r").status.conditions.at(0).status, "True");
  // A pool that comes later gets a part, one that goes loses it.
  world_.MakePool("gamma", 100);
  RunFor(Duration::Seconds(1));
  const std::string on_gamma = PartName("r", "gamma");
  ASSERT_TRUE(Exists(on_gamma));
  ASSERT_TRUE(
      world_.Run(world_.client().Delete(apis::compute::kMachinePoolKind, {"", "gamma"}, {})).ok());
  RunFor(Duration::Seconds(1));
  EXPECT_FALSE(Exists(on_gamma));
  EXPECT_EQ(Get("r").status.pools.size(), 2U);
}

TEST(ReservationPlan, R8_6_TheWholeIsWhatItsPartsAre) {
  const std::map<std::string, PartStates> rows = {
      {"Pending", {}},
      {"Accepted", {{"a", "Accepted"}, {"b", "Bound"}, {"c", "Rejected"}}},
      {"Bound", {{"a", "Bound"}, {"b", "Lost"}}},
      {"Lost", {{"a", "Lost"}, {"b", "Rejected"}}},
      {"Rejected", {{"a", "Rejected"}, {"b", "Rejected"}}},
      {"Expired", {{"a", "Expired"}, {"b", "Expired"}}},
  };
  for (const auto& [state, parts] : rows) {
    Reservation whole;
    SumUp(parts, WallTime(), whole);
    EXPECT_EQ(whole.status.state, state);
    EXPECT_EQ(whole.status.pools.size(), parts.size());
  }
}

TEST(ReservationPlan, R8_6_PoolsAreChosenByNameAndLabels) {
  Reservation whole;
  EXPECT_TRUE(IsForPool(whole, "alpha", {}));
  whole.spec.selector = {{"zone", "a"}};
  EXPECT_FALSE(IsForPool(whole, "alpha", {}));
  EXPECT_TRUE(IsForPool(whole, "alpha", {{"zone", "a"}, {"disk", "ssd"}}));
  whole.spec.pools = {"beta"};
  EXPECT_FALSE(IsForPool(whole, "alpha", {{"zone", "a"}}));
}

}  // namespace
}  // namespace berth::controller
