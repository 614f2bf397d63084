// SPDX-License-Identifier: Apache-2.0
// A copy has every value as of one revision and nothing that ends by itself; a store that is not
// filled to its end is noticed and can be filled again.
#include "app/backup/state_copy.h"

#include <gtest/gtest.h>

#include <string>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"

namespace berth::app {
namespace {

class StateCopyTest : public testing::Test {
 protected:
  void Put(store::Store& store, const std::string& key, size_t bytes, store::LeaseId lease = {}) {
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(key, Bytes(std::string(bytes, 'v')), lease));
    ASSERT_TRUE(rt::RunTask(loop_, store.Commit(std::move(txn))).ok());
  }
  Status CopyAll() {
    StateReader reader(*from_);
    StateWriter writer(*to_);
    while (true) {
      TRY(std::vector<store::KeyValue> values, rt::RunTask(loop_, reader.Next()));
      if (values.empty()) break;
      for (store::KeyValue& item : values) {
        TRY_STATUS(rt::RunTask(loop_, writer.Add(std::move(item.key), std::move(item.value))));
      }
      Put(*from_, "/zz-later", 1);  // behind the revision that is copied
    }
    return rt::RunTask(loop_, writer.Flush());
  }
  Result<StateSum> Sum(store::Store& store) { return rt::RunTask(loop_, SumState(store)); }

  rt::SimLoop loop_{1};
  std::unique_ptr<store::MemoryStore> one_ = store::MemoryStore::Open(loop_);
  std::unique_ptr<store::MemoryStore> other_ = store::MemoryStore::Open(loop_);
  std::unique_ptr<store::Store> from_ = one_->NewHandle();
  std::unique_ptr<store::Store> to_ = other_->NewHandle();
};

TEST_F(StateCopyTest, CopiesTheStateOfOneRevision) {
  for (int i = 0; i < 200; ++i) Put(*from_, "/a/" + std::to_string(i), 10);
  for (int i = 0; i < 4; ++i) Put(*from_, "/b/" + std::to_string(i), store::kMaxValueBytes);
  const auto lease = rt::RunTask(loop_, from_->GrantLease(Duration::Minutes(1)));
  const auto before = Sum(*from_);
  Put(*from_, "/event", 10, *lease);
  ASSERT_TRUE(CopyAll().ok());
  const auto copied = Sum(*to_);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->keys, 204U);
  EXPECT_EQ(*copied, *before);
  EXPECT_NE(*copied, *Sum(*from_)) << "it has something later";
}

TEST_F(StateCopyTest, AStoreIsFilledOnceAndToItsEnd) {
  EXPECT_TRUE(rt::RunTask(loop_, CheckFilled(*to_)).ok());
  ASSERT_TRUE(rt::RunTask(loop_, BeginFilling(*to_)).ok());
  for (int i = 0; i < 150; ++i) Put(*to_, "/half/" + std::to_string(i), 10);
  EXPECT_TRUE(rt::RunTask(loop_, CheckFilled(*to_)).Is(Reason::kConflict));
  ASSERT_TRUE(rt::RunTask(loop_, BeginFilling(*to_)).ok());
  EXPECT_EQ(Sum(*to_)->keys, 0U);
  Put(*to_, "/whole", 10);
  ASSERT_TRUE(rt::RunTask(loop_, EndFilling(*to_)).ok());
  EXPECT_TRUE(rt::RunTask(loop_, CheckFilled(*to_)).ok());
  const Status refused = rt::RunTask(loop_, BeginFilling(*to_));
  EXPECT_TRUE(refused.Is(Reason::kConflict));
  EXPECT_NE(refused.message().find("/whole"), std::string::npos) << refused;
}

TEST_F(StateCopyTest, MarksAreRead) {
  EXPECT_EQ(rt::RunTask(loop_, ReadRevisionBase(*to_)).value(), 0);
  ASSERT_TRUE(rt::RunTask(loop_, PutMark(*to_, kBaseKey, "4711")).ok());
  EXPECT_EQ(rt::RunTask(loop_, ReadRevisionBase(*to_)).value(), 4711);
  ASSERT_TRUE(rt::RunTask(loop_, PutMark(*to_, kBaseKey, "many")).ok());
  EXPECT_FALSE(rt::RunTask(loop_, ReadRevisionBase(*to_)).ok());
  ASSERT_TRUE(rt::RunTask(loop_, PutMark(*to_, kMovedKey, "elsewhere")).ok());
  const Status moved = rt::RunTask(loop_, CheckFilled(*to_));
  EXPECT_NE(moved.message().find("elsewhere"), std::string::npos) << moved;
}

}  // namespace
}  // namespace berth::app
