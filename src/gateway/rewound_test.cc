// SPDX-License-Identifier: Apache-2.0
// After a restore: what hosts run by placements that the store has lost (PROTOCOL 2.4, sequence
// 20). Hosts say numbers and proofs of the lost history; the store is what the backup had.
#include <gtest/gtest.h>

#include "gateway/gateway_world.h"
#include "gateway/testing/late_client.h"
#include "pki/digest.h"

namespace berth::gateway {
namespace {

using apis::compute::Machine;

class RewoundTest : public testing::Test {
 protected:
  RewoundTest() {
    world_.Enrol("a");
    world_.Enrol("b");
    pool_a_ = a_.Join("alpha");
    pool_b_ = b_.Join("beta");
    machine_ = world_.MakeMachine("web");
    uid_ = machine_.metadata().uid;
  }
  // The store becomes one that a restore has rewound; hosts have to come back by themselves.
  void Restore() {
    a_.Leave();
    b_.Leave();
    world_.StopGateway();
    ++world_.identity().incarnation;
    world_.identity().is_rewound = true;
    world_.StartGateway();
  }
  enum class Lease : uint8_t { kNone, kHeld };
  // As the host's record has it, from before the restore.
  agent::Known Copy(uint64_t placement, const std::string& pool_uid, Lease lease) {
    agent::Known known;
    known.set_uid(uid_);
    known.set_incarnation(1);
    known.set_placement(placement);
    known.set_hash("an old body");
    known.set_pool_uid(pool_uid);
    known.set_leased(lease == Lease::kHeld);
    (*known.mutable_resources())["cpu"] = 1000;
    const std::string key = world_.authority().DeriveSecret("berth placement proof");
    const std::string words = uid_ + "/1/" + std::to_string(placement) + "/" + pool_uid;
    known.set_proof(pki::HmacSha256(key, words).substr(0, 16));
    return known;
  }
  std::string PoolNow() {
    const meta::Object now = world_.Read(machine_);
    const auto& placement = now.as<Machine>().status.placement;
    return placement ? placement->pool : "";
  }
  static bool IsSettled(const TestHost& host) {
    return host.Any(
        [](const auto& message) { return message.has_synced() && !message.synced().open(); });
  }
  // What the fleet says to an offer of the machine.
  std::string Ask(const std::string& pool_uid) {
    fleet::Offer offer;
    offer.id = {.term = 1, .number = ++offers_};
    offer.item = {.pool_uid = pool_uid, .uid = uid_, .placement = 1, .class_name = "small"};
    offer.hold_ttl = Duration::Seconds(10);
    std::string reason;
    world_.gateway().Ask(offer, Duration::Millis(300), [&reason](const fleet::Answer& answer) {
      reason = answer.reason;
    });
    EXPECT_TRUE(world_.Until([&reason] { return !reason.empty(); }));
    return reason;
  }

  std::optional<LateClient> late_;  // machines are
  GatewayWorld world_;
  TestHost a_{world_, "a"};
  TestHost b_{world_, "b"};
  std::string pool_a_;
  std::string pool_b_;
  meta::Object machine_;
  std::string uid_;
  uint64_t offers_ = 0;
};

TEST_F(RewoundTest, Seq20_WhatIsNowhereComesToItsPoolOnlyWhenAllHostsWereHeard) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  Restore();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  world_.Pass(Duration::Seconds(30));
  EXPECT_TRUE(a_.assigns().empty());
  EXPECT_FALSE(IsSettled(a_));
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(a_.WaitAssigns(1));
  EXPECT_EQ(a_.assigns()[0].incarnation(), 2);
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_) && IsSettled(b_); }));
  EXPECT_TRUE(b_.assigns().empty());
}

TEST_F(RewoundTest, Seq20_WhatCameToAHostAfterTheBackupIsAdoptedThere) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  Restore();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  b_.known[uid_] = Copy(3, pool_b_, Lease::kNone);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(b_.WaitAssigns(1));
  EXPECT_EQ(PoolNow(), "beta");
  EXPECT_EQ(b_.assigns()[0].incarnation(), 2);
  EXPECT_TRUE(b_.deletes().empty());
  EXPECT_TRUE(a_.assigns().empty());
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_); }));
}

// The store says that beta is empty: gone at once, the host would take the machine with it.
TEST_F(RewoundTest, Seq20_C19_ADrainBeginsWhenItIsKnownWhatTheHostHas) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  Restore();
  b_.known[uid_] = Copy(3, pool_b_, Lease::kHeld);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  agent::HostMessage goodbye;
  goodbye.mutable_goodbye()->set_mode(agent::Goodbye::DRAIN);
  b_.Send(goodbye);
  world_.Pass(Duration::Seconds(10));
  const auto has_farewell = [this] {
    return b_.Any([](const auto& message) { return message.has_farewell(); });
  };
  const auto is_requested = [this] {
    return world_.Pool("beta").metadata().annotations.contains(
        std::string(apis::core::kDrainRequestedAnnotation));
  };
  EXPECT_FALSE(has_farewell());
  EXPECT_FALSE(is_requested());
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  EXPECT_TRUE(world_.Until(is_requested));
  EXPECT_EQ(PoolNow(), "beta");
  world_.Pass(Duration::Seconds(2));
  EXPECT_FALSE(has_farewell()) << "the machine is there still";
}

