// SPDX-License-Identifier: Apache-2.0
// A whole poollet between a fake server and fake runtimes: the rules and crash sequences of the
// protocol, seen from the host.
#include "poollet/poollet.h"

#include <gtest/gtest.h>

#include "berth/agent/v1/agent.pb.h"
#include "iri/labels.h"
#include "poollet/testing/fake_gateway.h"
#include "poollet/testing/sim_host.h"
#include "rt/sim/run_task.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;
using Answered = fleet::Answer::Verdict;
using Wish = FakeGateway::Wish;

class World {
 public:
  explicit World(uint64_t seed = 1, runtime::FakeHostOptions fake = SimHost::DefaultFake())
      : loop(seed),
        network(loop),
        server(loop, network),
        host(loop, network, seed, std::move(fake)) {}

  void StartAndSync() {
    host.Start();
    ASSERT_TRUE(Until([&] { return server.is_synced(); }));
  }
  bool Until(const std::function<bool()>& done, Duration limit = Duration::Seconds(60)) {
    return loop.RunUntil(done, limit);
  }
  bool UntilState(const std::string& uid, const std::string& state) {
    return Until([&] {
      const auto found = server.heard.find(uid);
      return found != server.heard.end() && found->second.state == state;
    });
  }
  std::string Id(const std::string& uid) {
    for (const auto& [id, machine] : host.fake().state().machines()) {
      if (iri::LabelOf(machine.object.metadata, iri::kMachineUidLabel) == uid) return id;
    }
    return "";
  }
  const iri::Machine& Machine(const std::string& uid) {
    return host.fake().state().machines().at(Id(uid)).object;
  }

  rt::SimLoop loop;
  net::SimNetwork network;
  FakeGateway server;
  SimHost host;
};

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
  const int64_t capacity = world.host.fake().state().options().capacity.at("cpu");
  world.server.Offer(1, 1, "a", {.resources = {{"cpu", capacity + 5}}});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("1/1"); }));
  EXPECT_EQ(world.server.answers.at("1/1").verdict, Answered::kRejected);
  EXPECT_EQ(world.server.answers.at("1/1").missing.at("cpu"), 5);
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
  ASSERT_TRUE(world.Until([&] { return !world.server.events.empty(); }));
  EXPECT_EQ(world.server.events.back(), "m1 StaleAssignment");
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, P7_AMoveMachineStartsOnlyUnderALeaseOfThisSession) {
  World world;
  world.server.grants = false;
  world.StartAndSync();
  world.server.Desire("m1", {.moves = true});
  ASSERT_TRUE(world.Until([&] {
    const auto found = world.server.heard.find("m1");
    return found != world.server.heard.end() && found->second.conditions.at("Ready") == "NoLease";
  }));
  EXPECT_EQ(world.host.Objects("m1"), 0);
  world.server.grants = true;
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_TRUE(world.host.fake().state().leases().contains("m1"));
}

TEST(Poollet, R3_2_R3_3_2_LeaseWithoutGrantsAMoveMachineDiesAndAKeepMachineLives) {
  World world;
  world.StartAndSync();
  world.server.Desire("moves", {.moves = true});
  world.server.Desire("keeps", {});
  ASSERT_TRUE(world.UntilState("moves", "Running"));
  ASSERT_TRUE(world.UntilState("keeps", "Running"));
  world.network.Partition("server", "host");
  world.loop.RunFor(Duration::Seconds(9));
  EXPECT_EQ(world.host.Running("moves"), 0);
  EXPECT_EQ(world.host.Running("keeps"), 1);
  // Back, and confirmed: it may start again.
  world.network.HealAll();
  ASSERT_TRUE(world.Until([&] { return world.host.Running("moves") == 1; }));
}

TEST(Poollet, R3_3_5_LeaseAGrantOnANewSessionDoesNotReviveWhatIsNotConfirmed) {
  World world;
  world.StartAndSync();
  world.server.Desire("moves", {.moves = true});
  ASSERT_TRUE(world.UntilState("moves", "Running"));
  world.server.confirms = false;
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  world.loop.RunFor(Duration::Seconds(10));
  EXPECT_EQ(world.host.Running("moves"), 0) << "the server may be moving it";
}

