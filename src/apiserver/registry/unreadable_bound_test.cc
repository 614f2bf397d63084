// SPDX-License-Identifier: Apache-2.0
// Defends ADR 0038 for room: what an unreadable object took of its pool is given back with the
// object, exactly, and nothing that others have is.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apiserver/cache/keys.h"
#include "apiserver/registry/placement_world.h"
#include "rt/scope.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;

enum class Damage : uint8_t { kBody, kHeader };

class UnreadableBoundTest : public testing::Test {
 protected:
  meta::Object MakeBound(const std::string& name) {
    meta::Object machine = world_.MakeMachine(name);
    EXPECT_TRUE(world_.Bind(machine, "alpha", alpha_).ok());
    return machine;
  }
  // Somebody who does not go through the API.
  void Put(const std::string& key, Bytes value) {
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(key, std::move(value)));
    ASSERT_TRUE(world_.Run(world_.store().Commit(std::move(txn))).ok());
    ASSERT_TRUE(world_.Run(world_.cache().CatchUp()).ok());
  }
  std::string ValueOf(const std::string& key) {
    store::RangeRequest request;
    request.start = key;
    const auto found = world_.Run(world_.store().Range(std::move(request)));
    CHECK(found.ok() && found->items.size() == 1) << key;
    return std::string(found->items[0].value.view());
  }
  void Spoil(const std::string& name, Damage damage) {
    const std::string key = StoreKey(kMachineKind, {"default", name});
    std::string bytes = ValueOf(key);
    if (damage == Damage::kBody) bytes.replace(bytes.find("\"spec\""), 6, "\"spec!");
    if (damage == Damage::kHeader) bytes[0] = '\x7f';  // no format of ours
    Put(key, Bytes(bytes));
  }
  Status DeleteByForce(const std::string& name) {
    client::DeleteOptions options;
    options.force = client::Force::kYes;
    return world_.Run(world_.client().Delete(kMachineKind, {"default", name}, std::move(options)));
  }
  rt::Task<Status> DeleteAndCount(std::string name, size_t* ended) {
    client::DeleteOptions options;
    options.force = client::Force::kYes;
    const client::ObjectKey key{.namespace_ = "default", .name = std::move(name)};
    const Status deleted = co_await world_.client().Delete(kMachineKind, key, options);
    EXPECT_TRUE(deleted.ok()) << deleted;
    ++*ended;
    co_return OkStatus();
  }
  rt::Task<Status> BindAndCount(meta::Object machine, size_t* ended) {
    std::vector<client::BindRequest> requests;
    requests.push_back(
        PlacementWorld::RequestFor({PlacementWorld::ItemFor(machine, "alpha", alpha_)}));
    const auto verdicts = co_await world_.registry().binder().BindBatch(std::move(requests));
    EXPECT_TRUE(verdicts.front().ok()) << verdicts.front().status();
    ++*ended;
    co_return OkStatus();
  }
  // What is promised on the pool, in machines; -1 if the guard contradicts itself.
  int64_t Promised(const std::string& pool_uid) {
    const auto guard = world_.Guard(pool_uid);
    if (!guard) return 0;
    const auto cpu = guard->allocated.find("cpu");
    const int64_t allocated = cpu == guard->allocated.end() ? 0 : cpu->second;
    return allocated == guard->count * kCpuOfMachine ? guard->count : -1;
  }

  PlacementWorld world_{5};
  const std::string alpha_ = world_.MakePool("alpha", 8);
  const std::string beta_ = world_.MakePool("beta", 8);
};

TEST_F(UnreadableBoundTest, ItsRoomComesBackWithIt) {
  for (const Damage damage : {Damage::kBody, Damage::kHeader}) {
    const std::string n = std::to_string(static_cast<int>(damage));
    MakeBound("stays" + n);
    MakeBound("spoilt" + n);
    const int64_t before = Promised(alpha_);
    Spoil("spoilt" + n, damage);
    ASSERT_TRUE(DeleteByForce("spoilt" + n).ok());
    EXPECT_EQ(Promised(alpha_), before - 1) << n;
  }
  // The guard is the binder's too: the room can be taken, and no more than it.
  for (int i = 0; i < 6; ++i) MakeBound("more" + std::to_string(i));
  EXPECT_EQ(Promised(alpha_), 8);
  EXPECT_FALSE(world_.Bind(world_.MakeMachine("too-many"), "alpha", alpha_).ok());
}

