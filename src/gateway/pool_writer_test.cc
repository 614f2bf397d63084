// SPDX-License-Identifier: Apache-2.0
// What the gateway has to say of a pool is written, however long the store is away, and what is not
// true any more is not (PROTOCOL 3.3, 3.6; C19).
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

class PoolWriterTest : public testing::Test {
 protected:
  PoolWriterTest() {
    world_.Enrol("a");
    uid_ = host_.Join("pool");
    CHECK(!uid_.empty());
    world_.Pass(Duration::Seconds(3));  // everything about its coming is written
  }
  void StopStore() { world_.SetFaults({.refuse = 1}); }
  void ResumeStore() { world_.SetFaults({}); }
  bool IsDrainRequested() {
    const meta::Object pool = world_.Pool("pool");
    return pool.as<apis::compute::MachinePool>().spec.unschedulable &&
           pool.metadata().annotations.contains(std::string(apis::core::kDrainRequestedAnnotation));
  }
  // With something on the pool it does not leave at once.
  void PlaceMachine() {
    const meta::Object machine = world_.MakeMachine("web");
    ASSERT_TRUE(world_.Bind(machine, "pool", uid_).ok());
    ASSERT_TRUE(host_.WaitAssigns(1));
  }
  void AskForDrain() {
    agent::HostMessage goodbye;
    goodbye.mutable_goodbye()->set_mode(agent::Goodbye::DRAIN);
    host_.Send(goodbye);
    world_.Pass(Duration::Seconds(1));
  }

  GatewayWorld world_;
  TestHost host_{world_, "a"};
  std::string uid_;
};

// The store is back: the longest pause between two attempts is 5 s.
constexpr Duration kSoon = Duration::Seconds(10);

TEST_F(PoolWriterTest, R3_6_SilenceIsWrittenThoughTheStoreWasAwayForAMinute) {
  StopStore();
  world_.network().Isolate("a");
  world_.Pass(Duration::Minutes(1));
  ResumeStore();
  EXPECT_TRUE(
      world_.Until([&] { return world_.Condition("pool", "Ready") == "Unknown Silent"; }, kSoon));
  world_.network().HealAll();
}

TEST_F(PoolWriterTest, C19_ADrainIsAskedForThoughTheStoreWasAwayForAMinute) {
  PlaceMachine();
  StopStore();
  AskForDrain();
  world_.Pass(Duration::Minutes(1));
  ResumeStore();
  EXPECT_TRUE(world_.Until([&] { return IsDrainRequested(); }, kSoon));
}

TEST_F(PoolWriterTest, OfEveryMatterTheNewestIsWrittenAndNoneIsForgottenForAnother) {
  PlaceMachine();
  StopStore();
  AskForDrain();
  for (int i = 1; i <= 100; ++i) {
    host_.Say([&](agent::HostBatch& batch) {
      agent::PoolFacts& facts = *batch.add_facts();
      facts.set_pool_uid(uid_);
      (*facts.mutable_facts()->mutable_capacity())["cpu"] = 8000 + i;
    });
    world_.Pass(Duration::Millis(50));
  }
  ResumeStore();
  EXPECT_TRUE(world_.Until([&] { return IsDrainRequested(); }, kSoon));
  EXPECT_TRUE(world_.Until(
      [&] {
        const meta::Object pool = world_.Pool("pool");
        return apis::ToAmounts(pool.as<apis::compute::MachinePool>().status.capacity).at("cpu") ==
               8100;
      },
      kSoon));
}

TEST_F(PoolWriterTest, R3_6_SilenceThatIsOverIsNotWrittenAnyMore) {
  host_.Leave();
  StopStore();
  world_.Pass(Duration::Minutes(1));
  ResumeStore();
  ASSERT_EQ(host_.Join("pool"), uid_);
  world_.Pass(kSoon);
  EXPECT_EQ(world_.Condition("pool", "Ready"), "True Connected");
}

TEST_F(PoolWriterTest, C19_ADrainThatWasTakenBackIsNotAskedForAnyMore) {
  PlaceMachine();
  StopStore();
  AskForDrain();
  host_.Leave();
  world_.Pass(Duration::Minutes(1));
  ResumeStore();
  ASSERT_EQ(host_.Join("pool"), uid_);
  world_.Pass(kSoon);
  EXPECT_FALSE(IsDrainRequested());
}

TEST_F(PoolWriterTest, WhatIsAboutAPoolThatIsGoneIsForgotten) {
  host_.Leave();
  StopStore();
  world_.Pass(Duration::Minutes(1));
  ResumeStore();
  const client::ObjectKey key{.namespace_ = "", .name = "pool"};
  ASSERT_TRUE(world_.Run(world_.client().Delete(apis::compute::kMachinePoolKind, key, {})).ok());
  const std::string anew = host_.Join("pool");
  EXPECT_NE(anew, "");
  EXPECT_NE(anew, uid_);
  world_.Pass(kSoon);
  EXPECT_EQ(world_.Condition("pool", "Ready"), "True Connected");
}

}  // namespace
}  // namespace berth::gateway
