// SPDX-License-Identifier: Apache-2.0
// Defends ADR 0038 for what hosts are told: a machine of which something cannot be read keeps its
// host from nothing else, and goes on there as it is until it is mended.
#include <gtest/gtest.h>

#include <set>

#include "apiserver/cache/keys.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::k8s::kSecretKind;

class UnreadPartsTest : public testing::Test {
 protected:
  UnreadPartsTest() {
    world_.Enrol("a");
    pool_ = Join();
    world_.MakeSecret("boot", {{"ignition.yaml", "hello"}});
  }
  std::string Join() { return host_.Join("alpha", {{"cpu", 100'000}}); }
  // It runs on the host, which remembers it; its UID.
  std::string Place(const std::string& name, const std::string& secret = "") {
    meta::Object machine = GatewayWorld::Machine(name);
    if (!secret.empty()) {
      machine.as<Machine>().spec.ignition_ref = apis::core::SecretKeySelector{.name = secret};
    }
    machine = GatewayWorld::Must(world_.Run(world_.client().Create(machine, {})));
    const size_t before = host_.assigns().size();
    EXPECT_TRUE(world_.Bind(machine, "alpha", pool_).ok());
    if (!host_.WaitAssigns(before + 1)) return "";
    host_.Remember(host_.assigns().back());
    return machine.metadata().uid;
  }
  // Returns what was there.
  Bytes Write(const meta::KindInfo& kind, const std::string& name, const Bytes& value) {
    const std::string key = apiserver::StoreKey(kind, {"default", name});
    store::RangeRequest request;
    request.start = key;
    const auto before = world_.Run(world_.store().Range(std::move(request)));
    CHECK(before.ok() && before->items.size() == 1) << key;
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(key, value));
    CHECK(world_.Run(world_.store().Commit(std::move(txn))).ok());
    CHECK(world_.Run(world_.cache().CatchUp()).ok());
    return before->items[0].value;
  }
  std::set<std::string> Confirmed() const {
    std::set<std::string> uids;
    for (const agent::Confirm& confirm : host_.confirms()) uids.insert(confirm.uid());
    return uids;
  }

  GatewayWorld world_;
  TestHost host_{world_, "a"};
  std::string pool_;
};

// There are enough of them for some to come behind it.
TEST_F(UnreadPartsTest, TheOthersOfItsHostGoOn) {
  const std::string uid = Place("bad", "boot");
  std::set<std::string> all = {uid};
  for (int i = 0; i < 8; ++i) all.insert(Place("good-" + std::to_string(i)));
  const Bytes secret = Write(kSecretKind, "boot", Bytes(std::string_view("noise")));
  world_.RestartGateway();
  ASSERT_EQ(Join(), pool_) << "its host is let in";
  EXPECT_EQ(Confirmed(), all) << "it goes on too";
  for (int i = 0; i < 8; ++i) EXPECT_NE(Place("new-" + std::to_string(i)), "");
  EXPECT_EQ(host_.deletes().size(), 0U);
  const size_t before = host_.assigns().size();
  Write(kSecretKind, "boot", secret);
  ASSERT_TRUE(world_
                  .Run(world_.client().Patch(kSecretKind,
                                             {"default", "boot"},
                                             client::PatchType::kMerge,
                                             R"({"stringData":{"ignition.yaml":"again"}})",
                                             {}))
                  .ok());
  ASSERT_TRUE(host_.WaitAssigns(before + 1));
  EXPECT_EQ(host_.assigns().back().uid(), uid);
  EXPECT_EQ(host_.assigns().back().machine().ignition(), "again");
}

TEST_F(UnreadPartsTest, WhatWaitsForItIsAssignedOnceItIsMended) {
  const Bytes secret = Write(kSecretKind, "boot", Bytes(std::string_view("noise")));
  meta::Object machine = GatewayWorld::Machine("late");
  machine.as<Machine>().spec.ignition_ref = apis::core::SecretKeySelector{.name = "boot"};
  machine = GatewayWorld::Must(world_.Run(world_.client().Create(machine, {})));
  ASSERT_TRUE(world_.Bind(machine, "alpha", pool_).ok());
  world_.Pass(Duration::Seconds(30));
  EXPECT_EQ(host_.assigns().size(), 0U);
  Write(kSecretKind, "boot", secret);
  EXPECT_TRUE(world_.Until([this] { return host_.assigns().size() == 1; }, Duration::Seconds(30)));
}

}  // namespace
}  // namespace berth::gateway
