// SPDX-License-Identifier: Apache-2.0
// A whole poollet between a fake server and fake runtimes: what is assigned is made, runs, is
// reported, and survives; the rules of the protocol, seen from the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "berth/agent/v1/agent.pb.h"
#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;
using Answered = fleet::Answer::Verdict;

TEST(Poollet, AMachineIsMadeRunsAndIsReported) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_EQ(world.host.Running("m1"), 1);
  EXPECT_EQ(world.server.acks.at("m1"), 1U);
  EXPECT_EQ(world.server.heard.at("m1").conditions.at("Ready"), "True");
  EXPECT_NE(world.server.heard.at("m1").runtime_id.find("://" + world.Id("m1")), std::string::npos);
  EXPECT_EQ(world.server.facts.at("MachinePool").allocated.at("cpu"), 1000);
}

TEST(Poollet, WhatARuntimeSaysOfItselfIsToldAlsoIfItAnswersLate) {
  World world;
  world.host.fake().Crash();
  world.StartAndSync();
  iri::StringMap& told = world.server.runtime_facts["MachinePool"];
  EXPECT_FALSE(told.contains("cpu-model"));
  world.host.fake().Restart();
  EXPECT_TRUE(world.Until([&] { return told.contains("cpu-model"); }, Duration::Seconds(5)));
  EXPECT_FALSE(told.at("runtime").empty());
  EXPECT_EQ(world.server.sessions, 1U);
}

TEST(Poollet, ItsStepsWithAMachineCanBeTraced) {
  World world;
  std::vector<std::string> traced;
  world.host.options.host.trace = [&traced](std::string_view step, std::string_view uid) {
    traced.push_back(std::string(step) + ' ' + std::string(uid));
  };
  world.StartAndSync();
  for (const std::string uid : {"m1", "m2"}) {
    world.server.Desire(uid, {});
    ASSERT_TRUE(world.UntilState(uid, "Running"));
    for (const char* step : {"assigned ", "create ", "running "}) {
      EXPECT_GE(std::ranges::count(traced, step + uid), 1) << step << uid;
    }
  }
}

TEST(Poollet, VolumesAndBucketsAreMadeAlike) {
  World world;
  world.StartAndSync();
  world.server.Desire("v1",
                      {.kind = "Volume",
                       .class_name = "fast",
                       .resources = {{"storage", 1 << 20}},
                       .storage_bytes = 1 << 20});
  world.server.Desire("b1", {.kind = "Bucket", .class_name = "standard", .resources = {}});
  EXPECT_TRUE(world.UntilState("v1", "Available"));
  EXPECT_TRUE(world.UntilState("b1", "Available"));
  world.server.Desire("v1",
                      {.kind = "Volume",
                       .class_name = "fast",
                       .resources = {{"storage", 1 << 21}},
                       .generation = 2,
                       .storage_bytes = 1 << 21});
  EXPECT_TRUE(world.Until([&] {
    return world.host.fake().state().volumes().begin()->second.object.spec.storage_bytes == 1 << 21;
  })) << "it grows";
}

TEST(Poollet, P1_ALowerTermIsRefusedAlsoAfterARestart) {
  World world;
  world.StartAndSync();
  world.server.Offer(7, 1, "a", {});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("7/1"); }));
  EXPECT_EQ(world.server.answers.at("7/1").verdict, Answered::kAccepted);
  ASSERT_TRUE(world.Until([&] { return world.host.poollet().host().record().host.term == 7; }));
  world.host.Kill();
  world.host.Start();
  ASSERT_TRUE(world.Until([&] { return world.server.is_synced(); }));
  world.server.Offer(6, 1, "b", {});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("6/1"); }));
  EXPECT_EQ(world.server.answers.at("6/1").reason, "StaleTerm");
}

TEST(Poollet, P3_AnOfferThatDoesNotFitIsRefusedWithWhatIsMissing) {
  World world;
  world.StartAndSync();
  const int64_t capacity = world.host.fake().state().options().capacity.at("storage");
  FakeGateway::Wish wish;
  wish.resources["storage"] = capacity + 5;
  world.server.Offer(1, 1, "a", wish);
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("1/1"); }));
  EXPECT_EQ(world.server.answers.at("1/1").verdict, Answered::kRejected);
  EXPECT_EQ(world.server.answers.at("1/1").missing.at("storage"), 5);
}

