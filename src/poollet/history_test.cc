// SPDX-License-Identifier: Apache-2.0
// Crashes, rewound histories, orphans and deletions, seen from the host (PROTOCOL 2.4, 4.3):
// nothing is removed without proof.
#include <gtest/gtest.h>

#include <algorithm>

#include "iri/labels.h"
#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

using Answered = fleet::Answer::Verdict;

// Their UIDs; fewer if one does not run.
std::vector<std::string> RunEight(World& world) {
  std::vector<std::string> uids;
  for (int i = 0; i < 8; ++i) world.server.Desire("m" + std::to_string(i), {});
  for (int i = 0; i < 8; ++i) {
    const std::string uid = "m" + std::to_string(i);
    if (world.UntilState(uid, "Running")) uids.push_back(uid);
  }
  return uids;
}

// Offered and accepted, and then the poollet dies: its hold was in memory only.
void DieAfterAYes(World& world, const FakeGateway::Wish& wish) {
  world.StartAndSync();
  world.server.Offer(1, 1, "a", wish);
  ASSERT_TRUE(world.Until([&] { return world.server.answers.contains("1/1"); }));
  ASSERT_EQ(world.server.answers.at("1/1").verdict, Answered::kAccepted)
      << world.server.answers.at("1/1").reason;
  world.host.Kill();
}

// The store was rolled back, and nobody said so: it is of the same incarnation.
TEST(Poollet, P6_WhatIsBelowTheRecordedPlacementIsReportedOnEverySession) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {.placement = 5});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.server.Down();
  world.server.Desire("m1", {.placement = 3, .generation = 9, .power_on = false});
  const auto hears = [&world](const std::string& event, ptrdiff_t times) {
    return world.Until([&] { return std::ranges::count(world.server.events, event) == times; });
  };
  world.server.Up();
  EXPECT_TRUE(hears("m1 StaleAssignment", 1));
  world.server.CloseSession();
  EXPECT_TRUE(hears("m1 StaleAssignment", 2)) << "the next one may have another server";
  world.server.Down();
  world.server.Forget("m1");
  world.server.RemoveQuietly("m1", 3);
  world.server.Up();
  EXPECT_TRUE(hears("m1 StaleDelete", 1));
  EXPECT_EQ(world.host.Running("m1"), 1);
}

TEST(Poollet, Seq9_AHoldThatDiedWithThePoolletIsAdmittedAgain) {
  World world;
  DieAfterAYes(world, {});
  world.server.Desire("a", {});
  world.host.Start();
  EXPECT_TRUE(world.UntilState("a", "Running"));
  EXPECT_TRUE(world.server.refused.empty());
}

TEST(Poollet, Seq9_AHoldThatDiedWithThePoolletIsRefusedIfSomebodyElseHasItsRoom) {
  World world;
  FakeGateway::Wish all;
  all.resources["storage"] = world.host.fake().state().options().capacity.at("storage");
  DieAfterAYes(world, all);
  world.StartAndSync();
  world.server.Desire("b", all);
  ASSERT_TRUE(world.UntilState("b", "Running")) << "nothing is held any more";
  world.server.Desire("a", all);
  ASSERT_TRUE(world.Until([&] { return world.server.refused.contains("a"); }));
  EXPECT_EQ(world.server.refused.at("a"), "Insufficient");
  EXPECT_EQ(world.host.Objects("a"), 0);
  EXPECT_EQ(world.host.Running("b"), 1);
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

TEST(Poollet, R4_3_BreakerManyDeletionsUnderARewoundHistoryWaitForAnOperator) {
  World world;
  world.StartAndSync();
  const std::vector<std::string> uids = RunEight(world);
  ASSERT_EQ(uids.size(), 8U);
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

TEST(Poollet, R4_3_BreakerAllThreeOfAHostThatHasThreeAreMany) {
  World world;
  world.StartAndSync();
  const std::vector<std::string> uids = {"a", "b", "c"};
  for (const auto& uid : uids) {
    world.server.Desire(uid, {});
    ASSERT_TRUE(world.UntilState(uid, "Running"));
  }
  world.server.revision = 50;  // an older store, which does not say so
  for (const auto& uid : uids) {
    world.server.Forget(uid);
    world.server.RemoveQuietly(uid, 1);
  }
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  world.loop.RunFor(Duration::Seconds(30));
  EXPECT_TRUE(world.host.poollet().host().has_tripped());
  for (const auto& uid : uids) EXPECT_EQ(world.host.Running(uid), 1) << uid;
}

TEST(Poollet, R4_3_BreakerDeletionsWaitUntilTheServerHasSpokenOfEverything) {
  World world;
  world.StartAndSync();
  const std::vector<std::string> uids = RunEight(world);
  ASSERT_EQ(uids.size(), 8U);
  world.server.incarnation = 2;
  world.server.is_open = true;
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  for (int i = 0; i < 5; ++i) {
    world.server.Forget(uids[i]);
    world.server.Remove(uids[i], 1);
  }
  world.loop.RunFor(Duration::Seconds(30));
  for (const auto& uid : uids) EXPECT_EQ(world.host.Running(uid), 1) << uid;
  EXPECT_FALSE(world.host.poollet().host().has_tripped()) << "more may come";
  EXPECT_TRUE(world.server.orphans.empty()) << "nobody has said that they are unknown";
  world.server.Settle();
  ASSERT_TRUE(world.Until([&] { return world.host.poollet().host().has_tripped(); }));
  world.loop.RunFor(Duration::Seconds(30));
  for (const auto& uid : uids) EXPECT_EQ(world.host.Running(uid), 1) << uid;
}

TEST(Poollet, WhatIsAssignedWhileItIsRemovedIsGoneBeforeTheServerHears) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {.placement = 1});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  world.host.fake().Crash();  // so that the removal takes its time
  world.server.Forget("m1");
  world.server.Remove("m1", 1);
  world.loop.RunFor(Duration::Seconds(1));
  world.server.SendAssign("m1", {.placement = 3}, 1);
  world.loop.RunFor(Duration::Seconds(5));
  EXPECT_FALSE(world.server.refused.contains("m1")) << "the server would place it elsewhere";
  EXPECT_FALSE(world.server.gone.contains("m1"));
  world.host.fake().Restart();
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains("m1"); }));
  EXPECT_EQ(world.server.gone.at("m1"), 3U) << "at the placement that was asked for";
  EXPECT_EQ(world.host.Objects("m1"), 0);
}

