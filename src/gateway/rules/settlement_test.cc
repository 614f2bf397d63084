// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/settlement.h"

#include <gtest/gtest.h>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"

namespace berth::gateway {
namespace {

const meta::KindInfo& Machines() { return apis::compute::kMachineKind; }

TEST(Settlement, Seq20_BeforeTheListIsWholeEverythingIsOpen) {
  Settlement settlement;
  EXPECT_FALSE(settlement.is_open());
  EXPECT_FALSE(settlement.IsOpen("a"));
  settlement.Begin();
  EXPECT_TRUE(settlement.IsOpen("a"));
  EXPECT_TRUE(settlement.IsOpen("made after the restore"));
  settlement.Know("a", Machines(), {.namespace_ = "default", .name = "a"});
  EXPECT_FALSE(settlement.all_heard());  // whom to hear is not known yet
  settlement.Listed();
  EXPECT_TRUE(settlement.IsOpen("a"));
  EXPECT_FALSE(settlement.IsOpen("made after the restore"));
  EXPECT_TRUE(settlement.all_heard());
}

TEST(Settlement, Seq20_EveryHostIsHeardOrOffOrItsPoolsAreGone) {
  Settlement settlement;
  settlement.Begin();
  settlement.Await("p1", "rack1", "host-1");
  settlement.Await("v1", "rack1-disks", "host-1");
  settlement.Await("p2", "rack2", "host-2");
  settlement.Await("p3", "rack3", "host-3");
  settlement.Await("p4", "rack4", "host-4");
  settlement.Listed();
  EXPECT_EQ(settlement.Awaited(), "rack1, rack2, rack3 and 2 more");
  settlement.HostHeard("host-1");
  EXPECT_EQ(settlement.Awaited(), "rack2, rack3, rack4");
  settlement.PoolGone("p2");
  settlement.HostHeard("host-3");
  EXPECT_FALSE(settlement.all_heard());
  settlement.HostHeard("host-4");
  EXPECT_TRUE(settlement.all_heard());
  EXPECT_TRUE(settlement.is_open());
  settlement.Finish();
  EXPECT_FALSE(settlement.is_open());
}

TEST(Settlement, Seq20_APoolThatCannotBeReadIsNotHeard) {
  const meta::KindInfo& pools = apis::compute::kMachinePoolKind;
  Settlement settlement;
  settlement.Begin();
  settlement.NoteUnread(pools, {.namespace_ = "", .name = "rack1"});
  settlement.Listed();
  EXPECT_FALSE(settlement.all_heard());
  EXPECT_EQ(settlement.Awaited(), "rack1 (cannot be read)");
  EXPECT_FALSE(settlement.HasUnread());  // no object
  EXPECT_TRUE(settlement.ForgetUnread(pools, {.namespace_ = "", .name = "rack1"}));
  EXPECT_FALSE(settlement.ForgetUnread(pools, {.namespace_ = "", .name = "rack1"}));
  EXPECT_TRUE(settlement.all_heard());
}

TEST(Settlement, Seq20_OnlyACopyThatNobodyKnowsAndAnUnreadableObjectTogetherAreADoubt) {
  const client::ObjectKey key{.namespace_ = "default", .name = "a"};
  Settlement settlement;
  settlement.Begin();
  settlement.NoteUnread(Machines(), key);
  settlement.Listed();
  EXPECT_TRUE(settlement.all_heard());
  EXPECT_FALSE(settlement.HasDoubt());
  settlement.Claim(
      "x", {.host = "h1", .pool_uid = "p1", .incarnation = 1, .placement = 9, .resources = {}});
  EXPECT_TRUE(settlement.HasDoubt());
  EXPECT_TRUE(settlement.IsOpen("x"));
  // It can be read, and is the one: its copy was kept in mind.
  EXPECT_TRUE(settlement.ForgetUnread(Machines(), key));
  settlement.Know("x", Machines(), key);
  EXPECT_FALSE(settlement.HasDoubt());
  EXPECT_EQ(settlement.UidAt(Machines(), key), "x");
  ASSERT_NE(Settlement::LatestOf(*settlement.Find("x")), nullptr);
  settlement.Find("x")->is_unread = true;
  EXPECT_TRUE(settlement.HasDoubt());
}

TEST(Settlement, Seq20_OnceAllWereHeardOnlyAHostWithAnOpenCopyMayHideSomething) {
  Settlement settlement;
  EXPECT_FALSE(settlement.MayHide("a"));
  settlement.Begin();
  EXPECT_TRUE(settlement.MayHide("a"));
  settlement.Await("p", "pool", "a");
  settlement.Listed();
  EXPECT_TRUE(settlement.MayHide("b"));
  settlement.NoteUnread(apis::compute::kMachineKind, {"default", "web"});
  settlement.Claim("u",
                   {.host = "a",
                    .pool_uid = "p",
                    .incarnation = 1,
                    .placement = 1,
                    .resources = {},
                    .consumers = {}});
  settlement.HostHeard("a");
  EXPECT_TRUE(settlement.MayHide("a"));
  EXPECT_FALSE(settlement.MayHide("b"));
  settlement.Close("u");
  EXPECT_FALSE(settlement.MayHide("a"));
}

// The store has it there, and whoever follows the store does not know yet.
TEST(Settlement, Seq20_C19_WhatIsBeingAdoptedIsHiddenUntilItsOwnChangeHasComeAlsoInTheEnd) {
  Settlement settlement;
  settlement.Begin();
  settlement.Know("u", Machines(), {.namespace_ = "default", .name = "web"});
  settlement.Listed();
  settlement.Claim("u", {.host = "a", .pool_uid = "p", .incarnation = 1, .placement = 1});
  settlement.Find("u")->adopted_from = 0;
  settlement.Finish();
  EXPECT_TRUE(settlement.MayHide("a"));
  EXPECT_FALSE(settlement.MayHide("b"));
  settlement.Close("u");
  EXPECT_FALSE(settlement.MayHide("a"));
}

TEST(Settlement, Seq20_InTheEndNobodyIsOpenWhomTheStoreDoesNotKnow) {
  Settlement settlement;
  settlement.Begin();
  settlement.NoteUnread(Machines(), {.namespace_ = "default", .name = "a"});
  settlement.Listed();
  settlement.Claim("x", {.host = "h1", .pool_uid = "p1", .placement = 9, .resources = {}});
  settlement.Finish();
  EXPECT_FALSE(settlement.IsOpen("x"));
  EXPECT_TRUE(settlement.AllUnread().empty());
}

TEST(Settlement, Seq20_TheLatestPlacementIsTheRightOne) {
  Settlement settlement;
  settlement.Begin();
  settlement.Know("a", Machines(), {.namespace_ = "default", .name = "a"});
  settlement.Listed();
  EXPECT_EQ(Settlement::LatestOf(*settlement.Find("a")), nullptr);
  settlement.Claim("a",
                   {.host = "h1",
                    .pool_uid = "p1",
                    .incarnation = 1,
                    .placement = 9,
                    .resources = {},
                    .consumers = {}});
  settlement.Claim("a",
                   {.host = "h2",
                    .pool_uid = "p2",
                    .incarnation = 2,
                    .placement = 3,
                    .resources = {},
                    .consumers = {}});
  settlement.Claim("a",
                   {.host = "h3",
                    .pool_uid = "p3",
                    .incarnation = 2,
                    .placement = 1,
                    .resources = {},
                    .consumers = {}});
  EXPECT_EQ(Settlement::LatestOf(*settlement.Find("a"))->pool_uid, "p2");
  // A host that comes back says it again.
  settlement.Claim("a",
                   {.host = "h3",
                    .pool_uid = "p3",
                    .incarnation = 2,
                    .placement = 5,
                    .resources = {},
                    .consumers = {}});
  EXPECT_EQ(settlement.Find("a")->copies.size(), 3U);
  EXPECT_EQ(Settlement::LatestOf(*settlement.Find("a"))->pool_uid, "p3");
  settlement.Close("a");
  EXPECT_FALSE(settlement.IsOpen("a"));
}

}  // namespace
}  // namespace berth::gateway