TEST_F(UnreadableBoundTest, RoomOfAnotherThatCannotBeReadStaysPromised) {
  for (const Damage damage : {Damage::kBody, Damage::kHeader}) {
    const std::string n = std::to_string(static_cast<int>(damage));
    MakeBound("stays" + n);
    MakeBound("first" + n);
    MakeBound("second" + n);
    const int64_t before = Promised(alpha_);
    Spoil("first" + n, damage);
    Spoil("second" + n, damage);
    ASSERT_TRUE(DeleteByForce("first" + n).ok());
    EXPECT_EQ(Promised(alpha_), before) << n;
    ASSERT_TRUE(DeleteByForce("second" + n).ok());
    EXPECT_EQ(Promised(alpha_), before - 2) << n;
  }
}

TEST_F(UnreadableBoundTest, NoiseThatWasNeverBoundTakesNothing) {
  MakeBound("a");
  Put(StoreKey(kMachineKind, {"default", "noise"}), Bytes("no object"));
  ASSERT_TRUE(DeleteByForce("noise").ok());
  EXPECT_EQ(Promised(alpha_), 1);
  EXPECT_EQ(Promised(beta_), 0);
}

TEST_F(UnreadableBoundTest, WhatAnotherServerWroteIntoTheGuardIsKept) {
  MakeBound("stays");
  MakeBound("spoilt");
  Spoil("spoilt", Damage::kBody);
  PoolGuard guard = *world_.Guard(alpha_);
  guard.cordoned = true;  // this server does not know
  Put(GuardKey(alpha_), Bytes(meta::EncodeJsonOf(guard)));
  ASSERT_TRUE(DeleteByForce("spoilt").ok());
  EXPECT_EQ(Promised(alpha_), 1);
  EXPECT_TRUE(world_.Guard(alpha_)->cordoned);
}

// Binds, unbinds and deletions by force at the same time: in the end the guard is what is bound.
TEST_F(UnreadableBoundTest, TheCountIsRightWhileOthersBind) {
  std::vector<meta::Object> left;
  for (int i = 0; i < 3; ++i) left.push_back(MakeBound("left" + std::to_string(i)));
  for (int i = 0; i < 3; ++i) {
    MakeBound("spoilt" + std::to_string(i));
    Spoil("spoilt" + std::to_string(i), i == 1 ? Damage::kHeader : Damage::kBody);
  }
  std::vector<meta::Object> coming;
  for (int i = 0; i < 2; ++i) coming.push_back(world_.MakeMachine("coming" + std::to_string(i)));
  world_.SetFaults({.delay = 0.5});
  rt::TaskScope scope(world_.loop());
  size_t ended = 0;
  for (int i = 0; i < 3; ++i) {
    scope.Spawn("delete", DeleteAndCount("spoilt" + std::to_string(i), &ended));
    if (i < 2) scope.Spawn("bind", BindAndCount(coming[static_cast<size_t>(i)], &ended));
  }
  ASSERT_TRUE(world_.loop().RunUntil([&ended] { return ended == 5; }, Duration::Seconds(60)));
  EXPECT_TRUE(world_.Run(scope.Close()).ok());
  world_.SetFaults({});
  EXPECT_EQ(Promised(alpha_), 3 + 2);
  ASSERT_TRUE(world_.Unbind(world_.Read(left[0]), apis::EpochOf(world_.Read(left[0]))).ok());
  EXPECT_EQ(Promised(alpha_), 3 + 1);
}

TEST_F(UnreadableBoundTest, APoolThatWaitsForItGoesWithIt) {
  MakeBound("spoilt");
  Spoil("spoilt", Damage::kHeader);
  const client::ObjectKey pool{.namespace_ = "", .name = "alpha"};
  ASSERT_TRUE(world_.Run(world_.client().Delete(apis::compute::kMachinePoolKind, pool, {})).ok());
  ASSERT_TRUE(world_.Run(world_.client().Get(apis::compute::kMachinePoolKind, pool)).ok());
  ASSERT_TRUE(DeleteByForce("spoilt").ok());
  const auto found = world_.Run(world_.client().Get(apis::compute::kMachinePoolKind, pool));
  EXPECT_EQ(found.status().reason(), Reason::kNotFound);
  EXPECT_FALSE(world_.Guard(alpha_));
}

}  // namespace
}  // namespace berth::apiserver
