// SPDX-License-Identifier: Apache-2.0
// Defends PROTOCOL 8.6 in the bind commit: the room of a reservation becomes a machine's in the
// commit that binds the machine, once, and only for who names it.
#include "apis/core/reservation.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine_class.h"
#include "apiserver/registry/placement_world.h"
#include "base/strings.h"

namespace berth::apiserver {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;

class ReservationTest : public testing::Test {
 protected:
  ReservationTest() { pool_uid_ = world_.MakePool("alpha", 4); }

  meta::Object Make(const std::string& name, int32_t count, const std::string& namespace_) {
    Reservation reservation;
    reservation.metadata.namespace_ = namespace_;
    reservation.metadata.name = name;
    reservation.spec.resources["cpu"] = meta::Quantity(2);
    reservation.spec.count = count;
    return PlacementWorld::Must(world_.Run(
        world_.client().Create(meta::Object::Of(kReservationKind, std::move(reservation)), {})));
  }
  // A reservation of 2 cpus for each of `count` machines, on alpha.
  meta::Object Reserve(const std::string& name, int32_t count) {
    const meta::Object made = Make(name, count, "default");
    const auto bound = world_.Bind(PlacementWorld::RequestFor(
        {PlacementWorld::ItemFor(made, "alpha", pool_uid_, {{"cpu", 2000 * count}})}));
    CHECK(bound.ok()) << bound.status();
    return world_.Read(made);
  }
  meta::Object MakeUser(const std::string& name, const std::string& reservation) {
    meta::Object machine = PlacementWorld::Machine(name);
    if (!reservation.empty()) {
      machine.as<apis::compute::Machine>().spec.placement.emplace().reservation_ref =
          apis::core::LocalObjectReference{reservation};
    }
    return PlacementWorld::Must(world_.Run(world_.client().Create(std::move(machine), {})));
  }
  client::BindItem ItemInto(const meta::Object& machine,
                            const meta::Object& reservation,
                            int64_t cpu = 2000) {
    client::BindItem item = PlacementWorld::ItemFor(machine, "alpha", pool_uid_, {{"cpu", cpu}});
    item.reservation = reservation.metadata().name;
    item.reservation_uid = reservation.metadata().uid;
    return item;
  }
  Status BindInto(const meta::Object& machine,
                  const meta::Object& reservation,
                  int64_t cpu = 2000) {
    return world_.Bind(PlacementWorld::RequestFor({ItemInto(machine, reservation, cpu)})).status();
  }
  apis::core::ReservationStatus StatusOf(const meta::Object& reservation) {
    return world_.Read(reservation).as<Reservation>().status;
  }
  int64_t Allocated() { return world_.Guard(pool_uid_)->allocated["cpu"]; }

