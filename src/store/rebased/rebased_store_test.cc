// SPDX-License-Identifier: Apache-2.0
// Everything that goes in and out has the raised revisions, and what is older has expired.
#include "store/rebased/rebased_store.h"

#include <gtest/gtest.h>

#include <string>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/conformance/store_contract.h"
#include "store/memory/memory_store.h"
#include "store/memory/testing/memory_under_test.h"

namespace berth::store {
namespace {

constexpr int64_t kBase = 5'000'000'000;

std::unique_ptr<Store> FromZero(Store& handle) { return std::make_unique<RebasedStore>(handle, 0); }

TEST(RebasedStore, KeepsTheContract) {
  for (const StoreContract& contract : StoreContracts()) {
    SCOPED_TRACE(contract.name);
    RunStoreContract([] { return std::make_unique<MemoryUnderTest>(1, &FromZero); }, contract);
  }
}

class RebasedStoreTest : public testing::Test {
 protected:
  Revision Put(const std::string& key, Revision unchanged) {
    Txn txn;
    txn.conditions.push_back(Condition::Unchanged(key, unchanged));
    txn.ops.push_back(Op::Put(key, Bytes("value")));
    const auto result = rt::RunTask(loop_, store_.Commit(std::move(txn)));
    EXPECT_TRUE(result.ok()) << result.status();
    return result->committed ? result->revision : Revision();
  }
  Result<RangeResult> Get(const std::string& key, Revision at) {
    RangeRequest request;
    request.start = key;
    request.revision = at;
    return rt::RunTask(loop_, store_.Range(std::move(request)));
  }

  rt::SimLoop loop_{1};
  std::unique_ptr<MemoryStore> memory_ = MemoryStore::Open(loop_);
  std::unique_ptr<Store> inner_ = memory_->NewHandle();
  RebasedStore store_{*inner_, kBase};
};

TEST_F(RebasedStoreTest, R4_4_RevisionsComeAndGoRaised) {
  const Revision first = Put("a", {});
  EXPECT_EQ(first.value, kBase + 2);
  const auto read = Get("a", {});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->revision, first);
  EXPECT_EQ(read->items.at(0).mod_revision, first);
  EXPECT_EQ(read->items.at(0).create_revision, first);
  const Revision second = Put("a", first);
  EXPECT_EQ(second.value, kBase + 3);
  EXPECT_EQ(Get("a", first)->items.at(0).mod_revision, first);
  EXPECT_EQ(rt::RunTask(loop_, store_.CurrentRevision())->value, second.value);
}

TEST_F(RebasedStoreTest, R4_4_AConditionOfTheStoreBeforeNeverHolds) {
  const Revision first = Put("a", {});
  EXPECT_EQ(Put("a", Revision{first.value - kBase}), Revision());
  EXPECT_EQ(Put("b", Revision{7}), Revision());
}

TEST_F(RebasedStoreTest, R4_4_RevisionsOfTheStoreBeforeHaveExpired) {
  Put("a", {});
  EXPECT_TRUE(Get("a", Revision{17}).status().Is(Reason::kExpired));
  WatchRequest request{.start = "a", .end = "", .from = Revision{kBase}};
  EXPECT_TRUE(rt::RunTask(loop_, store_.StartWatch(request)).status().Is(Reason::kExpired));
  EXPECT_TRUE(rt::RunTask(loop_, store_.Compact(Revision{17})).ok());
}

TEST_F(RebasedStoreTest, WatchesGoOnFromARaisedRevision) {
  const Revision first = Put("a", {});
  const Revision second = Put("a", first);
  WatchRequest request{.start = "a", .end = "", .from = second};
  auto watch = rt::RunTask(loop_, store_.StartWatch(request));
  ASSERT_TRUE(watch.ok()) << watch.status();
  const auto batch = rt::RunTask(loop_, (*watch)->Next());
  ASSERT_TRUE(batch.ok());
  ASSERT_EQ(batch->events.size(), 1U);
  EXPECT_EQ(batch->events[0].kv.mod_revision, second);
  EXPECT_EQ(batch->events[0].previous.value().mod_revision, first);
  EXPECT_EQ(batch->revision, second);
}

}  // namespace
}  // namespace berth::store
