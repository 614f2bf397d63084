// SPDX-License-Identifier: Apache-2.0
// What an announcement makes of a pool, and what it cannot (PROTOCOL 5.1, 5.2, 5.5).
#include <gtest/gtest.h>

#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

class PoolsTest : public testing::Test {
 protected:
  apis::compute::MachinePool Pool(const std::string& name) {
    return world_.Pool(name).as<apis::compute::MachinePool>();
  }
  GatewayWorld world_;
};

TEST_F(PoolsTest, R5_1_TheFirstAnnouncementMakesThePoolAndRecordsItsMode) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  const std::string uid = host.Join("pool-a", {{"cpu", 8000}, {"memory", 1 << 30}});
  ASSERT_NE(uid, "");
  const auto pool = Pool("pool-a");
  EXPECT_EQ(pool.metadata.uid, uid);
  EXPECT_EQ(pool.spec.host_ref->name, "a");
  EXPECT_EQ(pool.spec.provider_id, "test://pool-a");
  EXPECT_EQ(pool.status.agent->mode, "Session");
  EXPECT_EQ(pool.status.agent->version, "test");
  EXPECT_FALSE(pool.status.agent->session_since.is_zero());
  EXPECT_EQ(pool.status.capacity.at("cpu"), meta::Quantity(8));
  EXPECT_EQ(pool.status.capacity.at("class/machine.small"), meta::Quantity(8));
  EXPECT_EQ(pool.status.available_machine_classes.at(0).name, "small");
  EXPECT_EQ(pool.status.state, "Ready");
  EXPECT_EQ(world_.Condition("pool-a", "Ready"), "True Connected");
}

TEST_F(PoolsTest, R5_2_ASecondHostCannotHaveThePool) {
  world_.Enrol("a");
  world_.Enrol("b");
  TestHost first(world_, "a");
  TestHost second(world_, "b");
  ASSERT_NE(first.Join("pool"), "");
  EXPECT_EQ(second.Join("pool"), "");
  EXPECT_NE(second.PoolRefusal("pool").find("belongs to host a"), std::string::npos);
  EXPECT_EQ(Pool("pool").spec.host_ref->name, "a");
  // Nor may it speak of it.
  second.Say([&](agent::HostBatch& batch) {
    batch.add_facts()->set_pool_uid(first.PoolUid("pool"));
    (*batch.mutable_facts(0)->mutable_facts()->mutable_capacity())["cpu"] = 1;
  });
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(Pool("pool").status.capacity.at("cpu"), meta::Quantity(8));
}

TEST_F(PoolsTest, R5_1_APoolOfTheApiIsNotTakenOver) {
  world_.MakePool("legacy", 4, apis::core::kPoolModeApi);
  world_.Enrol("a");
  TestHost host(world_, "a");
  EXPECT_EQ(host.Join("legacy"), "");
  EXPECT_NE(host.PoolRefusal("legacy").find("uses the API"), std::string::npos);
}

TEST_F(PoolsTest, R5_5_LabelsTaintsAndLimitsComeFromTheTokenNotFromTheHost) {
  world_.Enrol("a",
               {.labels = {{"tier", "bronze"}},
                .taints = {"dedicated=db:NoSchedule"},
                .limits = {{"cpu", "4"}}});
  TestHost host(world_, "a");
  ASSERT_TRUE(host.Connect());
  agent::Announce announce;
  agent::PoolAnnounce& pool = *announce.add_pools();
  pool = TestHost::PoolNamed("pool", {{"cpu", 10'000'000}, {"memory", 1 << 20}});
  (*pool.mutable_facts())["tier"] = "secure";
  (*announce.mutable_host()->mutable_labels())["facts.berth.dev/rack"] = "r1\x1b[31m";
  announce.set_last(true);
  host.Announce(announce);
  ASSERT_TRUE(host.WaitSynced());
  const auto made = Pool("pool");
  EXPECT_EQ(made.metadata.labels, (std::map<std::string, std::string>{{"tier", "bronze"}}));
  ASSERT_EQ(made.spec.taints.size(), 1);
  EXPECT_EQ(made.spec.taints[0].key, "dedicated");
  EXPECT_EQ(made.spec.limits.at("cpu"), meta::Quantity(4));
  EXPECT_EQ(made.status.capacity.at("cpu"), meta::Quantity(4));
  EXPECT_EQ(made.status.facts.at("tier"), "secure");
  EXPECT_EQ(made.status.facts.at("facts.berth.dev/rack").find('\x1b'), std::string::npos);
  const auto facts = world_.gateway().Pools();
  ASSERT_EQ(facts.size(), 1);
  EXPECT_EQ(facts[0].capacity.at("cpu"), 4000);
}

