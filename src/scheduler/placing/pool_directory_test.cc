// SPDX-License-Identifier: Apache-2.0
// Defends that each pool of the board is one pool of the store, whatever somebody has written there
// by hand.
#include "scheduler/placing/pool_directory.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "apis/compute/machine_pool.h"
#include "apis/storage/volume_pool.h"

namespace berth::scheduler {
namespace {

using apis::compute::kMachinePoolKind;
using apis::compute::MachinePool;
using apis::storage::kVolumePoolKind;
using apis::storage::VolumePool;
using Became = PoolDirectory::Became;

meta::Object PoolNamed(const std::string& name, const std::string& uid) {
  MachinePool pool;
  pool.metadata.name = name;
  pool.metadata.uid = uid;
  return meta::Object::Of(kMachinePoolKind, std::move(pool));
}

meta::Object VolumePoolNamed(const std::string& name, const std::string& uid) {
  VolumePool pool;
  pool.metadata.name = name;
  pool.metadata.uid = uid;
  return meta::Object::Of(kVolumePoolKind, std::move(pool));
}

class PoolDirectoryTest : public testing::Test {
 protected:
  // UID of the pool that is found by this name; "" without one.
  std::string UidOf(const std::string& name, PoolKind kind = PoolKind::kMachine) const {
    const PoolEntry* found = pools_.FindByName(kind, name);
    return found == nullptr ? "" : found->pool.spec.uid;
  }
  // Name of the pool that has this UID; "" without one.
  std::string NameOf(const std::string& uid) const {
    const PoolEntry* found = pools_.FindByUid(uid);
    return found == nullptr ? "" : found->pool.spec.name;
  }
  Became Put(const meta::Object& pool) { return pools_.OnObject(nullptr, &pool); }
  Became Change(const meta::Object& pool) { return pools_.OnObject(&pool, &pool); }
  Became Remove(const meta::Object& pool) { return pools_.OnObject(&pool, nullptr); }

  Board board_{BoardOptions{.seed = 1}};
  PoolDirectory pools_{board_};
  const meta::Object alpha_ = PoolNamed("alpha", "u-1");
  const meta::Object beta_ = PoolNamed("beta", "u-1");
  const meta::Object disks_ = VolumePoolNamed("alpha", "u-1");
};

TEST_F(PoolDirectoryTest, WhenOneOfTwoWithOneUidGoesTheOtherComes) {
  EXPECT_EQ(Put(alpha_), Became::kNew);
  EXPECT_EQ(Put(beta_), Became::kNothing);
  EXPECT_EQ(NameOf("u-1"), "alpha");
  EXPECT_EQ(UidOf("beta"), "");
  EXPECT_EQ(Remove(alpha_), Became::kNew);
  EXPECT_EQ(UidOf("alpha"), "");
  EXPECT_EQ(UidOf("beta"), "u-1");
  EXPECT_EQ(NameOf("u-1"), "beta");
  EXPECT_EQ(Remove(beta_), Became::kNothing);
  EXPECT_EQ(NameOf("u-1"), "");
  EXPECT_EQ(board_.pool_count(PoolKind::kMachine), 0U);
}

TEST_F(PoolDirectoryTest, OneThatWasPassedOverTakesNothingAlong) {
  Put(alpha_);
  Put(beta_);
  EXPECT_EQ(Change(beta_), Became::kNothing);
  EXPECT_EQ(Change(alpha_), Became::kNothing);
  EXPECT_EQ(Remove(beta_), Became::kNothing);
  EXPECT_EQ(NameOf("u-1"), "alpha");
  EXPECT_EQ(Remove(alpha_), Became::kNothing);
  EXPECT_EQ(board_.pool_count(PoolKind::kMachine), 0U);
}

TEST_F(PoolDirectoryTest, APoolOfAnotherKindAndTheSameNameIsAnotherPool) {
  Put(alpha_);
  EXPECT_EQ(Put(disks_), Became::kNothing);
  EXPECT_EQ(UidOf("alpha", PoolKind::kVolume), "");
  Put(beta_);
  EXPECT_EQ(Remove(alpha_), Became::kNew);
  EXPECT_EQ(UidOf("beta"), "u-1");
  EXPECT_EQ(Remove(beta_), Became::kNew);
  EXPECT_EQ(UidOf("alpha", PoolKind::kVolume), "u-1");
}

TEST_F(PoolDirectoryTest, APoolWithoutAUidIsPassedOver) {
  const meta::Object nobody = PoolNamed("nobody", "");
  EXPECT_EQ(Put(nobody), Became::kNothing);
  EXPECT_EQ(board_.pool_count(PoolKind::kMachine), 0U);
  EXPECT_EQ(Remove(nobody), Became::kNothing);
  EXPECT_EQ(Put(PoolNamed("nobody", "u-2")), Became::kNew);
  EXPECT_EQ(UidOf("nobody"), "u-2");
}

}  // namespace
}  // namespace berth::scheduler
