// SPDX-License-Identifier: Apache-2.0
// Adoption: the store learns from a host where something runs (PROTOCOL 2.4, sequence 20).
#include <gtest/gtest.h>

#include <limits>

#include "apiserver/registry/cluster_identity.h"
#include "apiserver/registry/placement_world.h"
#include "store/fenced/fenced_store.h"

namespace berth::apiserver {
namespace {

client::Adoption AdoptionOf(const meta::Object& object,
                            int64_t placement,
                            const std::string& pool,
                            const std::string& pool_uid) {
  return {.kind = &object.kind(),
          .key = {object.metadata().namespace_, object.metadata().name},
          .uid = object.metadata().uid,
          .placement = placement,
          .pool = pool,
          .pool_uid = pool_uid,
          .resources = {{"cpu", kCpuOfMachine}}};
}

Status Adopt(PlacementWorld& world, client::Adoption adoption) {
  return world.Run(world.registry().rewound().AdoptBatch(std::vector{std::move(adoption)})).front();
}

TEST(Rewound, Seq20_AnObjectIsBoundToWhereItRunsWhateverItWasBoundTo) {
  PlacementWorld world;
  const std::string alpha = world.MakePool("alpha", 1);
  const std::string beta = world.MakePool("beta", 1);
  const meta::Object moved = world.MakeMachine("moved");
  const meta::Object placed = world.MakeMachine("placed");
  ASSERT_TRUE(world.Bind(moved, "alpha", alpha).ok());
  ASSERT_TRUE(Adopt(world, AdoptionOf(moved, 1, "beta", beta)).ok());
  const auto placement = apis::PlacementOf(world.Read(moved));
  EXPECT_EQ(placement->pool, "beta");
  EXPECT_EQ(placement->pool_uid, beta);
  EXPECT_EQ(placement->epoch, 2);
  EXPECT_EQ(apis::PoolRefOf(world.Read(moved))->name, "beta");
  EXPECT_EQ(world.Guard(alpha)->count, 0);
  EXPECT_EQ(world.Guard(beta)->count, 1);
  // One that was never bound. It runs there: that there is no room for it does not matter, but
  // counts from now on.
  ASSERT_TRUE(Adopt(world, AdoptionOf(placed, 0, "beta", beta)).ok());
  EXPECT_EQ(world.Guard(beta)->allocated.at("cpu"), 2 * kCpuOfMachine);
  EXPECT_FALSE(world.Bind(world.MakeMachine("third"), "beta", beta).ok());
  // Neither leaves a tombstone: nobody has to remove anything.
  EXPECT_TRUE(world.Run(world.registry().tombstones().ListTombstones(alpha))->empty());
}

// Amounts of a host's own invention, of something that its pool does not count.
TEST(Rewound, Seq20_WhatAHostSaysThatItHasIsNeverTooLargeForANumber) {
  PlacementWorld world;
  const std::string beta = world.MakePool("beta", 1);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const char* name : {"one", "two"}) {
    client::Adoption adoption = AdoptionOf(world.MakeMachine(name), 0, "beta", beta);
    adoption.resources = {{"invented", kMost}};
    ASSERT_TRUE(Adopt(world, adoption).ok());
    EXPECT_EQ(world.Guard(beta)->allocated.at("invented"), kMost);
  }
  EXPECT_EQ(world.Guard(beta)->count, 2);
}

TEST(Rewound, Seq20_AdoptionIsOfTheStateThatWasDecidedOn) {
  PlacementWorld world;
  const std::string alpha = world.MakePool("alpha", 2);
  const std::string beta = world.MakePool("beta", 2);
  const meta::Object machine = world.MakeMachine("m");
  ASSERT_TRUE(world.Bind(machine, "alpha", alpha).ok());
  EXPECT_EQ(Adopt(world, AdoptionOf(machine, 0, "beta", beta)).reason(), Reason::kConflict);
  EXPECT_EQ(Adopt(world, AdoptionOf(machine, 1, "beta", "of another")).reason(), Reason::kNotFound);
  client::Adoption other = AdoptionOf(machine, 1, "beta", beta);
  other.uid = "of an earlier one of this name";
  EXPECT_EQ(Adopt(world, other).reason(), Reason::kNotFound);
  EXPECT_EQ(apis::PlacementOf(world.Read(machine))->pool, "alpha");
  EXPECT_EQ(world.Guard(alpha)->count, 1);
}

// No scheduler decides an adoption, so that no term of one is in its commit: what ends with the
// leader is ended by the fence that everything the leader writes goes through.
TEST(Rewound, Seq20_ADeposedLeaderAdoptsNothing) {
  PlacementWorld world;
  const std::string beta = world.MakePool("beta", 1);
  const meta::Object machine = world.MakeMachine("m");
  const auto lead = [&world](const std::string& who) {
    store::Txn txn;
    txn.ops.push_back(store::Op::Put("/guard/leader", Bytes(who)));
    auto led = world.Run(world.store().Commit(std::move(txn)));
    CHECK(led.ok() && led->committed);
    return store::Condition::Unchanged("/guard/leader", led->revision);
  };
  int fenced = 0;
  store::FencedStore store(world.store(), lead("old"), [&fenced] { ++fenced; });
  StoreRegistry old_leaders(world.loop(), store, world.cache(), world.scheme());
  (void)lead("new");
  const auto adopted = world.Run(
      old_leaders.rewound().AdoptBatch(std::vector{AdoptionOf(machine, 0, "beta", beta)}));
  EXPECT_EQ(adopted.front().reason(), Reason::kUnavailable) << adopted.front();
  EXPECT_GE(fenced, 1);
  EXPECT_FALSE(apis::IsBound(world.Read(machine)));
  EXPECT_TRUE(Adopt(world, AdoptionOf(machine, 0, "beta", beta)).ok()) << "the new one's";
}

TEST(Rewound, Seq20_ARewoundStoreIsSettledOnceAndStaysSo) {
  PlacementWorld world;
  ASSERT_FALSE(world.Run(CountStart(world.loop(), world.store()))->is_rewound);
  ASSERT_TRUE(world.Run(BeginIncarnation(world.loop(), world.store(), std::nullopt))->is_rewound);
  EXPECT_TRUE(world.Run(CountStart(world.loop(), world.store()))->is_rewound);
  ASSERT_TRUE(world.Run(world.registry().rewound().Settle()).ok());
  const auto after = world.Run(CountStart(world.loop(), world.store()));
  EXPECT_FALSE(after->is_rewound);
  EXPECT_EQ(after->incarnation, 2U);
}

}  // namespace
}  // namespace berth::apiserver
