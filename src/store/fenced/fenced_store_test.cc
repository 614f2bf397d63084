// SPDX-License-Identifier: Apache-2.0
// What a leader writes ends, inside the store, with the next leader.
#include "store/fenced/fenced_store.h"

#include <gtest/gtest.h>

#include <string>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"

namespace berth::store {
namespace {

class FencedStoreTest : public testing::Test {
 protected:
  ~FencedStoreTest() override { store_.reset(); }
  Result<TxnResult> Put(Store& store, const std::string& key, std::vector<Condition> conditions) {
    Txn txn;
    txn.conditions = std::move(conditions);
    txn.ops.push_back(Op::Put(key, Bytes("x")));
    return rt::RunTask(loop_, store.Commit(std::move(txn)));
  }
  FencedStore Lead() {
    const Result<TxnResult> raised = Put(*store_, "/guard/leader", {});
    EXPECT_TRUE(raised.ok() && raised->committed);
    return {
        *store_, Condition::Unchanged("/guard/leader", raised->revision), [this] { ++fenced_; }};
  }

  rt::SimLoop loop_{1};
  std::unique_ptr<MemoryStore> memory_ = MemoryStore::Open(loop_);
  std::unique_ptr<Store> store_ = memory_->NewHandle();
  int fenced_ = 0;
};

TEST_F(FencedStoreTest, S1_ADeposedLeaderWritesNothing) {
  FencedStore first = Lead();
  ASSERT_TRUE(Put(first, "a", {}).ok());
  FencedStore second = Lead();
  EXPECT_EQ(Put(first, "a", {}).status().reason(), Reason::kUnavailable);
  EXPECT_EQ(Put(first, "b", {Condition::Absent("b")}).status().reason(), Reason::kUnavailable);
  EXPECT_EQ(fenced_, 2);
  EXPECT_TRUE(Put(second, "b", {Condition::Absent("b")}).ok());
  EXPECT_EQ(fenced_, 2);
}

TEST_F(FencedStoreTest, OtherConditionsFailAsTheyDoWithoutAFence) {
  FencedStore leader = Lead();
  ASSERT_TRUE(Put(leader, "a", {}).ok());
  const Result<TxnResult> again = Put(leader, "a", {Condition::Absent("a")});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->committed);
  ASSERT_EQ(again->conflicts.size(), 1U);
  EXPECT_EQ(again->conflicts[0].key, "a");
  EXPECT_EQ(fenced_, 0);
}

TEST_F(FencedStoreTest, ATransactionMayBeAsLargeAsWithoutAFence) {
  FencedStore leader = Lead();
  Txn txn;
  for (size_t i = 0; i < kMaxTxnKeys; ++i) {
    txn.ops.push_back(Op::Put("k" + std::to_string(i), Bytes("x")));
  }
  const Result<TxnResult> result = rt::RunTask(loop_, leader.Commit(std::move(txn)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->committed);
}

}  // namespace
}  // namespace berth::store
