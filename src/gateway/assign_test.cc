// SPDX-License-Identifier: Apache-2.0
// Assignments come from the store, reports go back to it, and nobody touches what is not his
// (PROTOCOL 2.3, 2.4, 4.3; must-show 7).
#include <gtest/gtest.h>

#include <algorithm>

#include "apis/core/reservation.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

using apis::compute::Machine;

class AssignTest : public testing::Test {
 protected:
  AssignTest() {
    world_.Enrol("a");
    world_.Enrol("b");
  }
  // A machine bound to the pool, and its assignment at the host.
  agent::Assign Place(TestHost& host, const std::string& name, const std::string& pool_uid) {
    machine_ = world_.MakeMachine(name);
    CHECK(world_.Bind(machine_, "pool", pool_uid).ok());
    const size_t before = host.assigns().size();
    CHECK(host.WaitAssigns(before + 1));
    return host.assigns().back();
  }
  Machine Now() { return world_.Read(machine_).as<Machine>(); }

  GatewayWorld world_;
  TestHost host_{world_, "a"};
  TestHost other_{world_, "b"};
  meta::Object machine_;
};

TEST_F(AssignTest, G1_WhatTheStoreBindsIsAssignedWithItsNumbers) {
  const std::string pool = host_.Join("pool");
  const agent::Assign assign = Place(host_, "web", pool);
  EXPECT_EQ(assign.uid(), machine_.metadata().uid);
  EXPECT_EQ(assign.placement(), 1);
  EXPECT_EQ(assign.incarnation(), 1);
  EXPECT_EQ(assign.pool_uid(), pool);
  EXPECT_EQ(assign.kind(), "Machine");
  EXPECT_EQ(assign.namespace_(), "default");
  EXPECT_EQ(assign.name(), "web");
  EXPECT_EQ(assign.resources().at("cpu"), 1000);
  EXPECT_EQ(assign.machine().class_name(), "small");
  EXPECT_EQ(assign.machine().on_pool_loss(), "Keep");
  EXPECT_EQ(assign.machine().restart_policy(), "OnFailure");
  EXPECT_FALSE(assign.hash().empty());
}

TEST_F(AssignTest, R8_6_AHostIsToldWhatIsReservedAndWhatWasUsedOfIt) {
  const std::string pool = host_.Join("pool");
  apis::core::Reservation draft;
  draft.metadata.namespace_ = "default";
  draft.metadata.name = "r";
  draft.spec.resources["cpu"] = meta::Quantity(1);
  draft.spec.count = 2;
  const meta::Object reservation = GatewayWorld::Must(world_.Run(
      world_.client().Create(meta::Object::Of(apis::core::kReservationKind, draft), {})));
  client::BindItem both = GatewayWorld::ItemFor(reservation, "pool", pool, {{"cpu", 2000}});
  ASSERT_TRUE(world_.Bind(GatewayWorld::RequestFor({both})).ok());
  ASSERT_TRUE(host_.WaitAssigns(1));
  const agent::Assign whole = host_.assigns()[0];
  EXPECT_EQ(whole.kind(), "Reservation");
  EXPECT_EQ(whole.resources().at("cpu"), 2000);
  EXPECT_EQ(whole.reservation().count(), 2);
  machine_ = GatewayWorld::Machine("m");
  machine_.as<Machine>().spec.placement.emplace().reservation_ref =
      apis::core::LocalObjectReference{"r"};
  machine_ = GatewayWorld::Must(world_.Run(world_.client().Create(machine_, {})));
  client::BindItem item = GatewayWorld::ItemFor(machine_, "pool", pool);
  item.reservation = "r";
  item.reservation_uid = reservation.metadata().uid;
  ASSERT_TRUE(world_.Bind(GatewayWorld::RequestFor({item})).ok());
  ASSERT_TRUE(host_.WaitAssigns(3));
  std::map<std::string, agent::Assign> told;
  for (size_t i = 1; i < 3; ++i) told[host_.assigns()[i].uid()] = host_.assigns()[i];
  const agent::Assign& rest = told[reservation.metadata().uid];
  EXPECT_EQ(rest.resources().at("cpu"), 1000);
  EXPECT_NE(rest.hash(), whole.hash());
  EXPECT_EQ(rest.reservation().count(), 1);
  ASSERT_EQ(rest.reservation().consumers_size(), 1);
  EXPECT_EQ(rest.reservation().consumers(0), machine_.metadata().uid);
  EXPECT_EQ(told[machine_.metadata().uid].reservation_uid(), reservation.metadata().uid);
  // Its time is over: the host says that it keeps nothing any more, and the room is free.
  ASSERT_TRUE(world_
                  .Patch(reservation,
                         R"({"status":{"placement":{"release":"Expired"}}})",
                         client::Subresource::kStatus)
                  .ok());
  ASSERT_TRUE(world_.Until([&] { return !host_.deletes().empty(); }));
  EXPECT_EQ(host_.deletes()[0].uid(), reservation.metadata().uid);
  host_.Say([&](agent::HostBatch& batch) {
    agent::Gone& gone = *batch.add_gone();
    gone.set_uid(reservation.metadata().uid);
    gone.set_incarnation(1);
    gone.set_placement(1);
  });
  ASSERT_TRUE(world_.Until([&] {
    return world_.Read(reservation).as<apis::core::Reservation>().status.state == "Expired";
  }));
  EXPECT_EQ(world_.Guard(pool)->allocated["cpu"], 1000) << "the machine's";
}