TEST(Poollet, P4_NothingBeginsInTheRuntimeBeforeItIsOnDisk) {
  World world;
  world.StartAndSync();
  world.loop.RunFor(Duration::Seconds(1));
  world.host.disk().FailWrites(Internal("no space left"));
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.Until([&] { return world.server.refused.contains("m1"); }));
  EXPECT_EQ(world.server.refused.at("m1"), "RecordFailed");
  EXPECT_EQ(world.host.Objects("m1"), 0);
  EXPECT_FALSE(world.host.poollet().host().ledger().IsAllocated("m1"));
}

// The server lets it go on the host's word; if it does so late, the host gets it once more on the
// next session, and would never be told that nobody wants it any more.
TEST(Poollet, P4_WhatCouldNotBeWrittenDownIsNotTakenUpAgainAtThatPlacement) {
  World world;
  world.StartAndSync();
  world.loop.RunFor(Duration::Seconds(1));
  world.server.acknowledges_gone = false;
  world.host.disk().FailWrites(Internal("no space left"));
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.Until([&] { return world.server.refused.contains("m1"); }));
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  EXPECT_TRUE(world.server.known.at("m1").gone) << "the first word may have been lost";
  EXPECT_TRUE(world.Until([&] { return world.server.gone.contains("m1"); })) << "assigned again";

  world.host.disk().FailWrites(OkStatus());
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 3 && world.server.is_synced(); }));
  world.loop.RunFor(Duration::Minutes(1));
  EXPECT_EQ(world.host.Objects("m1"), 0);
  EXPECT_FALSE(world.server.acks.contains("m1"));
  EXPECT_FALSE(world.host.poollet().host().ledger().IsAllocated("m1"));

  world.server.Desire("m1", {.placement = 3});
  EXPECT_TRUE(world.UntilState("m1", "Running")) << "a later placement is another matter";
}

// A host accepts, its session ends before that is on disk, and meanwhile the object is elsewhere:
// the server has to learn that this host has it, or nobody ever tells it to let go.
TEST(Poollet, P4_WhatIsBeingWrittenDownIsAnnounced) {
  World world;
  world.StartAndSync();
  world.loop.RunFor(Duration::Seconds(1));
  world.host.disk().SlowWrites(Duration::Minutes(1));
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.Until([&] { return world.host.disk().is_writing(); }));
  world.server.CloseSession();
  world.server.Forget("m1");
  world.server.RemoveQuietly("m1", 1);
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  ASSERT_FALSE(world.host.poollet().host().record().entries.contains("m1")) << "not yet";
  ASSERT_TRUE(world.server.known.contains("m1"));
  EXPECT_FALSE(world.server.known.at("m1").gone);
  world.host.disk().SlowWrites(Duration());
  EXPECT_TRUE(world.Until([&] { return world.server.gone.contains("m1"); }, Duration::Minutes(3)));
  EXPECT_EQ(world.host.Objects("m1"), 0);
}

TEST(Poollet, P5_AnAssignmentThatDoesNotFitIsRefusedNeverDropped) {
  World world;
  world.StartAndSync();
  const int64_t capacity = world.host.fake().state().options().capacity.at("cpu");
  world.server.Desire("big", {.resources = {{"cpu", capacity + 1}}});
  ASSERT_TRUE(world.Until([&] { return world.server.refused.contains("big"); }));
  EXPECT_EQ(world.server.refused.at("big"), "Insufficient");
  EXPECT_EQ(world.host.Objects("big"), 0);
}

TEST(Poollet, P5_WhatWasRefusedIsNotTakenUpAgainAtThatPlacement) {
  World world;
  world.StartAndSync();
  const int64_t capacity = world.host.fake().state().options().capacity.at("cpu");
  world.server.acknowledges_gone = false;
  world.server.Desire("big", {.resources = {{"cpu", capacity + 1}}});
  ASSERT_TRUE(world.Until([&] { return world.server.refused.contains("big"); }));
  world.server.SendAssign("big", {}, 1);  // late, and small enough now
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("big"); }));
  EXPECT_EQ(world.host.Objects("big"), 0);
}

