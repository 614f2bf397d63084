// SPDX-License-Identifier: Apache-2.0
// Defends ADR 0038 after a restore: what cannot be read keeps no host out, what runs of it is
// neither moved nor begun a second time, and everything else goes on.
#include <gtest/gtest.h>

#include "apis/registry.h"
#include "apiserver/cache/keys.h"
#include "gateway/gateway_world.h"
#include "gateway/testing/late_client.h"
#include "pki/digest.h"

namespace berth::gateway {
namespace {

using apis::compute::kMachineKind;
using apis::compute::kMachinePoolKind;
using apis::compute::Machine;

class RewoundUnreadableTest : public testing::Test {
 protected:
  RewoundUnreadableTest() {
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
  // As a host's record has a machine that came there after the backup.
  agent::Known Copy(const std::string& uid, const std::string& pool_uid) {
    agent::Known known;
    known.set_uid(uid);
    known.set_incarnation(1);
    known.set_placement(3);
    known.set_hash("an old body");
    known.set_pool_uid(pool_uid);
    (*known.mutable_resources())["cpu"] = 1000;
    const std::string key = world_.authority().DeriveSecret("berth placement proof");
    known.set_proof(pki::HmacSha256(key, uid + "/1/3/" + pool_uid).substr(0, 16));
    return known;
  }
  agent::Known CopyOnB() { return Copy(uid_, pool_b_); }
  void Put(const std::string& key, Bytes value) {
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(key, std::move(value)));
    ASSERT_TRUE(world_.Run(world_.store().Commit(std::move(txn))).ok());
    ASSERT_TRUE(world_.Run(world_.cache().CatchUp()).ok());
  }
  Bytes ValueOf(const std::string& key) {
    store::RangeRequest request;
    request.start = key;
    const auto found = world_.Run(world_.store().Range(std::move(request)));
    CHECK(found.ok() && found->items.size() == 1) << key;
    return found->items[0].value;
  }
  static std::string KeyOfMachine() {
    return apiserver::StoreKey(kMachineKind, {"default", "web"});
  }
  // Both return what was there.
  Bytes SpoilHeader(const std::string& key) {
    const Bytes whole = ValueOf(key);
    std::string bytes(whole.view());
    bytes[0] = '\x7f';  // no format of ours
    Put(key, Bytes(bytes));
    return whole;
  }
  Bytes SpoilBody(const std::string& key) {
    const Bytes whole = ValueOf(key);
    std::string bytes(whole.view());
    bytes.replace(bytes.find("\"spec\""), 6, "\"spec!");
    Put(key, Bytes(bytes));
    return whole;
  }
  void DeleteByForce(const meta::KindInfo& kind, client::ObjectKey key) {
    client::DeleteOptions options;
    options.force = client::Force::kYes;
    const Status deleted = world_.Run(world_.client().Delete(kind, std::move(key), options));
    ASSERT_TRUE(deleted.ok()) << deleted;
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
  // A second machine, bound to pool alpha, that no host has.
  meta::Object MakeOther() {
    meta::Object other = world_.MakeMachine("other");
    EXPECT_TRUE(world_.Bind(other, "alpha", pool_a_).ok());
    return other;
  }

  std::optional<LateClient> late_;  // machines are
  GatewayWorld world_;
  TestHost a_{world_, "a"};
  TestHost b_{world_, "b"};
  std::string pool_a_;
  std::string pool_b_;
  meta::Object machine_;
  std::string uid_;
};

TEST_F(RewoundUnreadableTest, Seq20_NoiseKeepsNoHostOutAndDoesNotStayOpen) {
  for (const meta::KindInfo* kind : world_.scheme().kinds()) {
    if (!apis::IsPlaceable(*kind)) continue;
    Put(apiserver::StoreKey(*kind, {"default", "noise"}), Bytes("no object"));
  }
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  Restore();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(a_.WaitAssigns(1));
  // Every host was heard, and none has what the store does not know.
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_) && IsSettled(b_); }));
}

