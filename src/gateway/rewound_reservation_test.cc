// SPDX-License-Identifier: Apache-2.0
// After a restore: what a host says of a reservation that it was given is proven as far as its
// place goes. How much it keeps and who has used it is the host's word alone, and touches nothing
// but the reservation and that host's own pool (PROTOCOL 8.6, sequence 20).
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "apis/core/reservation.h"
#include "gateway/gateway_world.h"
#include "pki/digest.h"

namespace berth::gateway {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

class RewoundReservationTest : public testing::Test {
 protected:
  RewoundReservationTest() {
    world_.MakeNamespace("other");
    world_.Enrol("a");
    world_.Enrol("b");
    pool_a_ = a_.Join("alpha");
    pool_b_ = b_.Join("beta");
    Reservation draft;
    draft.metadata.namespace_ = "default";
    draft.metadata.name = "room";
    draft.spec.resources["cpu"] = meta::Quantity(1);
    draft.spec.count = 3;
    reservation_ = GatewayWorld::Must(world_.Run(
        world_.client().Create(meta::Object::Of(kReservationKind, std::move(draft)), {})));
  }
  // A machine of A.
  meta::Object MachineOfA(const std::string& name, const std::string& name_space) {
    meta::Object draft = GatewayWorld::Machine(name);
    draft.metadata().namespace_ = name_space;
    const meta::Object made =
        GatewayWorld::Must(world_.Run(world_.client().Create(std::move(draft), {})));
    CHECK(world_.Bind(made, "alpha", pool_a_).ok());
    return world_.Read(made);
  }
  void Restore() {
    a_.Leave();
    b_.Leave();
    world_.StopGateway();
    ++world_.identity().incarnation;
    world_.identity().is_rewound = true;
    world_.StartGateway();
  }
  // What B was given after the backup, with a good proof.
  agent::Known CopyOfB(const meta::Object& object) {
    agent::Known known;
    known.set_uid(object.metadata().uid);
    known.set_incarnation(1);
    known.set_placement(3);
    known.set_hash("an old body");
    known.set_pool_uid(pool_b_);
    const std::string key = world_.authority().DeriveSecret("berth placement proof");
    known.set_proof(pki::HmacSha256(key, known.uid() + "/1/3/" + pool_b_).substr(0, 16));
    return known;
  }
  // B says it, and is believed.
  void Claim(agent::Known known) {
    const std::string uid = known.uid();
    b_.known[uid] = std::move(known);
    ASSERT_EQ(b_.Join("beta"), pool_b_);
    ASSERT_TRUE(b_.WaitAssigns(1));
    EXPECT_EQ(b_.assigns()[0].uid(), uid);
  }
  apis::core::ReservationStatus Now() { return world_.Read(reservation_).as<Reservation>().status; }
  std::vector<std::string> Users() {
    std::vector<std::string> uids;
    for (const auto& consumer : Now().consumers) uids.push_back(consumer.uid);
    return uids;
  }