TEST(Poollet, R3_3_2_LeaseADeadPoolletDoesNotKeepAMoveMachineAlive) {
  World world;
  world.StartAndSync();
  world.server.Desire("moves", {.moves = true});
  ASSERT_TRUE(world.UntilState("moves", "Running"));
  world.host.Kill();
  world.loop.RunFor(Duration::Seconds(9));
  EXPECT_EQ(world.host.Running("moves"), 0);
}

TEST(Poollet, Seq9_AHoldThatDiedWithThePoolletIsAdmittedAgainOrRefused) {
  World world;
  world.StartAndSync();
  world.server.Offer(1, 1, "a", {});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("1/1"); }));
  world.host.Kill();
  world.server.Desire("a", {});
  world.host.Start();
  EXPECT_TRUE(world.UntilState("a", "Running"));
}

TEST(Poollet, Seq13_ARuntimeThatDiesAfterCreateMakesOneObject) {
  for (const auto memory : {runtime::FakeHost::Memory::kKept, runtime::FakeHost::Memory::kLost}) {
    World world;
    world.StartAndSync();
    world.server.Desire("m1", {});
    ASSERT_TRUE(world.Until([&] { return world.host.Objects("m1") == 1; }));
    world.host.fake().Crash();
    world.loop.RunFor(Duration::Seconds(3));
    world.host.fake().Restart(memory);
    ASSERT_TRUE(world.Until([&] { return world.host.Running("m1") == 1; }));
    world.loop.RunFor(Duration::Seconds(30));
    EXPECT_EQ(world.host.Objects("m1"), 1);
  }
}

TEST(Poollet, Seq14_AfterAReconnectOnlyDifferencesAreSent) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.acks.clear();
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  world.loop.RunFor(Duration::Seconds(1));
  EXPECT_TRUE(world.server.acks.empty()) << "nothing was assigned anew";
  EXPECT_EQ(world.server.heard.at("m1").state, "Running") << "the status was said again";
}

TEST(Poollet, Seq16_AMoveMachineThatWasBoundDuringAPartitionDoesNotStartLate) {
  World world;
  world.server.grants = false;  // the server has fenced this session already
  world.StartAndSync();
  world.server.Desire("m1", {.moves = true});
  world.loop.RunFor(Duration::Seconds(20));
  EXPECT_EQ(world.host.Running("m1"), 0);
}

TEST(Poollet, Seq17_WhatMovedAwayIsStoppedAndGivenUpOnReturn) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {.placement = 1});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.network.Isolate("host");
  world.loop.RunFor(Duration::Seconds(40));
  world.server.RemoveQuietly("m1", 1);  // bound elsewhere, with 3
  world.server.Forget("m1");
  world.network.HealAll();
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("m1"); }));
  EXPECT_EQ(world.server.known.at("m1").placement, 1U);
  EXPECT_EQ(world.host.Objects("m1"), 0);
}

TEST(Poollet, Seq20_UnderAnOlderStoreNothingIsDeletedAndTheUnknownIsQuarantined) {
  World world;
  world.StartAndSync();
  world.server.Desire("old", {.placement = 9});
  world.server.Desire("new", {.placement = 4});
  ASSERT_TRUE(world.UntilState("old", "Running"));
  ASSERT_TRUE(world.UntilState("new", "Running"));
  // Yesterday's store: a new incarnation, lower placements, and one object unknown.
  world.server.incarnation = 2;
  world.server.Forget("new");
  world.server.Desire("old", {.placement = 2});
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  ASSERT_TRUE(world.Until([&] { return world.server.heard.at("old").incarnation == 2; }));
  EXPECT_EQ(world.server.heard.at("old").placement, 2U) << "I counts before P";
  world.loop.RunFor(Duration::Minutes(3));
  EXPECT_EQ(world.host.Running("old"), 1);
  EXPECT_EQ(world.host.Running("new"), 1);
  ASSERT_EQ(world.server.orphans.size(), 1U);
  EXPECT_EQ(world.server.orphans.begin()->second, "new") << "shown to people";
  world.server.Purge("new", world.server.orphans.begin()->first);
  ASSERT_TRUE(world.Until([&] { return world.host.Objects("new") == 0; }));
}