TEST_F(RewoundUnreadableTest, Seq20_WhatRunsAndCannotBeReadIsAdoptedWhenItIsMended) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  MakeOther();
  const Bytes whole = SpoilHeader(KeyOfMachine());
  Restore();
  b_.known[uid_] = CopyOnB();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(a_.WaitAssigns(1)) << "the other machine waits for nobody";
  world_.Pass(Duration::Seconds(30));
  EXPECT_FALSE(IsSettled(a_));
  EXPECT_TRUE(b_.deletes().empty());
  Put(KeyOfMachine(), whole);
  ASSERT_TRUE(b_.WaitAssigns(1));
  EXPECT_EQ(PoolNow(), "beta");
  EXPECT_EQ(a_.assigns().size(), 1U);
  EXPECT_TRUE(b_.deletes().empty());
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_); }, Duration::Seconds(20)));
}

TEST_F(RewoundUnreadableTest, Seq20_WhatWasNeverPlacedInTheStoreIsAdoptedToo) {
  const Bytes whole = SpoilHeader(KeyOfMachine());
  Restore();
  b_.known[uid_] = CopyOnB();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  Put(KeyOfMachine(), whole);
  ASSERT_TRUE(world_.Until([this] { return !b_.assigns().empty(); }, Duration::Seconds(20)));
  EXPECT_EQ(PoolNow(), "beta");
}

TEST_F(RewoundUnreadableTest, Seq20_WhatCannotBeReadAndIsRemovedIsNotWaitedFor) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  SpoilHeader(KeyOfMachine());
  Restore();
  b_.known[uid_] = CopyOnB();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  world_.Pass(Duration::Seconds(10));
  EXPECT_FALSE(IsSettled(a_));
  DeleteByForce(kMachineKind, {"default", "web"});
  EXPECT_TRUE(
      world_.Until([this] { return IsSettled(a_) && IsSettled(b_); }, Duration::Seconds(20)));
  EXPECT_TRUE(a_.assigns().empty());
  EXPECT_TRUE(b_.deletes().empty());  // as an orphan it is left alone
}

TEST_F(RewoundUnreadableTest, Seq20_OneWhoseBodyAloneIsDamagedKeepsNobodyElseWaiting) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  MakeOther();
  const Bytes whole = SpoilBody(KeyOfMachine());
  Restore();
  b_.known[uid_] = CopyOnB();
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  ASSERT_TRUE(a_.WaitAssigns(1));
  world_.Pass(Duration::Seconds(10));
  EXPECT_FALSE(IsSettled(a_));
  Put(KeyOfMachine(), whole);
  EXPECT_TRUE(world_.Until([this] { return !b_.assigns().empty(); }, Duration::Seconds(20)));
  EXPECT_EQ(PoolNow(), "beta");
  EXPECT_EQ(a_.assigns().size(), 1U);
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_); }, Duration::Seconds(20)));
}

TEST_F(RewoundUnreadableTest, Seq20_ANameThatIsTakenAnewEndsTheDoubt) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  SpoilBody(KeyOfMachine());
  Restore();
  b_.known[uid_] = CopyOnB();
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  world_.Pass(Duration::Seconds(10));
  ASSERT_FALSE(IsSettled(a_));
  // Before anybody looks again.
  DeleteByForce(kMachineKind, {"default", "web"});
  world_.MakeMachine("web");
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_); }, Duration::Seconds(20)));
}

TEST_F(RewoundUnreadableTest, Seq20_C19_OnlyDrainsOfHostsWithSuchCopiesWait) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  const Bytes whole = SpoilHeader(KeyOfMachine());
  Restore();
  b_.known[uid_] = CopyOnB();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  agent::HostMessage goodbye;
  goodbye.mutable_goodbye()->set_mode(agent::Goodbye::DRAIN);
  a_.Send(goodbye);
  b_.Send(goodbye);
  const auto is_requested = [this](const std::string& pool) {
    return world_.Pool(pool).metadata().annotations.contains(
        std::string(apis::core::kDrainRequestedAnnotation));
  };
  EXPECT_TRUE(world_.Until([&] { return is_requested("alpha"); }));
  world_.Pass(Duration::Seconds(10));
  EXPECT_FALSE(is_requested("beta"));
  EXPECT_FALSE(IsSettled(b_));
  Put(KeyOfMachine(), whole);
  EXPECT_TRUE(world_.Until([&] { return is_requested("beta"); }, Duration::Seconds(20)));
  EXPECT_EQ(PoolNow(), "beta");
}

