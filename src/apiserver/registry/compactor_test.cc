// SPDX-License-Identifier: Apache-2.0
// Defends compaction: history older than an interval goes, younger history stays.
#include "apiserver/registry/compactor.h"

#include <gtest/gtest.h>

#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"

namespace berth::apiserver {
namespace {

TEST(Compactor, ForgetsWhatIsOlderThanAnInterval) {
  rt::SimLoop loop(1);
  auto memory = store::MemoryStore::Open(loop);
  auto store = memory->NewHandle();
  const auto put = [&](const char* key) {
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(key, Bytes("x")));
    return rt::RunTask(loop, store->Commit(std::move(txn)))->revision;
  };
  Compactor compactor(*store, {.interval = Duration::Minutes(5)});
  rt::TaskScope scope(loop);
  scope.Spawn("compactor", compactor.Run());
  put("a");
  loop.RunFor(Duration::Minutes(6));
  const store::Revision old = put("b");
  loop.RunFor(Duration::Minutes(5));
  const store::Revision young = put("c");
  EXPECT_LT(rt::RunTask(loop, store->CompactedRevision())->value, old.value);
  loop.RunFor(Duration::Minutes(5));
  EXPECT_EQ(rt::RunTask(loop, store->CompactedRevision())->value, old.value);
  EXPECT_LT(old.value, young.value);
  EXPECT_TRUE(rt::RunTask(loop, scope.Close()).ok());
}

}  // namespace
}  // namespace berth::apiserver