  GatewayWorld world_;
  TestHost a_{world_, "a"};
  TestHost b_{world_, "b"};
  std::string pool_a_;
  std::string pool_b_;
  meta::Object reservation_;
};

TEST_F(RewoundReservationTest, Seq20_R8_6_ItIsAdoptedAsUsedAsItsHostSays) {
  Restore();
  agent::Known known = CopyOfB(reservation_);
  (*known.mutable_resources())["cpu"] = 2000;
  known.add_consumers("made after the backup");
  Claim(std::move(known));
  EXPECT_EQ(Now().placement->pool, "beta");
  EXPECT_EQ(Now().placement->resources.at("cpu"), meta::Quantity(2));
  EXPECT_EQ(Users(), std::vector<std::string>{"made after the backup"});
  EXPECT_EQ(b_.assigns()[0].reservation().count(), 2);
}

TEST_F(RewoundReservationTest, Seq20_R8_6_ForgedAmountsAreBoundByWhatItIsFor) {
  const meta::Object machine = MachineOfA("web", "default");
  const auto guard = world_.Guard(pool_a_);
  Restore();
  agent::Known known = CopyOfB(reservation_);
  (*known.mutable_resources())["cpu"] = kMost;
  (*known.mutable_resources())["memory"] = kMost;
  for (int i = 0; i < 1'000; ++i) (*known.mutable_resources())["invented-" + std::to_string(i)] = 1;
  Claim(std::move(known));
  EXPECT_EQ(apis::ToAmounts(Now().placement->resources), (apis::Amounts{{"cpu", 3000}}));
  EXPECT_EQ(world_.Guard(pool_b_)->allocated, (std::map<std::string, int64_t>{{"cpu", 3000}}));
  EXPECT_TRUE(world_.Guard(pool_a_) == guard);
}

TEST_F(RewoundReservationTest, Seq20_R8_6_ForgedUsersAreMachinesOfItsNamespaceAndAreNotTouched) {
  const meta::Object mine = MachineOfA("mine", "default");
  const meta::Object foreign = MachineOfA("foreign", "other");
  const meta::Object volume = world_.MakeVolume("data");
  const auto guard = world_.Guard(pool_a_);
  Restore();
  agent::Known known = CopyOfB(reservation_);
  (*known.mutable_resources())["cpu"] = 3000;
  for (const meta::Object& forged : {foreign, volume, reservation_, mine, mine}) {
    known.add_consumers(forged.metadata().uid);
  }
  known.add_consumers("");
  Claim(std::move(known));
  // It may have been moved to A since it has used it.
  EXPECT_EQ(Users(), std::vector<std::string>{mine.metadata().uid});
  EXPECT_EQ(Now().placement->resources.at("cpu"), meta::Quantity(2)) << "for two more";
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  ASSERT_TRUE(a_.WaitAssigns(2)) << "A has its machines as before";
  EXPECT_TRUE(world_.Read(mine) == mine);
  EXPECT_TRUE(world_.Read(foreign) == foreign);
  EXPECT_TRUE(world_.Read(volume) == volume);
  EXPECT_TRUE(world_.Guard(pool_a_) == guard);
  EXPECT_TRUE(a_.deletes().empty());
  for (const agent::Assign& assign : a_.assigns()) EXPECT_TRUE(assign.reservation_uid().empty());
  for (const agent::Assign& assign : b_.assigns()) EXPECT_EQ(assign.kind(), "Reservation");
}

// All that a lie gets is a reservation that is of no use any more.
TEST_F(RewoundReservationTest, Seq20_R8_6_MoreUsersThanItIsForUseItUpAndNoMore) {
  Restore();
  agent::Known known = CopyOfB(reservation_);
  (*known.mutable_resources())["cpu"] = kMost;
  for (int i = 0; i < 5'000; ++i) known.add_consumers("invented-" + std::to_string(i));
  Claim(std::move(known));
  EXPECT_EQ(Users().size(), 3U);
  EXPECT_EQ(Now().state, apis::core::kReservationBound);
  EXPECT_TRUE(Now().placement->resources.empty());
  EXPECT_TRUE(world_.Guard(pool_b_)->allocated.empty());
}

TEST_F(RewoundReservationTest, Seq20_AMachineTakesNoMoreThanTheWholePoolOfWhoSaysThatItHasIt) {
  const meta::Object one = world_.MakeMachine("one");
  const meta::Object two = world_.MakeMachine("two");
  Restore();
  for (const meta::Object& machine : {one, two}) {
    agent::Known known = CopyOfB(machine);
    (*known.mutable_resources())["cpu"] = kMost;
    b_.known[known.uid()] = std::move(known);
  }
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(b_.WaitAssigns(2));
  EXPECT_EQ(world_.Guard(pool_b_)->allocated.at("cpu"), 2 * 8000);
}

}  // namespace
}  // namespace berth::gateway