TEST_F(PoolsTest, ThePoolThatAnOperatorMadeKeepsWhatItIs) {
  apis::compute::MachinePool mine;
  mine.metadata.name = "pool";
  mine.metadata.labels = {{"tier", "gold"}};
  world_.Must(world_.Run(world_.client().Create(
      meta::Object::Of(apis::compute::kMachinePoolKind, std::move(mine)), {})));
  world_.Enrol("a", {.labels = {{"tier", "bronze"}, {"zone", "z"}}});
  TestHost host(world_, "a");
  ASSERT_NE(host.Join("pool"), "");
  const std::map<std::string, std::string> expected = {{"tier", "gold"}, {"zone", "z"}};
  EXPECT_EQ(Pool("pool").metadata.labels, expected);
  EXPECT_EQ(Pool("pool").spec.host_ref->name, "a");
}

TEST_F(PoolsTest, KindsAndNamesOutsideTheTokenAreRefused) {
  world_.Enrol("a", {.pool_pattern = "rack1-*", .pool_kinds = {"VolumePool"}});
  TestHost host(world_, "a");
  EXPECT_EQ(host.Join("rack1-a"), "");
  EXPECT_NE(host.PoolRefusal("rack1-a").find("kind"), std::string::npos);
  world_.Enrol("b", {.pool_pattern = "rack1-*"});
  TestHost other(world_, "b");
  EXPECT_EQ(other.Join("rack2-a"), "");
  EXPECT_NE(other.PoolRefusal("rack2-a").find("rack1-*"), std::string::npos);
  EXPECT_EQ(other.Join("Not A Name"), "");
}

TEST_F(PoolsTest, WhatARuntimeSaysLateOfItselfIsShownWithinTheSameLimits) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  ASSERT_TRUE(host.Connect());
  agent::Announce announce;
  agent::PoolAnnounce& pool = *announce.add_pools();
  pool = TestHost::PoolNamed("pool", {{"cpu", 8000}});
  (*pool.mutable_facts())["runtime"] = "";
  (*pool.mutable_facts())["acceleration"] = "kvm";
  announce.mutable_host()->set_kernel("6.1");
  announce.set_last(true);
  host.Announce(announce);
  ASSERT_TRUE(host.WaitSynced());
  const auto say = [&](const std::map<std::string, std::string>& words) {
    host.Say([&](agent::HostBatch& batch) {
      agent::PoolFacts& facts = *batch.add_facts();
      facts.set_pool_uid(host.PoolUid("pool"));
      facts.set_runtime_facts_changed(true);
      for (const auto& [key, value] : words) (*facts.mutable_runtime_facts())[key] = value;
    });
    // Figures that come right behind it forget nothing.
    host.Say(
        [&](agent::HostBatch& batch) { batch.add_facts()->set_pool_uid(host.PoolUid("pool")); });
    world_.Pass(Duration::Seconds(1));
  };
  say({{"hypervisor", "9.0\x1b[31m"},
       {"runtime", "machines"},
       {"kernel", "mine"},
       {"not a name", ""}});
  auto facts = Pool("pool").status.facts;
  EXPECT_TRUE(facts.at("hypervisor").starts_with("9.0"));
  EXPECT_EQ(facts.at("hypervisor").find('\x1b'), std::string::npos);
  EXPECT_EQ(facts.at("runtime"), "machines");
  EXPECT_EQ(facts.at("acceleration"), "kvm") << "as it was announced";
  EXPECT_EQ(facts.at("kernel"), "6.1") << "the host's own word";
  EXPECT_EQ(facts.size(), 4U);
  for (int round = 0; round < 4; ++round) {
    std::map<std::string, std::string> many;
    for (int i = 0; i < 100; ++i) {
      many["f" + std::to_string(round) + "-" + std::to_string(i)] = "x";
    }
    say(many);
  }
  facts = Pool("pool").status.facts;
  EXPECT_EQ(facts.size(), kPoolFactsMax);
  EXPECT_EQ(facts.at("kernel"), "6.1");
}