TEST_F(AssignTest, Seq14_AReturningHostGetsOnlyTheDifferences) {
  const std::string pool = host_.Join("pool");
  host_.Remember(Place(host_, "same", pool));
  agent::Assign stale = Place(host_, "changed", pool);
  stale.set_hash("older");
  host_.Remember(stale);
  Place(host_, "unknown", pool);
  world_.RestartGateway();
  ASSERT_EQ(host_.Join("pool"), pool);
  ASSERT_EQ(host_.assigns().size(), 2);
  EXPECT_EQ(host_.confirms().size(), 1);
  std::set<std::string> names;
  for (const agent::Assign& assign : host_.assigns()) names.insert(assign.name());
  EXPECT_EQ(names, (std::set<std::string>{"changed", "unknown"}));
}

TEST_F(AssignTest, R5_7_WhatIsManagedElsewhereGoesOnAsItIs) {
  const std::string pool = host_.Join("pool");
  host_.Remember(Place(host_, "web", pool));
  const auto annotate = [&](const std::string& value) {
    const std::string body = R"({"metadata":{"annotations":{"common.ironcore.dev/managed-by":)" +
                             value + R"(},"labels":{"changed":"yes"}}})";
    const auto patched = world_.Run(world_.client().Patch(
        apis::compute::kMachineKind, {"default", "web"}, client::PatchType::kMerge, body, {}));
    ASSERT_TRUE(patched.ok()) << patched.status();
  };
  annotate(R"("somebody")");
  world_.loop().RunFor(Duration::Seconds(2));
  EXPECT_EQ(host_.assigns().size(), 1) << "changes are not told";
  world_.RestartGateway();
  ASSERT_EQ(host_.Join("pool"), pool);
  EXPECT_EQ(host_.assigns().size(), 0);
  EXPECT_EQ(host_.confirms().size(), 1) << "and it is not orphaned by that";
  annotate("null");
  EXPECT_TRUE(host_.WaitAssigns(1)) << "back in our hands";
}

TEST_F(AssignTest, R5_7_ARequestForAnotherLookIsAnAssignmentAndEndsWithIt) {
  const std::string pool = host_.Join("pool");
  const agent::Assign first = Place(host_, "web", pool);
  const std::string body =
      R"({"metadata":{"annotations":{"reconcile.common.ironcore.dev/requested-at":"now"}}})";
  const auto patched = world_.Run(world_.client().Patch(
      apis::compute::kMachineKind, {"default", "web"}, client::PatchType::kMerge, body, {}));
  ASSERT_TRUE(patched.ok()) << patched.status();
  ASSERT_TRUE(host_.WaitAssigns(3)) << "the request, and its end";
  const std::vector<agent::Assign> assigns = host_.assigns();
  EXPECT_EQ(assigns[1].requested_at(), "now");
  EXPECT_NE(assigns[1].hash(), first.hash());
  EXPECT_EQ(assigns[1].machine().annotations_size(), 0) << "the runtime is not told";
  EXPECT_EQ(assigns[2].hash(), first.hash());
  const auto ended =
      world_.Run(world_.client().Get(apis::compute::kMachineKind, {"default", "web"}));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(ended->metadata().annotations.empty());
}

