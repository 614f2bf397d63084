// SPDX-License-Identifier: Apache-2.0
// What hosts have and the store does not know: shown, adopted without a moment in which the host is
// told to stop it; and the operator's word for deletions, which counts once (PROTOCOL 4.3).
#include <gtest/gtest.h>

#include <algorithm>

#include "apis/adoption.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

constexpr std::string_view kLost = "0d1e2f30-4152-4637-8495-a6b7c8d9eafb";

class OrphansTest : public testing::Test {
 protected:
  OrphansTest() { world_.Enrol("a"); }

  // As the API server creates what is to be adopted.
  meta::Object Adopt(const std::string& name) {
    meta::Object machine = apiserver::PlacementWorld::Machine(name);
    apis::PoolRefOf(machine) = apis::core::LocalObjectReference{.name = "pool"};
    apiserver::WriteContext context;
    context.adopted_uid = kLost;
    const auto made = world_.Run(world_.registry().Create(std::move(machine), context));
    CHECK(made.ok()) << made.status();
    return world_.Read(apiserver::PlacementWorld::Machine(name));
  }
  // What the host remembers of an earlier history, or of this one.
  void Remember(uint64_t incarnation, uint64_t placement) {
    agent::Known& known = host_.known[std::string(kLost)];
    known.set_uid(std::string(kLost));
    known.set_incarnation(incarnation);
    known.set_placement(placement);
    known.set_hash("h");
  }

  GatewayWorld world_;
  TestHost host_{world_, "a"};
};

TEST_F(OrphansTest, R4_3_OrphansOfAPoolAreShownWithTheirNames) {
  const std::string pool = host_.Join("pool");
  ASSERT_NE(pool, "");
  EXPECT_TRUE(world_.gateway().OrphansOf(pool).empty());
  host_.Say([](agent::HostBatch& batch) {
    batch.set_orphans_changed(true);
    for (const std::string of : {"pool", "another"}) {
      agent::Orphan& orphan = *batch.add_orphans();
      orphan.set_pool(of);
      orphan.set_uid("u-" + of);
      orphan.set_kind("Machine");
      orphan.set_namespace_("default");
      orphan.set_name("web\n");
      orphan.set_state("Running");
    }
  });
  ASSERT_TRUE(world_.Until([&] { return !world_.gateway().OrphansOf(pool).empty(); }));
  const std::vector<fleet::Orphan> orphans = world_.gateway().OrphansOf(pool);
  ASSERT_EQ(orphans.size(), 1U) << "those of other pools are not its own";
  EXPECT_EQ(orphans[0].uid, "u-pool");
  EXPECT_EQ(orphans[0].kind, "Machine");
  EXPECT_EQ(orphans[0].namespace_, "default");
  EXPECT_EQ(orphans[0].name.find('\n'), std::string::npos);
  host_.Leave();
  world_.Until([&] { return world_.gateway().sessions() == 0; });
  EXPECT_TRUE(world_.gateway().OrphansOf(pool).empty()) << "nobody is there to show them";
}

// It would be locked out for good: it says the same whenever it comes.
TEST_F(OrphansTest, R5_8_AHostWithMoreOrphansThanAreKeptIsLetInAndTheFirstAreKept) {
  constexpr int kMany = static_cast<int>(kOrphansMax) * 3 / 2;
  ASSERT_TRUE(host_.Connect());
  agent::Announce chunk;
  *chunk.add_pools() = TestHost::PoolNamed("pool", {{"cpu", 8000}});
  for (int i = 0; i < kMany; ++i) {
    agent::Orphan& orphan = *chunk.add_orphans();
    orphan.set_pool("pool");
    orphan.set_uid("u-" + std::to_string(i));
    orphan.set_kind("Machine");
    if (i % 1000 != 999) continue;
    host_.Announce(chunk);
    chunk.Clear();
  }
  chunk.set_last(true);
  host_.Announce(chunk);
  ASSERT_TRUE(host_.WaitSynced()) << host_.refused();
  const std::vector<fleet::Orphan> orphans = world_.gateway().OrphansOf(host_.PoolUid("pool"));
  ASSERT_EQ(orphans.size(), kOrphansMax);
  EXPECT_EQ(orphans.front().uid, "u-0");
  EXPECT_EQ(orphans.back().uid, "u-" + std::to_string(kOrphansMax - 1));
  ASSERT_TRUE(world_.Until([&] { return world_.Condition("pool", "Orphans") != ""; }));
  const meta::Object pool = world_.Pool("pool");
  const auto& conditions = pool.as<apis::compute::MachinePool>().status.conditions;
  const auto said =
      std::ranges::find_if(conditions, [](const auto& item) { return item.type == "Orphans"; });
  ASSERT_NE(said, conditions.end());
  EXPECT_TRUE(said->message.starts_with("1024 or more left alone: ")) << said->message;
}

// Those of the pool may be beyond the cut.
TEST_F(OrphansTest, R4_3_OfAListThatWasCutNobodySaysThatItHoldsNothingOfAPool) {
  ASSERT_NE(host_.Join("pool"), "");
  const auto say = [this](size_t count) {
    host_.Say([count](agent::HostBatch& batch) {
      batch.set_orphans_changed(true);
      for (size_t i = 0; i < count; ++i) {
        agent::Orphan& orphan = *batch.add_orphans();
        orphan.set_pool("another");
        orphan.set_uid("u-" + std::to_string(i));
        orphan.set_kind("Machine");
      }
    });
  };
  const auto is_condemned = [this] {
    return world_.Pool("pool").metadata().annotations.contains(
        std::string(kPurgeOrphansAnnotation));
  };
  say(kOrphansMax + 1);
  EXPECT_TRUE(
      world_.Until([&] { return world_.Condition("pool", "Orphans") == "Unknown ListCut"; }));
  ASSERT_TRUE(world_
                  .Patch(world_.Pool("pool"),
                         R"({"metadata":{"annotations":{"berth.dev/purge-orphans":"*"}}})")
                  .ok());
  world_.Pass(Duration::Seconds(5));
  EXPECT_TRUE(is_condemned());
  say(kOrphansMax - 1);
  EXPECT_TRUE(world_.Until([&] { return !is_condemned(); }));
  EXPECT_EQ(world_.Condition("pool", "Orphans"), "False None");
}