TEST_F(PoolsTest, D5_NewFactsReachTheSchedulerAtOnceAndTheStoreIfCapacityChanged) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  const std::string uid = host.Join("pool");
  ASSERT_NE(uid, "");
  host.Say([&](agent::HostBatch& batch) {
    batch.add_facts()->set_pool_uid(uid);
    (*batch.mutable_facts(0)->mutable_facts()->mutable_capacity())["cpu"] = 6000;
    (*batch.mutable_facts(0)->mutable_facts()->mutable_allocated())["cpu"] = 1500;
  });
  EXPECT_TRUE(world_.Until(
      [&] { return world_.gateway().Pools().at(0).allocated == fleet::Vector{{"cpu", 1500}}; }));
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(Pool("pool").status.capacity.at("cpu"), meta::Quantity(6));
  EXPECT_EQ(Pool("pool").status.capacity.at("class/machine.small"), meta::Quantity(8));
  EXPECT_EQ(Pool("pool").status.allocatable.at("cpu"), meta::Quantity::Milli(4500));
}

TEST_F(PoolsTest, APoolWhoseRuntimeIsAwayIsNotAskedAndSaysWhy) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  const std::string uid = host.Join("pool");
  ASSERT_NE(uid, "");
  const auto say = [&](const std::string& problem) {
    host.Say([&](agent::HostBatch& batch) {
      batch.add_facts()->set_pool_uid(uid);
      batch.mutable_facts(0)->set_problem(problem);
      (*batch.mutable_facts(0)->mutable_facts()->mutable_capacity())["cpu"] = 8000;
    });
    world_.Pass(Duration::Seconds(1));
  };
  say("the machine runtime does not answer");
  EXPECT_TRUE(world_.gateway().Pools().empty());
  EXPECT_EQ(world_.Condition("pool", "Ready"), "False Runtime");
  say("");
  EXPECT_EQ(world_.gateway().Pools().size(), 1);
  EXPECT_EQ(world_.Condition("pool", "Ready"), "True Connected");
}

TEST_F(PoolsTest, OrphansAndTheFencerAreShownAsConditions) {
  world_.Enrol("a");
  TestHost host(world_, "a");
  const std::string uid = host.Join("pool");
  ASSERT_NE(uid, "");
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(world_.Condition("pool", "Orphans"), "False None");
  EXPECT_EQ(world_.Condition("pool", "FenceReady"), "False NotArmed");
  host.Say([&](agent::HostBatch& batch) {
    batch.set_orphans_changed(true);
    agent::Orphan& orphan = *batch.add_orphans();
    orphan.set_pool("pool");
    orphan.set_uid("u1");
    orphan.set_kind("Machine");
    orphan.set_name("lost");
    batch.add_facts()->set_pool_uid(uid);
    batch.mutable_facts(0)->mutable_facts()->set_fence_ready(true);
    (*batch.mutable_facts(0)->mutable_facts()->mutable_capacity())["cpu"] = 8000;
  });
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(world_.Condition("pool", "Orphans"), "True Quarantined");
  EXPECT_EQ(world_.Condition("pool", "FenceReady"), "True Armed");
  // The operator condemns it; the host is told; the annotation goes when it is gone.
  ASSERT_TRUE(world_
                  .Patch(world_.Pool("pool"),
                         R"({"metadata":{"annotations":{"berth.dev/purge-orphans":"u1"}}})")
                  .ok());
  EXPECT_TRUE(world_.Until([&] {
    return host.Any([](const auto& message) { return message.batch().orphans_size() > 0; });
  }));
  host.Say([&](agent::HostBatch& batch) { batch.set_orphans_changed(true); });
  EXPECT_TRUE(world_.Until([&] { return Pool("pool").metadata.annotations.empty(); }));
  EXPECT_EQ(world_.Condition("pool", "Orphans"), "False None");
}

}  // namespace
}  // namespace berth::gateway