TEST_F(AssignTest, R4_3_AHostLearnsTheRevisionOfTheStoreAndItNeverGoesBack) {
  const std::string pool = host_.Join("pool");
  const auto revision = [&] {
    uint64_t last = 0;
    for (const auto& message : host_.received) {
      if (message.has_synced()) last = message.synced().revision();
    }
    return last;
  };
  const uint64_t first = revision();
  EXPECT_GT(first, 0);
  Place(host_, "web", pool);
  world_.RestartGateway();
  ASSERT_EQ(host_.Join("pool"), pool);
  EXPECT_GT(revision(), first);
}

TEST_F(AssignTest, Seq16_WhatWasBoundWhileTheHostWasAwayIsAssignedOnItsReturn) {
  const std::string pool = host_.Join("pool");
  host_.Leave();
  world_.Until([&] { return world_.gateway().sessions() == 0; });
  machine_ = world_.MakeMachine("late");
  ASSERT_TRUE(world_.Bind(machine_, "pool", pool).ok());
  ASSERT_EQ(host_.Join("pool"), pool);
  ASSERT_EQ(host_.assigns().size(), 1);
  EXPECT_EQ(host_.assigns()[0].name(), "late");
}

TEST_F(AssignTest, AReportBeyondTheRateEndsTheSessionSoThatItComesAgain) {
  const agent::Assign assign = Place(host_, "web", host_.Join("pool"));
  host_.Say([&](agent::HostBatch& batch) {
    for (int i = 0; i <= static_cast<int>(2 * kStatusesPerSecond); ++i) {
      agent::ObjectStatus& status = *batch.add_statuses();
      status.set_uid(assign.uid());
      status.set_incarnation(assign.incarnation());
      status.set_placement(assign.placement());
      status.set_kind("Machine");
      status.set_state("Running");
    }
  });
  EXPECT_TRUE(world_.Until([&] { return host_.refused() == kLimits; }));
}

TEST_F(AssignTest, G3_AReportIsWrittenToTheStatusOnly) {
  const agent::Assign assign = Place(host_, "web", host_.Join("pool"));
  const Machine before = Now();
  host_.Say([&](agent::HostBatch& batch) {
    agent::ObjectStatus& status = *batch.add_statuses();
    status.set_uid(assign.uid());
    status.set_incarnation(1);
    status.set_placement(1);
    status.set_kind("Machine");
    status.set_state("Running");
    status.set_runtime_id("test://7");
    status.set_observed_generation(99);
    agent::Condition& forged = *status.add_conditions();
    forged.set_type("Scheduled");
    forged.set_status("False");
    agent::Condition& ready = *status.add_conditions();
    ready.set_type("Ready");
    ready.set_status("True");
    ready.set_message(std::string("booted\x1b[2J") + std::string(5000, 'x'));
  });
  ASSERT_TRUE(world_.Until([&] { return Now().status.state == "Running"; }));
  const Machine now = Now();
  EXPECT_EQ(now.status.machine_id, "test://7");
  EXPECT_EQ(now.status.observed_generation, now.metadata.generation);
  EXPECT_EQ(now.metadata.generation, before.metadata.generation);
  EXPECT_EQ(now.status.placement->epoch, 1);
  ASSERT_EQ(now.status.conditions.size(), 2);
  EXPECT_EQ(now.status.conditions[0].type, "Scheduled");
  EXPECT_EQ(now.status.conditions[0].status, "True");
  EXPECT_LE(now.status.conditions[1].message.size(), kTextMax);
  EXPECT_EQ(now.status.conditions[1].message.find('\x1b'), std::string::npos);
}

TEST_F(AssignTest, G3_ReportsOfOtherPlacementsHostsAndHistoriesAreRefused) {
  const std::string pool = host_.Join("pool");
  ASSERT_NE(other_.Join("pool-b"), "");
  const agent::Assign assign = Place(host_, "web", pool);
  agent::Assign forged = assign;
  forged.set_placement(2);
  host_.Report(forged, "Terminated");  // a placement that is not
  forged.set_placement(0);
  host_.Report(forged, "Terminated");
  forged = assign;
  forged.set_incarnation(2);
  host_.Report(forged, "Terminated");   // a history that is not
  other_.Report(assign, "Terminated");  // not its own
  forged.set_uid("made-up");
  other_.Report(forged, "Terminated");
  world_.Pass(Duration::Seconds(1));
  EXPECT_NE(Now().status.state, "Terminated");
  // Nor can it let go of it.
  other_.SayGone(assign.uid(), 1);
  other_.Say([&](agent::HostBatch& batch) {
    batch.add_refusals()->set_uid(assign.uid());
    batch.mutable_refusals(0)->set_placement(1);
  });
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(Now().status.placement->pool_uid, pool);
  EXPECT_EQ(Now().status.placement->epoch, 1);
}