  PlacementWorld world_{5};
  std::string pool_uid_;
};

TEST_F(ReservationTest, R8_6_S3_BindingAReservationTakesTheRoom) {
  const meta::Object made = Reserve("r", 2);
  EXPECT_EQ(StatusOf(made).state, "Accepted");
  EXPECT_EQ(StatusOf(made).pools,
            (std::vector<apis::core::ReservationPool>{{.name = "alpha", .state = "Accepted"}}));
  EXPECT_EQ(Allocated(), 4000);
  const meta::Object machine = MakeUser("m", "");
  const auto refused = world_.Bind(machine, "alpha", pool_uid_);
  EXPECT_TRUE(refused.status().Is(Reason::kForbidden)) << refused.status();
}

TEST_F(ReservationTest, R8_6_S3_AMachineUsesItsPartInTheCommitThatBindsIt) {
  const meta::Object reservation = Reserve("r", 2);
  const meta::Object machine = MakeUser("m", "r");
  ASSERT_TRUE(BindInto(machine, reservation, 1500).ok());
  const auto placement = *world_.Read(machine).as<apis::compute::Machine>().status.placement;
  EXPECT_EQ(placement.pool, "alpha");
  EXPECT_EQ(placement.reservation_uid, reservation.metadata().uid);
  auto status = StatusOf(reservation);
  EXPECT_EQ(status.state, "Accepted") << "one part is left";
  ASSERT_EQ(status.consumers.size(), 1U);
  EXPECT_EQ(status.consumers[0].uid, machine.metadata().uid);
  EXPECT_EQ(status.placement->resources.at("cpu"), meta::Quantity(2));
  EXPECT_EQ(Allocated(), 3500) << "what the machine does not need of its part is free";
  ASSERT_TRUE(BindInto(MakeUser("m2", "r"), reservation).ok());
  status = StatusOf(reservation);
  EXPECT_EQ(status.state, "Bound");
  EXPECT_EQ(status.pools[0].state, "Bound");
  EXPECT_EQ(Allocated(), 3500);
  const Status third = BindInto(MakeUser("m3", "r"), reservation, 100);
  EXPECT_TRUE(third.Is(Reason::kConflict)) << third;
}

TEST_F(ReservationTest, R8_6_OnlyWhoNamesItMayUseIt) {
  const meta::Object reservation = Reserve("r", 1);
  for (const std::string named : {"", "other"}) {
    const Status refused = BindInto(MakeUser("m" + named, named), reservation);
    EXPECT_TRUE(refused.Is(Reason::kConflict)) << refused;
  }
  EXPECT_TRUE(StatusOf(reservation).consumers.empty());
}

TEST_F(ReservationTest, R8_6_TheRequestMustFitInside) {
  const meta::Object reservation = Reserve("r", 1);
  const Status refused = BindInto(MakeUser("m", "r"), reservation, 2001);
  EXPECT_TRUE(refused.Is(Reason::kConflict)) << refused;
  client::BindItem item = ItemInto(MakeUser("n", "r"), reservation, 1);
  item.resources["memory"] = 1;
  const Status other = world_.Bind(PlacementWorld::RequestFor({item})).status();
  EXPECT_TRUE(other.Is(Reason::kConflict)) << other;
  EXPECT_EQ(Allocated(), 2000);
}

TEST_F(ReservationTest, R8_6_AReservationOfAnotherNamespaceIsNotFound) {
  world_.MakeNamespace("other");
  const meta::Object foreign = Make("r", 1, "other");
  const Status refused = BindInto(MakeUser("m", "r"), foreign);
  EXPECT_TRUE(refused.Is(Reason::kNotFound)) << refused;
}

TEST_F(ReservationTest, R8_6_OneThatGivesItsRoomBackIsNotUsed) {
  const meta::Object reservation = Reserve("r", 1);
  ASSERT_TRUE(world_
                  .Patch(reservation,
                         R"({"status":{"placement":{"release":"Expired"}}})",
                         client::Subresource::kStatus)
                  .ok());
  const Status refused = BindInto(MakeUser("m", "r"), reservation);
  EXPECT_TRUE(refused.Is(Reason::kConflict)) << refused;
  // Its host has let go: the room is everybody's, and it has no other place to look for.
  ASSERT_TRUE(world_.Unbind(reservation, 1).ok());
  EXPECT_EQ(StatusOf(reservation).state, "Expired");
  EXPECT_EQ(Allocated(), 0);
}

TEST_F(ReservationTest, R8_6_LostRoomIsLookedForElsewhereAsFarAsItWasNotUsed) {
  const std::string beta = world_.MakePool("beta", 4);
  const meta::Object reservation = Reserve("r", 2);
  const meta::Object machine = MakeUser("m", "r");
  ASSERT_TRUE(BindInto(machine, reservation).ok());
  client::UnbindRequest lost{.kind = &kReservationKind,
                             .key = {"default", "r"},
                             .uid = reservation.metadata().uid,
                             .placement = 1,
                             .proof = client::UnbindProof::kFenced,
                             .reason = "PoolLost",
                             .message = "the host fell silent"};
  ASSERT_TRUE(world_.Run(world_.registry().binder().UnbindBatch({lost})).front().ok());
  EXPECT_EQ(StatusOf(reservation).state, "Lost");
  EXPECT_EQ(Allocated(), 2000) << "the machine's";
  ASSERT_TRUE(world_
                  .Bind(PlacementWorld::RequestFor({PlacementWorld::ItemFor(
                      world_.Read(reservation), "beta", beta, {{"cpu", 2000}})}))
                  .ok());
  EXPECT_EQ(StatusOf(reservation).state, "Accepted");
  EXPECT_EQ(StatusOf(reservation).consumers.size(), 1U);
}

TEST_F(ReservationTest, R8_6_G4_RoomThatAnOperatorsFenceTookIsLostToo) {
  const meta::Object reservation = Reserve("r", 2);
  ASSERT_TRUE(world_.Unbind(reservation, 1, client::UnbindProof::kOperatorFenced).ok());
  EXPECT_EQ(StatusOf(reservation).state, "Lost");
  EXPECT_EQ(Allocated(), 0);
}

TEST_F(ReservationTest, R8_6_R8_5_MembersOfAGroupUseOneTogetherOrNotAtAll) {
  const meta::Object reservation = Reserve("r", 2);
  const meta::Object a = MakeUser("a", "r");
  const meta::Object b = MakeUser("b", "r");
  const meta::Object c = MakeUser("c", "r");
  const Status refused =
      world_
          .Bind(PlacementWorld::RequestFor(
              {ItemInto(a, reservation), ItemInto(b, reservation), ItemInto(c, reservation)}))
          .status();
  EXPECT_TRUE(refused.Is(Reason::kConflict)) << refused;
  EXPECT_TRUE(StatusOf(reservation).consumers.empty());
  ASSERT_TRUE(
      world_.Bind(PlacementWorld::RequestFor({ItemInto(a, reservation), ItemInto(b, reservation)}))
          .ok());
  EXPECT_EQ(StatusOf(reservation).consumers.size(), 2U);
  EXPECT_EQ(StatusOf(reservation).state, "Bound");
  EXPECT_EQ(Allocated(), 4000);
}

// Two binds of one batch that both fit by themselves.
TEST_F(ReservationTest, R8_6_S3_TheLastPartIsUsedOnce) {
  const meta::Object reservation = Reserve("r", 1);
  const auto request = [&](const std::string& name) {
    return PlacementWorld::RequestFor({ItemInto(MakeUser(name, "r"), reservation)});
  };
  const auto verdicts =
      world_.Run(world_.registry().binder().BindBatch({request("a"), request("b")}));
  EXPECT_NE(verdicts[0].ok(), verdicts[1].ok());
  EXPECT_EQ(StatusOf(reservation).consumers.size(), 1U);
  EXPECT_EQ(Allocated(), 2000);
}

TEST_F(ReservationTest, R8_6_DeletionGivesTheRoomBackWhenItsHostHasLetGo) {
  const meta::Object reservation = Reserve("r", 2);
  const meta::Object machine = MakeUser("m", "r");
  ASSERT_TRUE(BindInto(machine, reservation).ok());
  ASSERT_TRUE(world_.Delete(reservation).ok());
  ASSERT_TRUE(world_.Exists(reservation)) << "its host keeps the room";
  EXPECT_EQ(Allocated(), 4000);
  const Status refused = BindInto(MakeUser("late", "r"), reservation);
  EXPECT_TRUE(refused.Is(Reason::kConflict)) << refused;
  ASSERT_TRUE(world_.Unbind(reservation, 1).ok());
  EXPECT_FALSE(world_.Exists(reservation));
  EXPECT_EQ(Allocated(), 2000) << "the machine stays";
}

// Its host keeps what is left, and knows who has the rest; the store has forgotten both.
TEST_F(ReservationTest, R8_6_R4_4_AnAdoptedReservationIsAsUsedAsItsHostKnows) {
  const meta::Object reservation = Make("r", 2, "default");
  client::Adoption adoption{.kind = &reservation.kind(),
                            .key = {reservation.metadata().namespace_, "r"},
                            .uid = reservation.metadata().uid,
                            .placement = 0,
                            .pool = "alpha",
                            .pool_uid = pool_uid_,
                            .resources = {{"cpu", 2000}},
                            .consumers = {"one"}};
  const auto adopt = [this](const client::Adoption& wanted) {
    return world_.Run(world_.registry().rewound().AdoptBatch(std::vector{wanted})).front();
  };
  ASSERT_TRUE(adopt(adoption).ok());
  EXPECT_EQ(StatusOf(reservation).state, "Accepted");
  ASSERT_TRUE(BindInto(MakeUser("m", "r"), reservation).ok()) << "one part is left";
  adoption.resources = {{"cpu", 0}};
  adoption.consumers = {"one", "two"};
  const meta::Object used = Make("used", 2, "default");
  adoption.key.name = "used";
  adoption.uid = used.metadata().uid;
  adoption.placement = 0;
  ASSERT_TRUE(adopt(adoption).ok());
  EXPECT_EQ(StatusOf(used).state, "Bound");
  EXPECT_EQ(StatusOf(used).consumers.size(), 2U);
  const Status refused = BindInto(MakeUser("late", "used"), used);
  EXPECT_NE(refused.message().find("has no room left"), std::string::npos) << refused;
}

// Its host may say anything: no proof is of amounts.
TEST_F(ReservationTest, R8_6_Seq20_AnAdoptedReservationKeepsNoMoreThanItIsFor) {
  apis::compute::MachineClass large;
  large.metadata.name = "large";
  large.capabilities["cpu"] = meta::Quantity(2);
  large.capabilities["memory"] = meta::Quantity(10);
  (void)PlacementWorld::Must(world_.Run(world_.client().Create(
      meta::Object::Of(apis::compute::kMachineClassKind, std::move(large)), {})));
  Reservation sized;
  sized.metadata.namespace_ = "default";
  sized.metadata.name = "sized";
  sized.spec.class_ref = apis::core::LocalObjectReference{"large"};
  sized.spec.count = 2;
  const meta::Object of_class = PlacementWorld::Must(
      world_.Run(world_.client().Create(meta::Object::Of(kReservationKind, sized), {})));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  struct Case {
    meta::Object reservation;
    apis::Amounts said;
    std::vector<std::string> consumers;
    apis::Amounts kept;
  };
  std::map<std::string, int64_t> allocated;
  for (const Case& c : {
           Case{Make("more", 2, "default"), {{"cpu", kMost}, {"gpu", 1}}, {}, {{"cpu", 4000}}},
           Case{Make("used", 2, "default"), {{"cpu", 4000}}, {"x"}, {{"cpu", 2000}}},
           Case{Make("all", 2, "default"), {{"cpu", 4000}}, {"x", "y"}, {}},
           Case{Make("less", 2, "default"), {{"cpu", 1500}}, {}, {{"cpu", 1500}}},
           // A pool that counts parts of itself.
           Case{Make("part", 2, "default"), {{"share", 77}}, {}, {{"share", 77}}},
           Case{of_class, {{"cpu", 9000}, {"memory", 30}}, {}, {{"cpu", 4000}, {"memory", 20}}},
       }) {
    const std::string name = c.reservation.metadata().name;
    const client::Adoption adoption{.kind = &kReservationKind,
                                    .key = {"default", name},
                                    .uid = c.reservation.metadata().uid,
                                    .placement = 0,
                                    .pool = "alpha",
                                    .pool_uid = pool_uid_,
                                    .resources = c.said,
                                    .consumers = c.consumers};
    const auto adopted =
        world_.Run(world_.registry().rewound().AdoptBatch(std::vector{adoption})).front();
    ASSERT_TRUE(adopted.ok()) << name << ": " << adopted;
    EXPECT_EQ(apis::ToAmounts(StatusOf(c.reservation).placement->resources), c.kept) << name;
    for (const auto& [dimension, amount] : c.kept) allocated[dimension] += amount;
    EXPECT_EQ(world_.Guard(pool_uid_)->allocated, allocated) << name;
  }
}

}  // namespace
}  // namespace berth::apiserver