TEST(Poollet, P6_AnAssignmentBelowTheRecordedPlacementIsIgnoredAndReported) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {.placement = 5});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.SendAssign("m1", {.placement = 3, .generation = 9, .power_on = false}, 1);
  EXPECT_TRUE(world.Until([&] {
    return std::ranges::find(world.server.events, "m1 StaleAssignment") !=
           world.server.events.end();
  }));
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, D7_PowerOffNeverBootsAndIsReportedAsShutdown) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {.power_on = false});
  ASSERT_TRUE(world.UntilState("m1", "Shutdown"));
  EXPECT_EQ(world.host.Running("m1"), 0);
  world.server.Desire("m1", {.generation = 2, .power_on = true});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.Desire("m1", {.generation = 3, .power_on = false});
  ASSERT_TRUE(world.UntilState("m1", "Shutdown"));
}

TEST(Poollet, D13_AVolumeThatIsNotReadyForAWhileStaysAttached) {
  World world;
  world.StartAndSync();
  const auto with_volume = [](std::string waits_for) {
    return [waits_for](pb::Assign& assign) {
      pb::MachineVolume& volume = *assign.mutable_machine()->add_volumes();
      volume.set_name("data");
      volume.set_device("oda");
      volume.set_waits_for(waits_for);
      if (waits_for.empty()) {
        volume.mutable_access()->set_driver("local");
        volume.mutable_access()->set_handle("h");
      }
    };
  };
  world.server.Desire("m1", {.edit = with_volume("the volume is Pending")});
  ASSERT_TRUE(world.Until([&] {
    const auto found = world.server.heard.find("m1");
    return found != world.server.heard.end() &&
           found->second.conditions.at("VolumesReady") == "VolumeNotReady";
  }));
  EXPECT_EQ(world.host.Objects("m1"), 0) << "prerequisites come first";
  world.server.Desire("m1", {.generation = 2, .edit = with_volume("")});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.Desire("m1", {.generation = 3, .edit = with_volume("the volume is Pending")});
  world.loop.RunFor(Duration::Seconds(10));
  EXPECT_EQ(world.Machine("m1").spec.volumes.size(), 1U);
  world.server.Desire("m1", {.generation = 4});
  ASSERT_TRUE(world.Until([&] { return world.Machine("m1").spec.volumes.empty(); }));
}

TEST(Poollet, C22_RestartAFailedGuestIsStartedAgainAndACleanShutdownStaysOff) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.host.fake().state().CrashGuest(world.host.fake().clock(), world.Id("m1"));
  world.host.fake().Refresh();
  ASSERT_TRUE(world.Until([&] { return world.host.Running("m1") == 1; }));
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.host.fake().state().ShutDownGuestFromInside(world.host.fake().clock(), world.Id("m1"));
  world.host.fake().Refresh();
  ASSERT_TRUE(world.UntilState("m1", "Shutdown"));
  world.loop.RunFor(Duration::Minutes(2));
  EXPECT_EQ(world.host.Running("m1"), 0);
}

TEST(Poollet, C22_C37_RebootWhatWasOnComesBackFromTheRecordWithoutAServer) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.Down();
  world.host.Kill();
  world.host.fake().state().PowerCut(world.host.fake().clock());
  EXPECT_EQ(world.host.Running("m1"), 0);
  world.host.Start();
  EXPECT_TRUE(world.Until([&] { return world.host.Running("m1") == 1; }));
}

TEST(Poollet, P6_7_AfterAPowerCutMoreMachinesThanAreWorkedOnAtOnceComeBackWhateverTheirPolicy) {
  auto fake = SimHost::DefaultFake();
  for (auto& [name, amount] : fake.capacity) amount *= 100;
  World world(1, fake);
  world.host.options.host.reconcile.concurrency = 3;
  world.StartAndSync();
  std::vector<std::string> uids;
  for (int i = 0; i < 12; ++i) {
    const std::string policy = std::vector<std::string>{"Never", "OnFailure", "Always"}.at(i % 3);
    const auto edit = [policy](pb::Assign& assign) {
      assign.mutable_machine()->set_restart_policy(policy);
    };
    uids.push_back("m" + std::to_string(i));
    world.server.Desire(uids.back(), {.edit = edit});
  }
  for (const std::string& uid : uids) ASSERT_TRUE(world.UntilState(uid, "Running")) << uid;
  world.server.Down();
  world.host.Kill();
  world.host.fake().state().PowerCut(world.host.fake().clock());
  world.host.Start();
  for (const std::string& uid : uids) {
    EXPECT_TRUE(world.Until([&] { return world.host.Running(uid) == 1; })) << uid;
  }
}