TEST_F(AssignTest, D18_OnlyTheNewestOfManyReportsNeedsAWrite) {
  const agent::Assign assign = Place(host_, "web", host_.Join("pool"));
  for (int i = 0; i < 200; ++i) host_.Report(assign, i % 2 == 0 ? "Pending" : "Running");
  ASSERT_TRUE(world_.Until([&] { return Now().status.state == "Running"; }));
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(Now().status.state, "Running");
}

// Nobody says it again: the host knows that it was heard.
TEST_F(AssignTest, G3_AReportOutlivesAStoreThatIsAwayForAMinute) {
  const agent::Assign assign = Place(host_, "web", host_.Join("pool"));
  world_.SetFaults({.refuse = 1});
  host_.Report(assign, "Running");
  world_.Pass(Duration::Minutes(1));
  world_.SetFaults({});
  EXPECT_TRUE(world_.Until([&] { return Now().status.state == "Running"; }, Duration::Seconds(10)));
}

TEST_F(AssignTest, G2_ARefusedAssignmentIsUnboundAndThePoolAvoided) {
  const std::string pool = host_.Join("pool");
  const auto watch = world_.gateway().Watch();
  const agent::Assign assign = Place(host_, "web", pool);
  host_.Say([&](agent::HostBatch& batch) {
    agent::AssignRefused& refused = *batch.add_refusals();
    refused.set_uid(assign.uid());
    refused.set_placement(1);
    refused.set_reason("NoRoom");
    refused.set_message("the ledger is full");
  });
  ASSERT_TRUE(world_.Until([&] { return Now().status.placement->pool_uid.empty(); }));
  EXPECT_EQ(Now().status.placement->epoch, 2);
  EXPECT_EQ(Now().status.placement->reason, "NoRoom");
  const auto events = world_.Run(watch->Next());
  ASSERT_TRUE(events.ok());
  bool is_told = false;
  for (const auto& event : *events) {
    is_told |= event.type == fleet::FleetEvent::Type::kRefused && event.reason == "NoRoom";
  }
  EXPECT_TRUE(is_told);
  EXPECT_TRUE(host_.deletes().empty());  // it never had it
  // A late word of the same placement changes nothing.
  host_.SayGone(assign.uid(), 1);
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(Now().status.placement->epoch, 2);
}

TEST_F(AssignTest, R4_5_ADeletionWaitsForTheHostsWord) {
  const agent::Assign assign = Place(host_, "web", host_.Join("pool"));
  ASSERT_TRUE(world_.Delete(machine_).ok());
  ASSERT_TRUE(host_.WaitDeletes(1));
  EXPECT_EQ(host_.deletes()[0].uid(), assign.uid());
  EXPECT_EQ(host_.deletes()[0].placement(), 1);
  EXPECT_EQ(host_.deletes()[0].why(), agent::Delete::DELETED);
  world_.Pass(Duration::Seconds(5));
  EXPECT_TRUE(world_.Exists(machine_));
  host_.SayGone(assign.uid(), 1);
  EXPECT_TRUE(world_.Until([&] { return !world_.Exists(machine_); }));
  EXPECT_TRUE(world_.Until([&] { return host_.forgets().size() == 1; }));
}

TEST_F(AssignTest, R4_5_ADeletionDuringAnAbsenceIsToldOnReturn) {
  const std::string pool = host_.Join("pool");
  host_.Remember(Place(host_, "web", pool));
  host_.Leave();
  ASSERT_TRUE(world_.Delete(machine_).ok());
  ASSERT_EQ(host_.Join("pool"), pool);
  ASSERT_EQ(host_.deletes().size(), 1);
  EXPECT_EQ(host_.deletes()[0].why(), agent::Delete::DELETED);
  EXPECT_TRUE(host_.assigns().empty());
  // The host had removed it already and says so in its next announcement.
  host_.known.begin()->second.set_gone(true);
  host_.Leave();
  ASSERT_EQ(host_.Join("pool"), pool);
  EXPECT_TRUE(world_.Until([&] { return !world_.Exists(machine_); }));
  EXPECT_TRUE(world_.Until([&] { return host_.forgets().size() == 1; }));
}