TEST(Poollet, R4_3_OrphansOfTheRecordAreAdoptedWhereTheyAre) {
  World world;
  world.StartAndSync();
  world.server.Desire("m1", {.placement = 9});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  const std::string id = world.Id("m1");
  // The store has lost it, without a new incarnation.
  world.server.Forget("m1");
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return !world.server.orphans.empty(); }));
  world.server.Offer(1, 1, "m1", {.placement = 9});
  world.server.Offer(1, 2, "m1", {.resources = {{"cpu", 9000}}, .placement = 101});
  world.server.Offer(1, 3, "m1", {.placement = 101});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.size() == 3; }));
  EXPECT_EQ(world.server.answers.at("1/1").verdict, Answered::kAlreadyHere) << "not a later number";
  EXPECT_EQ(world.server.answers.at("1/2").verdict, Answered::kAlreadyHere) << "not what runs here";
  EXPECT_EQ(world.server.answers.at("1/3").verdict, Answered::kAccepted) << "its room is its own";
  world.server.heard.clear();
  world.server.Desire("m1", {.placement = 101});
  ASSERT_TRUE(world.UntilState("m1", "Running"));
  EXPECT_EQ(world.server.heard.at("m1").placement, 101U);
  EXPECT_EQ(world.Id("m1"), id) << "the very same guest";
  ASSERT_TRUE(world.Until([&] { return world.server.orphans.empty(); }));
  world.server.Offer(1, 4, "m1", {.placement = 103});
  ASSERT_TRUE(world.Until([&] { return world.server.answers.size() == 4; }));
  EXPECT_EQ(world.server.answers.at("1/4").verdict, Answered::kAlreadyHere) << "it is known again";
}

TEST(Poollet, R4_3_BreakerIsOverOnceEverythingHeldBackWasApproved) {
  World world;
  world.StartAndSync();
  const std::vector<std::string> uids = RunEight(world);
  ASSERT_EQ(uids.size(), 8U);
  world.server.incarnation = 2;
  for (int i = 0; i < 5; ++i) {
    world.server.Forget(uids[i]);
    world.server.RemoveQuietly(uids[i], 1);
  }
  world.server.CloseSession();
  ASSERT_TRUE(world.Until([&] { return world.server.sessions == 2 && world.server.is_synced(); }));
  ASSERT_TRUE(world.Until([&] { return world.host.poollet().host().has_tripped(); }));
  // Meanwhile somebody deletes one more, as every day: it waits with the others.
  world.server.Forget(uids[5]);
  world.server.Remove(uids[5], 1);
  world.loop.RunFor(Duration::Seconds(30));
  EXPECT_EQ(world.host.Running(uids[5]), 1);
  for (int i = 0; i < 6; ++i) world.server.Remove(uids[i], 1, true);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.size() == 6; }));
  EXPECT_FALSE(world.host.poollet().host().has_tripped());
  // From here on deletions need no approval.
  world.server.Forget(uids[6]);
  world.server.Remove(uids[6], 1);
  ASSERT_TRUE(world.Until([&] { return world.server.gone.contains(uids[6]); }));
  EXPECT_EQ(world.host.Running(uids[7]), 1);
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

}  // namespace
}  // namespace berth::poollet