TEST(Poollet, R5_8_AConsoleEchoesUntilItsInputIsOver) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.tunnel_input["t"] = {"one ", "two ", ""};
  world.server.OpenTunnel("t", "m1", 1, "console");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.contains("t"); }));
  EXPECT_EQ(world.server.tunnels.at("t"), "console of m1\r\none two 0");
}

TEST(Poollet, R5_8_LogsShellsAndPortsComeThroughTheTunnelToo) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.OpenTunnel("logs", "m1", 1, "logs");
  world.server.OpenTunnel("exec", "m1", 1, "exec");
  world.server.tunnel_input["port"] = {"ping", ""};
  world.server.OpenTunnel("port", "m1", 1, "portforward");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.size() == 3; }));
  EXPECT_TRUE(world.server.tunnels.at("logs").ends_with(" Booted the guest runs\n0"));
  EXPECT_EQ(world.server.tunnels.at("exec"), "ran \n0");
  EXPECT_EQ(world.server.tunnels.at("port"), "ping0");
}

TEST(Poollet, R5_8_AConsoleEndsWithItsGuestAndWithItsSession) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.OpenTunnel("a", "m1", 1, "console");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnel_bytes["a"] > 0; }));
  world.host.fake().state().CrashGuest(world.host.fake().clock(), world.Id("m1"));
  world.host.fake().Refresh();
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.contains("a"); }));
  EXPECT_TRUE(world.server.tunnels.at("a").ends_with("the guest is gone"));
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.OpenTunnel("b", "m1", 1, "console");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnel_bytes["b"] > 0; }));
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
}

TEST(Poollet, R5_8_AConsoleThatNobodyReadsHoldsUpNothingElse) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  // More than all windows and queues on the way back together, and none of it is read.
  world.server.reads_tunnels = false;
  world.server.tunnel_input["flood"] =
      std::vector<std::string>(64, std::string(size_t{64} << 10, 'x'));
  world.server.OpenTunnel("flood", "m1", 1, "console");
  world.server.Desire("m2", {});
  EXPECT_TRUE(world.UntilState("m2", "Running"));
  world.loop.RunFor(Duration::Seconds(30));
  EXPECT_TRUE(world.server.is_synced());
  EXPECT_FALSE(world.server.tunnels.contains("flood"));
}

TEST(Poollet, Tunnel_WhatCannotBeShownIsSaidSo) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.OpenTunnel("ticket-1", "m1", 1, "hologram");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.contains("ticket-1"); }));
  EXPECT_EQ(world.server.tunnels.at("ticket-1"), "the runtime of this host offers no hologram");
  world.server.OpenTunnel("ticket-2", "m1", 9, "console");
  ASSERT_TRUE(world.Until([&] { return world.server.tunnels.contains("ticket-2"); }));
  EXPECT_EQ(world.server.tunnels.at("ticket-2"), "m1 is not on this host at placement 9");
}

TEST(Poollet, R4_3_BreakerManyDeletionsUnderARewoundHistoryWaitForAnOperator) {
  World world;
  world.StartAndSync();
  std::vector<std::string> uids;
  for (int i = 0; i < 8; ++i) uids.push_back("m" + std::to_string(i));
  for (const auto& uid : uids) world.server.Desire(uid, {});
  for (const auto& uid : uids) ASSERT_TRUE(world.UntilState(uid, "Running"));
  world.server.incarnation = 2;
  for (int i = 0; i < 5; ++i) {
    world.server.Forget(uids[i]);
    world.server.RemoveQuietly(uids[i], 1);
  }
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  world.loop.RunFor(Duration::Seconds(30));
  for (const auto& uid : uids) EXPECT_EQ(world.host.Running(uid), 1) << uid;
  EXPECT_TRUE(world.host.poollet().host().has_tripped());
  EXPECT_NE(std::ranges::find(world.server.events, " MassDeletionHeld"), world.server.events.end());
  world.server.Remove(uids[0], 1, true);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains(uids[0]); }));
  EXPECT_EQ(world.host.Running(uids[1]), 1) << "only what was approved";
}