TEST_F(AssignTest, Seq17_WhatMovedAwayIsGivenUpOnReturn) {
  const std::string pool = host_.Join("pool");
  host_.Remember(Place(host_, "web", pool));
  const std::string other = other_.Join("pool-b");
  host_.Leave();
  ASSERT_TRUE(world_.Unbind(machine_, 1, client::UnbindProof::kFenced).ok());
  ASSERT_TRUE(world_.Bind(world_.Read(machine_), "pool-b", other).ok());
  ASSERT_TRUE(other_.WaitAssigns(1));
  EXPECT_EQ(other_.assigns()[0].placement(), 3);
  ASSERT_EQ(host_.Join("pool"), pool);
  ASSERT_EQ(host_.deletes().size(), 1);
  EXPECT_EQ(host_.deletes()[0].why(), agent::Delete::MOVED);
  EXPECT_EQ(host_.deletes()[0].placement(), 1);
  EXPECT_TRUE(host_.confirms().empty());
  host_.SayGone(host_.deletes()[0].uid(), 1);
  EXPECT_TRUE(world_.Until([&] { return host_.forgets().size() == 1; }));
  EXPECT_EQ(Now().status.placement->pool_uid, other);
}

TEST_F(AssignTest, WhatIsMovedAwayFromALiveHostIsTakenFromItAtOnce) {
  const agent::Assign assign = Place(host_, "web", host_.Join("pool"));
  ASSERT_TRUE(world_.Unbind(machine_, 1, client::UnbindProof::kOperatorFenced).ok());
  ASSERT_TRUE(host_.WaitDeletes(1));
  EXPECT_EQ(host_.deletes()[0].why(), agent::Delete::MOVED);
  EXPECT_EQ(host_.deletes()[0].uid(), assign.uid());
}

TEST_F(AssignTest, WhatIsAskedToLeaveIsRemovedByItsHostAndThenUnbound) {
  const agent::Assign assign = Place(host_, "web", host_.Join("pool"));
  ASSERT_TRUE(world_
                  .Patch(machine_,
                         R"({"status":{"placement":{"release":"Drain"}}})",
                         client::Subresource::kStatus)
                  .ok());
  ASSERT_TRUE(host_.WaitDeletes(1));
  EXPECT_EQ(host_.deletes()[0].why(), agent::Delete::MOVED);
  EXPECT_EQ(host_.deletes()[0].placement(), 1);
  EXPECT_EQ(Now().status.placement->epoch, 1) << "until the host has said so";
  host_.SayGone(assign.uid(), 1);
  ASSERT_TRUE(world_.Until([&] { return Now().status.placement->epoch == 2; }));
  EXPECT_EQ(Now().status.placement->reason, "Drain");
}

TEST_F(AssignTest, R3_2_AHostIsToldWhenWhatTiesAMachineComesAndGoes) {
  host_.Remember(Place(host_, "web", host_.Join("pool")));
  const auto say = [&](const std::string& status) {
    const std::string condition =
        R"({"type":"Movable","status":")" + status + R"(","reason":"X","message":"x"})";
    EXPECT_TRUE(world_
                    .Patch(machine_,
                           R"({"status":{"conditions":[)" + condition + "]}}",
                           client::Subresource::kStatus)
                    .ok());
  };
  ASSERT_TRUE(world_.Patch(machine_, R"({"spec":{"placement":{"onPoolLoss":"Move"}}})").ok());
  ASSERT_TRUE(host_.WaitAssigns(2));
  EXPECT_EQ(host_.assigns()[1].machine().on_pool_loss(), "Move");
  say("False");
  ASSERT_TRUE(host_.WaitAssigns(3));
  EXPECT_EQ(host_.assigns()[2].machine().on_pool_loss(), "Keep");
  say("Unknown");
  ASSERT_TRUE(host_.WaitAssigns(4));
  EXPECT_EQ(host_.assigns()[3].machine().on_pool_loss(), "Move");
  host_.Say([&](agent::HostBatch& batch) {
    agent::ObjectStatus& status = *batch.add_statuses();
    status.set_uid(machine_.metadata().uid);
    status.set_incarnation(1);
    status.set_placement(1);
    status.set_kind("Machine");
    status.set_state("Running");
    status.set_leased(true);
  });
  EXPECT_TRUE(world_.Until([&] {
    return std::ranges::none_of(Now().status.conditions,
                                [](const auto& item) { return item.type == "Movable"; });
  }));
}

