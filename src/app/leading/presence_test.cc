// SPDX-License-Identifier: Apache-2.0
#include "app/leading/presence.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"

namespace berth::app {
namespace {

class PresenceTest : public testing::Test {
 protected:
  ~PresenceTest() override { store_.reset(); }
  size_t Marks() {
    store::RangeRequest request;
    request.start = "/guard/server/";
    request.end = store::PrefixEnd(request.start);
    const auto found = rt::RunTask(loop_, store_->Range(std::move(request)));
    return found.ok() ? found->items.size() : 0;
  }

  rt::SimLoop loop_{1};
  std::unique_ptr<store::MemoryStore> memory_ = store::MemoryStore::Open(loop_);
  std::unique_ptr<store::Store> store_ = memory_->NewHandle();
};

TEST_F(PresenceTest, LastsAsLongAsItIsKeptAndALittleLonger) {
  Presence one(*store_, "a", "host:/a");
  Presence other(*store_, "b", "host:/b");
  ASSERT_TRUE(rt::RunTask(loop_, one.Mark()).ok());
  ASSERT_TRUE(rt::RunTask(loop_, other.Mark()).ok());
  rt::TaskScope scope(loop_);
  scope.Spawn("keep", one.Keep());
  loop_.RunFor(Duration::Minutes(1));
  EXPECT_EQ(Marks(), 1U) << "the other one was killed";
  EXPECT_TRUE(rt::RunTask(loop_, scope.Close()).ok());
  EXPECT_EQ(Marks(), 1U);
  EXPECT_TRUE(rt::RunTask(loop_, one.Leave()).ok());
  EXPECT_EQ(Marks(), 0U);
}

TEST_F(PresenceTest, WhoeverServesIsSeenThoughTheStoreWasEmptied) {
  EXPECT_TRUE(rt::RunTask(loop_, CheckNobodyServesEmptied(*store_)).ok());
  Presence one(*store_, "a", "host:/a");
  ASSERT_TRUE(rt::RunTask(loop_, one.Mark()).ok());
  rt::TaskScope scope(loop_);
  scope.Spawn("keep", one.Keep());
  store::Txn txn;
  txn.ops.push_back(store::Op::Delete("/guard/server/a"));
  ASSERT_TRUE(rt::RunTask(loop_, store_->Commit(std::move(txn))).ok());
  EXPECT_TRUE(rt::RunTask(loop_, CheckNobodyServes(*store_)).ok()) << "too early to tell";
  const Status refused = rt::RunTask(loop_, CheckNobodyServesEmptied(*store_));
  EXPECT_TRUE(refused.Is(Reason::kConflict)) << refused;
  EXPECT_NE(refused.message().find("host:/a"), std::string::npos) << refused;
  EXPECT_TRUE(rt::RunTask(loop_, CheckNobodyServes(*store_)).Is(Reason::kConflict));
  EXPECT_TRUE(rt::RunTask(loop_, scope.Close()).ok());
  EXPECT_TRUE(rt::RunTask(loop_, one.Leave()).ok());
  EXPECT_TRUE(rt::RunTask(loop_, CheckNobodyServesEmptied(*store_)).ok());
}

}  // namespace
}  // namespace berth::app