TEST(Poollet, R4_3_OrphansAreLeftAloneCountedShownAndPurgedOnAnOperatorsWord) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  // The host loses its record: nobody here knows the machine any more.
  world.host.Kill();
  world.host.disk().files().clear();
  world.server.Forget("m1");
  world.host.Start();
  ASSERT_TRUE(world.Until([&] { return !world.server.orphans.empty(); }));
  EXPECT_EQ(world.server.orphans.begin()->second, "m1");
  world.loop.RunFor(Duration::Minutes(5));
  EXPECT_EQ(world.host.Running("m1"), 1) << "left exactly as it is";
  EXPECT_EQ(world.server.facts.at("MachinePool").allocated.at("cpu"), 1000) << "and counted";
  const std::string id = world.server.orphans.begin()->first;
  world.server.Purge("another", id);
  world.loop.RunFor(Duration::Seconds(5));
  EXPECT_EQ(world.host.Objects("m1"), 1) << "the verdict was for another uid";
  world.server.Purge("m1", id);
  ASSERT_TRUE(world.Until([&] { return world.server.orphans.empty(); }));
  EXPECT_EQ(world.host.Objects("m1"), 0);
}

TEST(Poollet, R4_3_OrphansAreAdoptedByAnAssignment) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  const std::string id = world.Id("m1");
  world.host.Kill();
  world.host.disk().files().clear();
  world.server.Forget("m1");
  world.host.Start();
  ASSERT_TRUE(world.Until([&] { return !world.server.orphans.empty(); }));
  world.server.heard.clear();
  world.server.Desire("m1", {.placement = 2});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_EQ(world.Id("m1"), id);
  ASSERT_TRUE(world.Until([&] { return world.server.orphans.empty(); }));
}

TEST(Poollet, R4_3_OrphansOfAnotherClusterAreNeverTouched) {
  World world;
  iri::Machine foreign;
  foreign.metadata.labels = {{std::string(iri::kMachineUidLabel), "x"},
                             {std::string(iri::kClusterIdLabel), "another cluster"}};
  foreign.spec.class_name = "small";
  ASSERT_TRUE(world.host.fake().state().CreateMachine(world.host.fake().clock(), foreign).ok());
  world.StartAndSync();
  world.server.Remove("x", 1);
  world.loop.RunFor(Duration::Minutes(2));
  EXPECT_TRUE(world.server.orphans.empty());
  EXPECT_EQ(world.host.Objects("x"), 1);
}

TEST(Poollet, R4_3_DeleteOnlyTheServersWordRemovesAnything) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.Forget("m1");
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  world.loop.RunFor(Duration::Minutes(5));
  EXPECT_EQ(world.host.Running("m1"), 1);
  world.server.Remove("m1", 1);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("m1"); }));
  EXPECT_EQ(world.host.Objects("m1"), 0);
  world.loop.RunFor(Duration::Seconds(2));
  EXPECT_TRUE(world.host.poollet().host().record().entries.empty()) << "forgotten when confirmed";
  EXPECT_FALSE(world.host.poollet().host().ledger().IsAllocated("m1"));
}

TEST(Poollet, Delete_OfWhatWasNeverHereIsAnsweredWithGone) {
  World world;
  world.StartAndSync();
  world.server.Remove("never", 3);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("never"); }));
  EXPECT_EQ(world.server.gone.at("never"), 3U);
}

TEST(Poollet, Delete_ALateAssignOfWhatIsGoneRevivesNothing) {
  World world;
  world.StartAndSync();
  world.server.acknowledges_gone = false;
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.Remove("m1", 1);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("m1"); }));
  world.host.Kill();
  world.host.Start();
  ASSERT_TRUE(world.Until([&] { return world.server.is_synced(); }));
  EXPECT_TRUE(world.server.known.at("m1").gone);
  world.server.SendAssign("m1", {}, 1);
  world.loop.RunFor(Duration::Seconds(20));
  EXPECT_EQ(world.host.Objects("m1"), 0);
}

TEST(Poollet, C26_DeleteThatHangsIsWaitedFor) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.host.fake().state().options().faults.delete_sticks = 1;
  world.server.Remove("m1", 1);
  world.loop.RunFor(Duration::Seconds(50));
  EXPECT_FALSE(world.server.gone.contains("m1"));
  EXPECT_TRUE(world.host.poollet().host().ledger().IsAllocated("m1")) << "P4: freed when gone";
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("m1"); }));
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