TEST_F(AssignTest, R4_3_AnApprovalIsPassedOnWithEveryDeletion) {
  Place(host_, "web", host_.Join("pool"));
  ASSERT_TRUE(world_.Delete(machine_).ok());
  ASSERT_TRUE(host_.WaitDeletes(1));
  EXPECT_FALSE(host_.deletes()[0].approved());
  ASSERT_TRUE(world_
                  .Patch(world_.Pool("pool"),
                         R"({"metadata":{"annotations":{"berth.dev/approve-deletions":"true"}}})")
                  .ok());
  ASSERT_TRUE(host_.WaitDeletes(2));
  EXPECT_TRUE(host_.deletes()[1].approved());
}

TEST_F(AssignTest, Seq18_AClaimedMoveIsNotConfirmedUntilItWasAbandoned) {
  const std::string pool = host_.Join("pool");
  host_.Remember(Place(host_, "web", pool));
  const std::string uid = machine_.metadata().uid;
  EXPECT_FALSE(world_.gateway().ClaimMove(uid, 1)) << "assigned on a live session";
  host_.Leave();
  world_.Until([&] { return world_.gateway().sessions() == 0; });
  EXPECT_TRUE(world_.gateway().ClaimMove(uid, 1));
  ASSERT_EQ(host_.Join("pool"), pool);
  EXPECT_TRUE(host_.confirms().empty());
  EXPECT_TRUE(host_.assigns().empty());
  world_.gateway().EndMove(uid, 1, fleet::MoveOutcome::kAbandoned);
  EXPECT_TRUE(world_.Until([&] { return host_.confirms().size() == 1; }));
  EXPECT_FALSE(world_.gateway().ClaimMove(uid, 1));
}

TEST_F(AssignTest, Seq18_ACommittedMoveMakesTheReturningHostStop) {
  const std::string pool = host_.Join("pool");
  host_.Remember(Place(host_, "web", pool));
  const std::string uid = machine_.metadata().uid;
  host_.Leave();
  world_.Until([&] { return world_.gateway().sessions() == 0; });
  ASSERT_TRUE(world_.gateway().ClaimMove(uid, 1));
  ASSERT_TRUE(world_.Unbind(machine_, 1, client::UnbindProof::kFenced).ok());
  world_.gateway().EndMove(uid, 1, fleet::MoveOutcome::kCommitted);
  ASSERT_EQ(host_.Join("pool"), pool);
  EXPECT_TRUE(host_.confirms().empty());
  ASSERT_EQ(host_.deletes().size(), 1);
  EXPECT_EQ(host_.deletes()[0].why(), agent::Delete::MOVED);
}

TEST_F(AssignTest, R4_3_ForcedDeletionLeavesATombstoneThatTheHostConfirms) {
  const std::string pool = host_.Join("pool");
  host_.Remember(Place(host_, "web", pool));
  const std::string uid = machine_.metadata().uid;
  host_.Leave();
  ASSERT_TRUE(world_.Delete(machine_, client::Force::kYes).ok());
  ASSERT_EQ(host_.Join("pool"), pool);
  ASSERT_EQ(host_.deletes().size(), 1);
  EXPECT_EQ(host_.deletes()[0].why(), agent::Delete::TOMBSTONE);
  host_.SayGone(uid, 1);
  EXPECT_TRUE(world_.Until([&] { return host_.forgets().size() == 1; }));
  EXPECT_TRUE(world_.Run(world_.registry().tombstones().ListTombstones(pool))->empty());
}