// The doubt, which goes on, is about another host: nobody comes back to this one but the change.
TEST_F(RewoundUnreadableTest, Seq20_C19_ADrainBeginsWithTheChangeThatItHasWaitedFor) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  const std::string other = MakeOther().metadata().uid;
  SpoilHeader(apiserver::StoreKey(kMachineKind, {"default", "other"}));
  late_.emplace(world_.client(), kMachineKind);
  world_.between = &*late_;
  Restore();
  b_.known[uid_] = CopyOnB();
  b_.known[uid_].set_leased(true);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  agent::HostMessage goodbye;
  goodbye.mutable_goodbye()->set_mode(agent::Goodbye::DRAIN);
  b_.Send(goodbye);
  late_->Hold();
  a_.known[other] = Copy(other, pool_a_);
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  EXPECT_TRUE(world_.Until([this] { return PoolNow() == "beta"; }));
  const auto is_requested = [this] {
    return world_.Pool("beta").metadata().annotations.contains(
        std::string(apis::core::kDrainRequestedAnnotation));
  };
  world_.Pass(Duration::Seconds(5));
  EXPECT_FALSE(is_requested());
  late_->Release();
  EXPECT_TRUE(world_.Until(is_requested));
  EXPECT_FALSE(IsSettled(b_)) << "of the other one nobody knows more than before";
}

TEST_F(RewoundUnreadableTest, Seq20_WhatIsDamagedAfterTheListIsNotTakenForRemoved) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  Restore();
  const Bytes whole = SpoilHeader(KeyOfMachine());
  b_.known[uid_] = CopyOnB();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  world_.Pass(Duration::Seconds(10));
  EXPECT_TRUE(a_.assigns().empty());
  EXPECT_TRUE(b_.deletes().empty());
  Put(KeyOfMachine(), whole);
  EXPECT_TRUE(world_.Until([this] { return !b_.assigns().empty(); }, Duration::Seconds(20)));
  EXPECT_EQ(PoolNow(), "beta");
}

TEST_F(RewoundUnreadableTest, Seq20_APoolThatCannotBeReadIsAHostThatWasNotHeard) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  const std::string key = apiserver::StoreKey(kMachinePoolKind, {"", "beta"});
  const Bytes whole = SpoilHeader(key);
  Restore();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  const meta::Object fresh = world_.MakeMachine("fresh");
  ASSERT_TRUE(world_.Bind(fresh, "alpha", pool_a_).ok());
  ASSERT_TRUE(a_.WaitAssigns(1)) << "what is new does not wait";
  world_.Pass(Duration::Seconds(20));
  EXPECT_EQ(a_.assigns().size(), 1U) << "host b may have the other";
  // Mended, and its host comes back with the machine.
  Put(key, whole);
  world_.Pass(Duration::Seconds(20));
  EXPECT_FALSE(IsSettled(a_));
  b_.known[uid_] = CopyOnB();
  ASSERT_EQ(b_.Join("beta"), pool_b_);
  ASSERT_TRUE(b_.WaitAssigns(1));
  EXPECT_EQ(PoolNow(), "beta");
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_); }));
}

TEST_F(RewoundUnreadableTest, Seq20_ARemovedPoolThatCouldNotBeReadIsNotWaitedFor) {
  ASSERT_TRUE(world_.Bind(machine_, "alpha", pool_a_).ok());
  SpoilHeader(apiserver::StoreKey(kMachinePoolKind, {"", "beta"}));
  Restore();
  ASSERT_EQ(a_.Join("alpha"), pool_a_);
  world_.Pass(Duration::Seconds(10));
  EXPECT_TRUE(a_.assigns().empty());
  DeleteByForce(kMachinePoolKind, {"", "beta"});
  EXPECT_TRUE(world_.Until([this] { return !a_.assigns().empty(); }, Duration::Seconds(20)));
  EXPECT_TRUE(world_.Until([this] { return IsSettled(a_); }));
}

}  // namespace
}  // namespace berth::gateway