TEST(Poollet, C19_C21_LeaveKeepSaysGoodbyeAndEverythingRunsOn) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_TRUE(world.host.Stop(LeaveMode::kKeep).ok());
  EXPECT_EQ(world.server.goodbye, "KEEP");
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, C19_C21_LeaveDrainWaitsUntilEverythingIsGone) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  world.server.Desire("m2", {});
  ASSERT_TRUE(world.UntilState("m2", "Running"));
  EXPECT_TRUE(world.host.Stop(LeaveMode::kDrain).ok());
  EXPECT_EQ(world.server.goodbye, "DRAIN");
  EXPECT_EQ(world.host.Objects("m1") + world.host.Objects("m2"), 0);
}

TEST(Poollet, R3_5_C39_SessionTheFirstRetryComesWithin50Milliseconds) {
  World world;
  world.StartAndSync();
  world.server.CloseSession();
  EXPECT_TRUE(world.Until([&] { return world.server.sessions == 2; }, Duration::Millis(70)));
}

TEST(Poollet, Session_ARefusalIsRememberedWithItsReason) {
  World world;
  world.server.refuses = "AlreadyConnected";
  world.host.Start();
  world.loop.RunFor(Duration::Seconds(5));
  EXPECT_NE(world.host.poollet().session().last_error().find("AlreadyConnected"),
            std::string::npos);
}

TEST(Poollet, Session_AnotherProtocolVersionIsRefusedByBothNumbers) {
  World world;
  world.server.version = 9;
  world.host.Start();
  world.loop.RunFor(Duration::Seconds(1));
  EXPECT_EQ(world.host.poollet().session().last_error(),
            "the server speaks version 9, this poollet 1 to 1");
}

TEST(Poollet, Session_AServerOfAnotherClusterIsNotObeyed) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.cluster_id = "22222222-2222-4222-8222-222222222222";
  world.server.CloseSession();
  world.loop.RunFor(Duration::Seconds(5));
  EXPECT_FALSE(world.server.is_synced());
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, Session_AnAnnounceIsSentInChunks) {
  World world;
  world.StartAndSync();
  const Wish tiny = {.resources = {{"cpu", 1}}};
  for (int i = 0; i < 200; ++i) world.server.Desire("machine-number-" + std::to_string(i), tiny);
  ASSERT_TRUE(world.Until([&] { return world.server.acks.size() == 200; }));
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  EXPECT_GT(world.server.announce_chunks, 1U);
  EXPECT_EQ(world.server.known.size(), 200U);
}

TEST(Poollet, Session_ARedirectIsFollowed) {
  World world;
  FakeGateway other(world.loop, world.network, "other");
  world.StartAndSync();
  world.server.Redirect("other:7443");
  EXPECT_TRUE(world.Until([&] { return other.is_synced(); }, Duration::Seconds(1)));
  world.host.Kill();
}

TEST(Poollet, Session_ManyWordsOfOneTurnAreFewMessages) {
  World world;
  world.StartAndSync();
  world.loop.RunFor(Duration::Seconds(2));
  const size_t before = world.server.batches;
  for (uint64_t i = 1; i <= 50; ++i) world.server.Offer(1, i, "u" + std::to_string(i), {});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.size() == 50; }));
  EXPECT_LE(world.server.batches - before, 50U);
}

TEST(Poollet, C13_C18_StatisticsAreSaidPeriodically) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_TRUE(world.Until([&] { return world.server.statistics.contains("m1"); }));
  EXPECT_TRUE(world.server.statistics.contains(""));
}

TEST(Poollet, C12_WhatTheRuntimeSaysHappenedReachesTheServer) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.host.fake().state().CrashGuest(world.host.fake().clock(), world.Id("m1"));
  world.host.fake().Refresh();
  EXPECT_TRUE(world.Until([&] {
    return std::ranges::find(world.server.events, "m1 Crashed") != world.server.events.end();
  }));
}

}  // namespace
}  // namespace berth::poollet