TEST_F(OrphansTest, R4_3_AnAdoptedObjectIsNeverToldToStop) {
  Remember(1, 7);
  const std::string pool = host_.Join("pool");
  ASSERT_NE(pool, "");
  const meta::Object machine = Adopt("web");
  EXPECT_EQ(machine.metadata().uid, kLost);
  EXPECT_TRUE(apis::IsBeingAdopted(machine));
  EXPECT_GT(apis::EpochOf(machine), 7) << "above every number that this UID can have had";
  // The host comes again before it is bound: it is still left alone.
  ASSERT_EQ(host_.Join("pool"), pool);
  world_.Pass(Duration::Seconds(2));
  EXPECT_TRUE(host_.deletes().empty());
  EXPECT_TRUE(host_.confirms().empty());
  ASSERT_TRUE(world_.Bind(machine, "pool", pool).ok());
  ASSERT_TRUE(host_.WaitAssigns(1));
  const agent::Assign assign = host_.assigns().back();
  EXPECT_EQ(assign.uid(), kLost);
  EXPECT_EQ(assign.placement(), static_cast<uint64_t>(apis::EpochOf(machine)) + 1);
  EXPECT_TRUE(host_.deletes().empty());
  // From here on it is an object like any other, and may leave its pool.
  const meta::Object bound = world_.Read(machine);
  EXPECT_FALSE(apis::IsBeingAdopted(bound));
  EXPECT_FALSE(apis::PlacementOf(bound)->pinned);
  ASSERT_TRUE(
      world_.Unbind(bound, apis::EpochOf(bound), client::UnbindProof::kOperatorFenced).ok());
  EXPECT_FALSE(apis::IsBeingAdopted(world_.Read(machine)));
  ASSERT_TRUE(host_.WaitDeletes(1));
  EXPECT_EQ(host_.deletes()[0].why(), agent::Delete::MOVED);
}

TEST_F(OrphansTest, R4_3_AnAdoptionThatIsTakenBackLeavesTheOrphanAlone) {
  Remember(1, 7);
  ASSERT_NE(host_.Join("pool"), "");
  const meta::Object machine = Adopt("web");
  ASSERT_TRUE(world_.Delete(machine).ok());
  world_.Pass(Duration::Seconds(2));
  EXPECT_FALSE(world_.Exists(machine));
  EXPECT_TRUE(host_.deletes().empty());
}

TEST_F(OrphansTest, R4_3_AnApprovalIsOverWithTheLastDeletionThatItWasFor) {
  const std::string pool = host_.Join("pool");
  const meta::Object machine = world_.MakeMachine("web");
  ASSERT_TRUE(world_.Bind(machine, "pool", pool).ok());
  ASSERT_TRUE(host_.WaitAssigns(1));
  ASSERT_TRUE(world_.Delete(machine).ok());
  ASSERT_TRUE(host_.WaitDeletes(1));
  ASSERT_TRUE(world_
                  .Patch(world_.Pool("pool"),
                         R"({"metadata":{"annotations":{"berth.dev/approve-deletions":"true"}}})")
                  .ok());
  ASSERT_TRUE(host_.WaitDeletes(2));
  EXPECT_TRUE(host_.deletes()[1].approved());
  world_.Pass(Duration::Seconds(5));
  EXPECT_FALSE(world_.Pool("pool").metadata().annotations.empty()) << "it is not done yet";
  host_.SayGone(machine.metadata().uid, 1);
  EXPECT_TRUE(world_.Until([&] { return world_.Pool("pool").metadata().annotations.empty(); }));
}

TEST_F(OrphansTest, R4_3_AnApprovalCoversWhatWasBoundElsewhereMeanwhile) {
  world_.Enrol("b");
  TestHost other(world_, "b");
  const std::string elsewhere = other.Join("other");
  const meta::Object machine = world_.MakeMachine("web");
  ASSERT_TRUE(world_.Bind(machine, "other", elsewhere).ok());
  ASSERT_TRUE(world_.Unbind(machine, 1, client::UnbindProof::kOperatorFenced).ok());
  ASSERT_TRUE(world_.Bind(world_.Read(machine), "other", elsewhere).ok());
  // The host has it from before.
  agent::Known& known = host_.known[machine.metadata().uid];
  known.set_uid(machine.metadata().uid);
  known.set_incarnation(1);
  known.set_placement(1);
  ASSERT_NE(host_.Join("pool"), "");
  ASSERT_TRUE(host_.WaitDeletes(1));
  EXPECT_FALSE(host_.deletes()[0].approved());
  ASSERT_TRUE(world_
                  .Patch(world_.Pool("pool"),
                         R"({"metadata":{"annotations":{"berth.dev/approve-deletions":"true"}}})")
                  .ok());
  ASSERT_TRUE(host_.WaitDeletes(2));
  EXPECT_TRUE(host_.deletes()[1].approved());
  EXPECT_EQ(host_.deletes()[1].placement(), 1U);
  EXPECT_EQ(world_.Read(machine).as<apis::compute::Machine>().status.placement->epoch, 3);
}

}  // namespace
}  // namespace berth::gateway