TEST(Poollet, Secrets_AreNotInTheRecordAndAreAskedForAgain) {
  World world;
  world.StartAndSync();
  const auto secret = [](pb::Assign& assign) {
    assign.mutable_machine()->set_ignition("very secret");
  };
  world.server.Desire("m1", {.edit = secret});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_EQ(world.host.disk().files().at("record").find("very secret"), std::string::npos);
  world.host.Kill();
  world.host.Start();
  ASSERT_TRUE(world.Until([&] { return world.server.is_synced(); }));
  EXPECT_EQ(world.server.known.at("m1").hash, "") << "send it again";
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, P9_AfterARebootAMachineWaitsForTheServerToSendItsIgnition) {
  World world;
  world.StartAndSync();
  const auto secret = [](pb::Assign& assign) { assign.mutable_machine()->set_ignition("secret"); };
  world.server.Desire("m1", {.edit = secret});
  world.server.Desire("m2", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  ASSERT_TRUE(world.UntilState("m2", "Running"));
  world.server.Down();
  world.host.Kill();
  world.host.fake().state().PowerCut(world.host.fake().clock());
  world.host.Start();
  EXPECT_TRUE(world.Until([&] { return world.host.Running("m2") == 1; }));
  world.loop.RunFor(Duration::Minutes(2));
  EXPECT_EQ(world.host.Running("m1"), 0) << "not without it";
  world.server.Up();
  ASSERT_TRUE(world.Until([&] { return world.host.Running("m1") == 1; }));
  EXPECT_EQ(world.Machine("m1").spec.ignition_data, "secret");
  EXPECT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_EQ(world.server.heard.at("m1").conditions.at("SecretsReady"), "True");
}

TEST(Poollet, P9_WhatWasOffInARebootHasItsIgnitionWhenItIsSwitchedOn) {
  World world;
  world.StartAndSync();
  const auto off = [](pb::Assign& assign) {
    assign.mutable_machine()->set_ignition("secret");
    assign.mutable_machine()->set_power_on(false);
  };
  world.server.Desire("m1", {.edit = off});
  ASSERT_TRUE(world.UntilState("m1", "Shutdown"));
  world.host.Kill();
  world.host.fake().state().PowerCut(world.host.fake().clock());
  world.host.Start();
  ASSERT_TRUE(world.Until([&] { return world.Machine("m1").spec.ignition_data == "secret"; }));
  const auto on = [](pb::Assign& assign) { assign.mutable_machine()->set_ignition("secret"); };
  world.server.Desire("m1", {.generation = 2, .edit = on});
  EXPECT_TRUE(world.UntilState("m1", "Running"));
}

TEST(Poollet, C8_RuntimeARefusedCreateGivesTheMachineBack) {
  World world;
  world.host.fake().state().options().faults.create_fails = 1;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.Until([&] { return world.server.refused.contains("m1"); }));
  EXPECT_EQ(world.server.refused.at("m1"), "RuntimeRefused");
  EXPECT_FALSE(world.host.poollet().host().ledger().IsAllocated("m1"));
}

TEST(Poollet, Runtime_WhileItIsAwayOffersAreRefused) {
  World world;
  world.StartAndSync();
  world.host.fake().Crash();
  world.loop.RunFor(Duration::Seconds(20));
  world.server.Offer(1, 1, "a", {});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("1/1"); }));
  EXPECT_EQ(world.server.answers.at("1/1").reason, "RuntimeUnavailable");
}