TEST_F(AssignTest, R4_3_Seq17_WhatMovedAwayAndWasDeletedThereIsGivenUpOnReturn) {
  const std::string pool = host_.Join("pool");
  host_.Remember(Place(host_, "web", pool));
  const std::string uid = machine_.metadata().uid;
  const std::string other = other_.Join("pool-b");
  host_.Leave();
  ASSERT_TRUE(world_.Unbind(machine_, 1, client::UnbindProof::kFenced).ok());
  ASSERT_TRUE(world_.Bind(world_.Read(machine_), "pool-b", other).ok());
  ASSERT_TRUE(other_.WaitAssigns(1));
  ASSERT_TRUE(world_.Delete(machine_).ok());
  ASSERT_TRUE(other_.WaitDeletes(1));
  other_.SayGone(uid, 3);
  ASSERT_TRUE(world_.Until([&] { return !world_.Exists(machine_); }));
  ASSERT_EQ(host_.Join("pool"), pool);
  ASSERT_EQ(host_.deletes().size(), 1);
  EXPECT_EQ(host_.deletes()[0].why(), agent::Delete::TOMBSTONE);
  EXPECT_EQ(host_.deletes()[0].uid(), uid);
  host_.SayGone(uid, 1);
  EXPECT_TRUE(world_.Until([&] { return host_.forgets().size() == 1; }));
  EXPECT_TRUE(world_.Run(world_.registry().tombstones().ListTombstones(pool))->empty());
}

TEST_F(AssignTest, R4_3_ATombstoneDoesNotTouchWhatCameBackLater) {
  const std::string pool = host_.Join("pool");
  host_.Remember(Place(host_, "web", pool));
  host_.Leave();
  ASSERT_TRUE(world_.Unbind(machine_, 1, client::UnbindProof::kFenced).ok());
  ASSERT_TRUE(world_.Bind(world_.Read(machine_), "pool", pool).ok());
  ASSERT_EQ(host_.Join("pool"), pool);
  EXPECT_TRUE(host_.deletes().empty());
  ASSERT_EQ(host_.assigns().size(), 1);
  EXPECT_EQ(host_.assigns()[0].placement(), 3);
  EXPECT_TRUE(world_.Until(
      [&] { return world_.Run(world_.registry().tombstones().ListTombstones(pool))->empty(); }));
}

// The copy in the store is older than the placement that the host has: it moved back since.
TEST_F(AssignTest, R4_3_Seq20_ATombstoneOfARestoredStoreDoesNotTouchALaterPlacement) {
  const std::string pool = host_.Join("pool");
  agent::Assign ran = Place(host_, "web", pool);
  ran.set_placement(3);  // of the history that was lost
  host_.Remember(ran);
  host_.Leave();
  ASSERT_TRUE(world_.Unbind(machine_, 1, client::UnbindProof::kFenced).ok());
  world_.StopGateway();
  ++world_.identity().incarnation;
  world_.StartGateway();
  ASSERT_EQ(host_.Join("pool"), pool);
  EXPECT_TRUE(host_.deletes().empty());
}

TEST_F(AssignTest, R4_3_ForcedDeletionOnALiveHostIsToldAtOnce) {
  Place(host_, "web", host_.Join("pool"));
  ASSERT_TRUE(world_.Delete(machine_, client::Force::kYes).ok());
  ASSERT_TRUE(host_.WaitDeletes(1));
  EXPECT_EQ(host_.deletes().back().why(), agent::Delete::TOMBSTONE);
}

TEST_F(AssignTest, Seq20_WhatTheStoreDoesNotKnowIsLeftAlone) {
  agent::Known stray;
  stray.set_uid("6a2b7c1e-0f63-4a36-9d21-000000000000");
  stray.set_incarnation(1);
  stray.set_placement(4);
  host_.known["stray"] = stray;
  const std::string pool = host_.Join("pool");
  ASSERT_NE(pool, "");
  EXPECT_TRUE(host_.deletes().empty());
  EXPECT_TRUE(host_.forgets().empty());
  EXPECT_TRUE(host_.confirms().empty());
}

TEST_F(AssignTest, Seq20_AfterARestoreThePresentPlacementIsAssignedUnderTheNewIncarnation) {
  const std::string pool = host_.Join("pool");
  agent::Assign ran = Place(host_, "web", pool);
  ran.set_placement(9);  // of the history that was lost
  host_.Remember(ran);
  world_.StopGateway();
  ++world_.identity().incarnation;
  world_.StartGateway();
  ASSERT_EQ(host_.Join("pool"), pool);
  EXPECT_TRUE(host_.deletes().empty());
  ASSERT_EQ(host_.assigns().size(), 1);
  EXPECT_EQ(host_.assigns()[0].incarnation(), 2);
  EXPECT_EQ(host_.assigns()[0].placement(), 1);
}