// It is adopted, and settled, before the gateway sees its own change: the pool looks empty still.
TEST_F(RewoundTest, Seq20_C19_ADrainWaitsAlsoWhileTheGatewayIsBehindTheStore) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  late_.emplace(world_.client(), apis::compute::kMachineKind);
  world_.between = &*late_;
  Restore();
  b_.known[uid_] = Copy(3, pool_b_, Lease::kHeld);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  agent::HostMessage goodbye;
  goodbye.mutable_goodbye()->set_mode(agent::Goodbye::DRAIN);
  b_.Send(goodbye);
  world_.Pass(Duration::Seconds(2));
  late_->Hold();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  ASSERT_TRUE(world_.Until([this] { return IsSettled(b_); }));
  EXPECT_EQ(PoolNow(), "beta");
  const auto has_farewell = [this] {
    return b_.Any([](const auto& message) { return message.has_farewell(); });
  };
  const auto is_requested = [this] {
    return world_.Pool("beta").metadata().annotations.contains(
        std::string(apis::core::kDrainRequestedAnnotation));
  };
  world_.Pass(Duration::Seconds(5));
  EXPECT_FALSE(has_farewell());
  EXPECT_FALSE(is_requested());
  late_->Release();
  EXPECT_TRUE(world_.Until(is_requested));
  world_.Pass(Duration::Seconds(2));
  EXPECT_FALSE(has_farewell()) << "the machine is there still";
}

TEST_F(RewoundTest, Seq20_WhatWasPlacedAfterTheBackupIsAdoptedBeforeOthersAreHeard) {
  Restore();
  b_.known[uid_] = Copy(1, pool_b_, Lease::kNone);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(b_.WaitAssigns(1));
  EXPECT_EQ(PoolNow(), "beta");
  EXPECT_FALSE(IsSettled(b_));  // host a may have other things
}

TEST_F(RewoundTest, Seq20_OfLeasedCopiesTheLatestStaysAndRunsOnWhileItIsFoundOut) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  Restore();
  a_.known[uid_] = Copy(1, pool_a_, Lease::kHeld);
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  world_.Pass(Duration::Seconds(5));
  // Its lease goes on, if it runs; it is not begun.
  EXPECT_TRUE(a_.assigns().empty());
  ASSERT_EQ(a_.confirms().size(), 1U);
  EXPECT_TRUE(a_.confirms()[0].keep_only());
  b_.known[uid_] = Copy(3, pool_b_, Lease::kHeld);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(b_.WaitAssigns(1));
  EXPECT_EQ(PoolNow(), "beta");
  ASSERT_TRUE(a_.WaitDeletes(1));
  EXPECT_EQ(a_.deletes()[0].why(), agent::Delete::MOVED);
  EXPECT_TRUE(a_.assigns().empty());
}

TEST_F(RewoundTest, Seq20_NothingIsOfferedMovedOrRemovedBefore) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  Restore();
  EXPECT_EQ(Ask(pool_b_), "NotSettled");
  EXPECT_FALSE(world_.gateway().ClaimMove(uid_, 1));
  ASSERT_TRUE(world_.Delete(machine_, client::Force::kNo).ok());
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  world_.Pass(Duration::Seconds(5));
  EXPECT_TRUE(a_.deletes().empty());
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(a_.WaitDeletes(1));
}

TEST_F(RewoundTest, Seq20_WhatIsMadeAfterTheRestoreDoesNotWait) {
  Restore();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  const meta::Object fresh = world_.MakeMachine("fresh");
  ASSERT_TRUE(world_.Bind(fresh, "alpha", pool_a_).ok());
  EXPECT_TRUE(a_.WaitAssigns(1));
}

TEST_F(RewoundTest, Seq20_AnOperatorsWordOrARemovedPoolStandsForAHost) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  Restore();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  EXPECT_FALSE(IsSettled(a_));
  ASSERT_TRUE(
      world_
          .Run(world_.client().Patch(apis::compute::kMachinePoolKind,
                                     {.namespace_ = "", .name = "beta"},
                                     client::PatchType::kMerge,
                                     R"({"metadata":{"annotations":{"berth.dev/off":"true"}}})",
                                     {}))
          .ok());
  EXPECT_TRUE(a_.WaitAssigns(1));
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_); }));
  // It was on after all, and the store's word is good by now: what it has goes.
  b_.known[uid_] = Copy(3, pool_b_, Lease::kNone);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(b_.WaitDeletes(1));
  EXPECT_FALSE(world_.Pool("beta").metadata().annotations.contains("berth.dev/off"));
}

TEST_F(RewoundTest, Seq20_AHostCannotClaimWhatItWasNeverGiven) {
  Restore();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  agent::Known forged = Copy(7, pool_b_, Lease::kNone);
  forged.set_placement(9);  // another number than was proven
  b_.known[uid_] = forged;
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_); }));
  world_.Pass(Duration::Seconds(2));
  EXPECT_TRUE(b_.assigns().empty());
  EXPECT_EQ(PoolNow(), "");
}

TEST_F(RewoundTest, Seq20_WhatRunsOnAHostWhosePoolIsLostWaitsForThatHost) {
  Restore();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  world_.Enrol("c");
  TestHost stranger(world_, "c");
  stranger.known[uid_] = Copy(1, "a pool that was made after the backup", Lease::kNone);
  EXPECT_EQ(stranger.Join("beta"), "") << "it is another host's in this store";
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  world_.Pass(Duration::Seconds(5));
  EXPECT_EQ(Ask(pool_a_), "NotSettled");
  stranger.Leave();
  const std::string gamma = stranger.Join("gamma");
  ASSERT_TRUE(stranger.WaitAssigns(1));
  EXPECT_EQ(stranger.assigns()[0].pool_uid(), gamma);
  EXPECT_EQ(PoolNow(), "gamma");
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_); }));
}

}  // namespace
}  // namespace berth::gateway
