// SPDX-License-Identifier: Apache-2.0
// Without faults the decorator keeps the contract; with them a careful caller still does everything
// exactly once.
#include "store/faults/faulty_store.h"

#include <gtest/gtest.h>

#include <string>

#include "rt/join_all.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"
#include "store/conformance/store_contract.h"
#include "store/memory/memory_store.h"
#include "store/memory/testing/memory_under_test.h"

namespace berth::store {
namespace {

std::unique_ptr<Store> WithoutFaults(Store& handle) {
  return std::make_unique<FaultyStore>(handle, 1, StoreFaults());
}

TEST(FaultyStore, KeepsTheContractWithoutFaults) {
  for (const StoreContract& contract : StoreContracts()) {
    SCOPED_TRACE(contract.name);
    RunStoreContract([] { return std::make_unique<MemoryUnderTest>(1, &WithoutFaults); }, contract);
  }
}

// Adds a word to a list by compare-and-set; after an error it reads back whether it is there.
rt::Task<Status> AppendOnce(Store* store, std::string word) {
  while (true) {
    RangeRequest request;
    request.start = "list";
    Result<RangeResult> now = co_await store->Range(request);
    if (!now.ok()) continue;
    const bool is_new = now->items.empty();
    const std::string list = is_new ? "" : std::string(now->items[0].value.view());
    if (list.find(word) != std::string::npos) co_return OkStatus();
    const Revision at = is_new ? Revision() : now->items[0].mod_revision;
    Txn txn;
    txn.conditions.push_back(Condition::Unchanged("list", at));
    txn.ops.push_back(Op::Put("list", Bytes(list + word)));
    const Result<TxnResult> result = co_await store->Commit(std::move(txn));
    if (result.ok() && result->committed) co_return OkStatus();
  }
}

TEST(FaultyStore, LosesAnswersButNotWhatHappened) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    rt::SimLoop loop(seed);
    const auto memory = MemoryStore::Open(loop);
    const auto inner = memory->NewHandle();
    FaultyStore store(*inner, seed, {.refuse = 0.2, .lose_answer = 0.2, .delay = 0.3});
    std::vector<rt::Task<Status>> tasks;
    for (int i = 10; i < 30; ++i)
      tasks.push_back(AppendOnce(&store, "<" + std::to_string(i) + ">"));
    for (const Status& status : rt::RunTask(loop, rt::JoinAll(std::move(tasks)))) {
      EXPECT_TRUE(status.ok());
    }
    EXPECT_GT(store.failures(), 5U);
    store.SetFaults({});
    RangeRequest request;
    request.start = "list";
    const Result<RangeResult> list = rt::RunTask(loop, store.Range(request));
    ASSERT_TRUE(list.ok());
    EXPECT_EQ(list->items[0].value.size(), 20U * 4) << list->items[0].value.view();
    EXPECT_EQ(list->items[0].version, 20);
  }
}

TEST(FaultyStore, EndsWatches) {
  rt::SimLoop loop(1);
  const auto memory = MemoryStore::Open(loop);
  const auto inner = memory->NewHandle();
  FaultyStore store(*inner, 1, {.end_watch = 1});
  WatchRequest request{.start = "a", .end = "", .from = {}};
  auto watch = rt::RunTask(loop, store.StartWatch(request));
  ASSERT_TRUE(watch.ok());
  const Status first = rt::RunTask(loop, (*watch)->Next()).status();
  EXPECT_TRUE(first.Is(Reason::kUnavailable) || first.Is(Reason::kExpired)) << first;
  EXPECT_EQ(rt::RunTask(loop, (*watch)->Next()).status(), first) << "errors are final";
}

}  // namespace
}  // namespace berth::store