TEST(Poollet, Reservations_BlockRoomUntilTheyAreTakenBack) {
  World world;
  world.StartAndSync();
  const int64_t capacity = world.host.fake().state().options().capacity.at("cpu");
  world.server.Desire("r1",
                      {.kind = "Reservation", .class_name = "", .resources = {{"cpu", capacity}}});
  ASSERT_TRUE(world.UntilState("r1", "Accepted"));
  world.host.Kill();
  world.host.Start();
  ASSERT_TRUE(world.Until([&] { return world.server.is_synced(); }));
  world.server.Offer(1, 1, "a", {});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("1/1"); }));
  EXPECT_EQ(world.server.answers.at("1/1").verdict, Answered::kRejected) << "durable on the host";
  world.server.Remove("r1", 1);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("r1"); }));
  world.server.Offer(1, 2, "a", {});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("1/2"); }));
  EXPECT_EQ(world.server.answers.at("1/2").verdict, Answered::kAccepted);
}

// The whole host is reserved: the runtime lets nobody else in either.
class ReservedHost {
 public:
  ReservedHost() {
    world.StartAndSync();
    capacity = world.host.fake().state().options().capacity.at("cpu");
    world.server.Desire(
        "r1", {.kind = "Reservation", .class_name = "", .resources = {{"cpu", capacity}}});
    CHECK(world.UntilState("r1", "Accepted"));
  }
  // What the runtime keeps free of the reservation.
  int64_t Kept() {
    const auto& all = world.host.fake().state().reservations();
    if (all.empty()) return 0;
    CHECK(all.size() == 1 && all.front().id == "r1");
    return all.front().resources.at("cpu");
  }
  World world;
  int64_t capacity = 0;
};

TEST(Poollet, R6_5_TheRuntimeKeepsFreeWhatIsReservedUntilItIsTakenBack) {
  ReservedHost reserved;
  World& world = reserved.world;
  EXPECT_TRUE(world.Until([&] { return reserved.Kept() == reserved.capacity; }));
  world.server.Remove("r1", 1);
  EXPECT_TRUE(world.Until([&] { return reserved.Kept() == 0; }));
}

TEST(Poollet, R6_5_WhoUsesAReservationFindsItsRoomInTheRuntime) {
  ReservedHost reserved;
  World& world = reserved.world;
  ASSERT_TRUE(world.Until([&] { return reserved.Kept() == reserved.capacity; }));
  world.server.Desire("m1", {.resources = {{"cpu", 1000}}, .edit = [](auto& assign) {
                               assign.set_reservation_uid("r1");
                             }});
  EXPECT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_TRUE(world.server.refused.empty());
  EXPECT_EQ(reserved.Kept(), reserved.capacity - 1000);
}

TEST(Poollet, R6_5_ARuntimeOrAPoolletThatHasForgottenIsToldAgain) {
  ReservedHost reserved;
  World& world = reserved.world;
  ASSERT_TRUE(world.Until([&] { return reserved.Kept() == reserved.capacity; }));
  world.host.fake().state().RestoreReservations({});
  EXPECT_EQ(reserved.Kept(), 0);
  EXPECT_TRUE(world.Until([&] { return reserved.Kept() == reserved.capacity; }));
  world.host.Kill();
  world.host.fake().state().RestoreReservations({});
  world.host.Start();
  EXPECT_TRUE(world.Until([&] { return reserved.Kept() == reserved.capacity; }));
}

TEST(Poollet, R6_5_WhatTheLedgerDoesNotReserveTheRuntimeGivesUp) {
  ReservedHost reserved;
  World& world = reserved.world;
  world.server.Remove("r1", 1);
  ASSERT_TRUE(world.Until([&] { return reserved.Kept() == 0; }));
  iri::Reservation old;
  old.id = "r1";
  old.resources = {{"cpu", reserved.capacity}};
  world.host.fake().state().RestoreReservations({old});
  EXPECT_TRUE(world.Until([&] { return reserved.Kept() == 0; }));
}

TEST(Poollet, C12_WhatTheRuntimeSaysHappenedReachesTheServer) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  const Time crashed = world.loop.Now();
  world.host.fake().state().CrashGuest(world.host.fake().clock(), world.Id("m1"));
  world.host.fake().Refresh();
  EXPECT_TRUE(world.Until([&] {
    return std::ranges::find(world.server.events, "m1 Crashed") != world.server.events.end();
  }));
  EXPECT_LT(world.loop.Now() - crashed, Duration::Seconds(1));
}

}  // namespace
}  // namespace berth::poollet