TEST_F(AssignTest, AMachineGetsItsSecretAndGetsItAgainWhenItChanges) {
  const std::string pool = host_.Join("pool");
  auto machine = apiserver::PlacementWorld::Machine("web");
  machine.as<Machine>().spec.ignition_ref =
      apis::core::SecretKeySelector{.name = "boot", .key = ""};
  machine_ = world_.Must(world_.Run(world_.client().Create(machine, {})));
  ASSERT_TRUE(world_.Bind(machine_, "pool", pool).ok());
  ASSERT_TRUE(host_.WaitAssigns(1));
  ASSERT_EQ(host_.assigns()[0].machine().missing_size(), 1);
  EXPECT_NE(host_.assigns()[0].machine().missing(0).find("boot"), std::string::npos);
  world_.MakeSecret("boot", {{"ignition.yaml", "hello"}, {"other", "not needed"}});
  ASSERT_TRUE(host_.WaitAssigns(2));
  EXPECT_EQ(host_.assigns()[1].machine().ignition(), "hello");
  EXPECT_EQ(host_.assigns()[1].SerializeAsString().find("not needed"), std::string::npos);
  EXPECT_NE(host_.assigns()[1].hash(), host_.assigns()[0].hash());
  // Somebody else's secret is no news.
  world_.MakeSecret("unrelated", {{"a", "b"}});
  // A status report neither.
  host_.Report(host_.assigns()[1], "Running");
  world_.Pass(Duration::Seconds(2));
  EXPECT_EQ(host_.assigns().size(), 2);
}

TEST_F(AssignTest, SecretsOfAHostLandInTheServersOwnAndNeverInAUsers) {
  ASSERT_TRUE(host_.Connect());
  agent::Announce announce;
  agent::PoolAnnounce& volumes = *announce.add_pools();
  volumes.set_kind("VolumePool");
  volumes.set_name("disks");
  (*volumes.mutable_capacity()->mutable_capacity())["storage"] = 1000;
  announce.set_last(true);
  host_.Announce(announce);
  ASSERT_TRUE(host_.WaitSynced());
  const std::string pool = host_.PoolUid("disks");
  const meta::Object volume = world_.MakeVolume("v");
  const std::string secret = "access-" + volume.metadata().uid;
  ASSERT_TRUE(world_
                  .Bind(apiserver::PlacementWorld::RequestFor({apiserver::PlacementWorld::ItemFor(
                      volume, "disks", pool, {{"storage", 10}})}))
                  .ok());
  ASSERT_TRUE(host_.WaitAssigns(1));
  const auto report = [&](const std::string& key) {
    host_.Say([&](agent::HostBatch& batch) {
      agent::ObjectStatus& status = *batch.add_statuses();
      status.set_uid(volume.metadata().uid);
      status.set_incarnation(1);
      status.set_placement(1);
      status.set_kind("Volume");
      status.set_state("Available");
      status.mutable_access()->set_driver("test");
      status.mutable_access()->set_handle("disk-1");
      (*status.mutable_access()->mutable_secret_data())["key"] = key;
    });
  };
  report("k1");
  ASSERT_TRUE(world_.Until(
      [&] { return world_.Read(volume).as<apis::storage::Volume>().status.state == "Available"; }));
  const auto found = world_.Run(world_.client().Get(apis::k8s::kSecretKind, {"default", secret}));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->as<apis::k8s::Secret>().data.at("key").bytes, "k1");
  EXPECT_EQ(world_.Read(volume).as<apis::storage::Volume>().status.access->secret_ref->name,
            secret);
  // A user's Secret of that name is left alone.
  ASSERT_TRUE(world_
                  .Run(world_.client().Patch(apis::k8s::kSecretKind,
                                             {"default", secret},
                                             client::PatchType::kMerge,
                                             R"({"metadata":{"ownerReferences":null}})",
                                             {}))
                  .ok());
  report("k2");
  world_.Pass(Duration::Seconds(1));
  const auto after = world_.Run(world_.client().Get(apis::k8s::kSecretKind, {"default", secret}));
  EXPECT_EQ(after->as<apis::k8s::Secret>().data.at("key").bytes, "k1");
}

}  // namespace
}  // namespace berth::gateway
