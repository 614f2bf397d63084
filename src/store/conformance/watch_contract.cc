// SPDX-License-Identifier: Apache-2.0
// Watches: every change once, in order, whole transactions, from any revision that is not
// compacted.
#include <array>
#include <string>
#include <utility>

#include "rt/child_context.h"
#include "rt/scope.h"
#include "rt/sleep.h"
#include "store/conformance/blocking.h"
#include "store/conformance/store_contract.h"
#include "store/mvcc/watch_hub.h"

namespace berth::store {
namespace {

std::unique_ptr<Watch> MustWatch(Blocking& store, WatchRequest request) {
  Result<std::unique_ptr<Watch>> watch = store.StartWatch(std::move(request));
  CHECK(watch.ok()) << watch.status();
  return *std::move(watch);
}

void AWatchDeliversEveryChangeOnce(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  Blocking other(under_test, under_test.second());
  store.Put("k/before", "0");
  const auto watch = MustWatch(store, WatchPrefix("k/", {}));
  store.Put("k/a", "1");
  other.Put("elsewhere", "x");
  other.Put("k/a", "2");
  store.Delete("k/a");
  const Revision last = other.Apply({Op::Put("k/b", Bytes("1")), Op::Put("k/c", Bytes("1"))});
  EXPECT_EQ(
      DescribeAll(ReadUntil(under_test, *watch, last)),
      (std::vector<std::string>{"k/a=1@3", "k/a=2@5", "k/a deleted@6", "k/b=1@7", "k/c=1@7"}));
}

void AnEventTellsTheStateBefore(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const auto live = MustWatch(store, WatchPrefix("", {}));
  store.Put("a", "1");
  store.Put("a", "2");
  store.Delete("a");
  const Revision last = store.Put("a", "3");
  const auto late = MustWatch(store, WatchPrefix("", Revision{2}));
  for (Watch* watch : {live.get(), late.get()}) {
    const std::vector<Event> events = ReadUntil(under_test, *watch, last);
    ASSERT_EQ(events.size(), 4U);
    EXPECT_FALSE(events[0].previous.has_value());
    ASSERT_TRUE(events[1].previous.has_value());
    EXPECT_EQ(Describe(*events[1].previous), "a=1@2");
    ASSERT_TRUE(events[2].previous.has_value());
    EXPECT_EQ(Describe(*events[2].previous), "a=2@3");
    EXPECT_EQ(events[2].previous->version, 2);
    EXPECT_TRUE(events[2].kv.value.empty());
    EXPECT_EQ(events[2].kv.version, 0) << "a deletion is key and mod_revision only";
    EXPECT_FALSE(events[3].previous.has_value()) << "a new key again";
    EXPECT_EQ(events[3].kv.create_revision, last);
  }
}

void AWatchOfOneKeySeesOnlyThatKey(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  WatchRequest request;
  request.start = "k";
  const auto watch = MustWatch(store, request);
  store.Put("k/a", "1");
  store.Put("j", "1");
  const Revision last = store.Put("k", "1");
  EXPECT_EQ(DescribeAll(ReadUntil(under_test, *watch, last)), std::vector<std::string>{"k=1@4"});
}

// Writes `commits` transactions of two keys each.
rt::Task<Status> WritePairs(Store* store, std::string name, int commits) {
  for (int i = 0; i < commits; ++i) {
    Txn txn;
    const std::string key = name + std::to_string(i % 10);
    txn.ops = {Op::Put("k/" + key + "/x", Bytes(std::to_string(i))),
               Op::Put("k/" + key + "/y", Bytes(std::to_string(i)))};
    CO_TRY_STATUS(co_await store->Commit(std::move(txn)));
  }
  co_return OkStatus();
}

rt::Task<Status> Collect(Watch* watch, Revision through, std::vector<WatchBatch>* batches) {
  while (batches->empty() || batches->back().revision < through) {
    CO_TRY(WatchBatch batch, co_await watch->Next());
    batches->push_back(std::move(batch));
  }
  co_return OkStatus();
}

// Each transaction of WritePairs is there once, whole, inside one batch, in order.
void ExpectWholePairs(const std::vector<WatchBatch>& batches, Revision first, Revision last) {
  Revision expected = first;
  for (const WatchBatch& batch : batches) {
    ASSERT_EQ(batch.events.size() % 2, 0U) << "half a transaction";
    for (size_t i = 0; i < batch.events.size(); i += 2) {
      ASSERT_EQ(batch.events[i].kv.mod_revision, expected);
      ASSERT_EQ(batch.events[i + 1].kv.mod_revision, expected);
      ASSERT_LE(expected, batch.revision);
      expected = expected.Next();
    }
  }
  EXPECT_EQ(expected, last.Next());
}

void AWatchCatchesUpWhileWritersGoOn(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  constexpr int kBefore = 700;  // 1,400 events: several pages of history
  constexpr int kMeanwhile = 400;
  ASSERT_TRUE(Await(under_test, WritePairs(&under_test.first(), "a", kBefore)).ok());
  const Revision first{2};
  const Revision last{1 + kBefore + 2 * kMeanwhile};
  const auto watch = MustWatch(store, WatchPrefix("k/", first));
  std::vector<WatchBatch> batches;
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(WritePairs(&under_test.first(), "a", kMeanwhile));
  tasks.push_back(WritePairs(&under_test.second(), "b", kMeanwhile));
  tasks.push_back(Collect(watch.get(), last, &batches));
  for (const Status& status : AwaitAll(under_test, std::move(tasks))) {
    EXPECT_TRUE(status.ok()) << status;
  }
  ExpectWholePairs(batches, first, last);
}

void AWatchResumesAcrossARestart(StoreUnderTest& under_test) {
  Revision seen;
  {
    Blocking store(under_test, under_test.first());
    const auto watch = MustWatch(store, WatchPrefix("k", {}));
    store.Put("k1", "1");
    seen = store.Put("k2", "2");
    EXPECT_EQ(ReadUntil(under_test, *watch, seen).size(), 2U);
    store.Put("k1", "3");
    store.Delete("k2");
    ASSERT_TRUE(under_test.Close().ok());
    const Result<WatchBatch> ended = Await(under_test, watch->Next());
    EXPECT_EQ(ended.status().reason(), Reason::kUnavailable);
  }
  under_test.Reopen();
  Blocking store(under_test, under_test.first());
  const auto watch = MustWatch(store, WatchPrefix("k", seen.Next()));
  const Revision last = store.Put("k4", "4");
  EXPECT_EQ(DescribeAll(ReadUntil(under_test, *watch, last)),
            (std::vector<std::string>{"k1=3@4", "k2 deleted@5", "k4=4@6"}));
}

void AWatchOfTheFutureWaitsForIt(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const auto watch = MustWatch(store, WatchPrefix("", Revision{4}));
  for (const char* value : {"2", "3", "4"}) store.Put("a", value);
  EXPECT_EQ(DescribeAll(ReadUntil(under_test, *watch, Revision{4})),
            std::vector<std::string>{"a=4@4"});
}

void AWatchOfCompactedHistoryIsExpired(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  for (const char* value : {"1", "2", "3"}) store.Put("a", value);
  const auto early = MustWatch(store, WatchPrefix("", Revision{2}));
  const auto live = MustWatch(store, WatchPrefix("", {}));
  const Revision compacted{3};
  ASSERT_TRUE(store.Compact(compacted).ok());
  EXPECT_EQ(store.StartWatch(WatchPrefix("", compacted)).status().reason(), Reason::kExpired);
  EXPECT_EQ(Await(under_test, early->Next()).status().reason(), Reason::kExpired);
  EXPECT_EQ(Await(under_test, early->Next()).status().reason(), Reason::kExpired) << "final";
  const auto rest = MustWatch(store, WatchPrefix("", compacted.Next()));
  const Revision last = store.Put("b", "1");
  const std::vector<Event> events = ReadUntil(under_test, *rest, last);
  EXPECT_EQ(DescribeAll(events), (std::vector<std::string>{"a=3@4", "b=1@5"}));
  ASSERT_TRUE(events[0].previous.has_value()) << "the state at the compacted revision stays";
  EXPECT_EQ(Describe(*events[0].previous), "a=2@3");
  EXPECT_EQ(DescribeAll(ReadUntil(under_test, *live, last)), std::vector<std::string>{"b=1@5"});
}

void AReaderThatFallsBehindIsExpired(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const auto slow = MustWatch(store, WatchPrefix("k", {}));
  const auto elsewhere = MustWatch(store, WatchPrefix("other", {}));
  for (size_t sent = 0; sent <= kWatchBufferEvents; sent += kMaxTxnKeys) {
    std::vector<Op> ops;
    for (size_t i = 0; i < kMaxTxnKeys; ++i) {
      ops.push_back(Op::Put("k" + std::to_string(i), Bytes("v")));
    }
    store.Apply(std::move(ops));
  }
  // Once one watcher has heard of it, everything before has been offered to all.
  const Revision last = store.Put("other", "1");
  EXPECT_EQ(ReadUntil(under_test, *elsewhere, last).size(), 1U);
  const Result<WatchBatch> batch = Await(under_test, slow->Next());
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.status().reason(), Reason::kExpired) << batch.status();
}

rt::Task<Status> CancelNext(Watch* watch, std::optional<Result<WatchBatch>>* answer) {
  rt::Context& context = co_await rt::CurrentContext{};
  rt::TaskScope scope(context.loop());
  scope.Spawn("next", rt::internal::StoreResult(watch->Next(), answer));
  CO_TRY_STATUS(co_await rt::Yield());
  co_return co_await scope.Close();
}

void ACancelledReaderLosesNothing(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const auto watch = MustWatch(store, WatchPrefix("", {}));
  std::optional<Result<WatchBatch>> cancelled;
  ASSERT_TRUE(Await(under_test, CancelNext(watch.get(), &cancelled)).ok());
  ASSERT_TRUE(cancelled.has_value());
  EXPECT_EQ(cancelled->status().reason(), Reason::kCancelled);
  const Revision last = store.Put("a", "1");
  EXPECT_EQ(DescribeAll(ReadUntil(under_test, *watch, last)), std::vector<std::string>{"a=1@2"});
}

rt::Task<Status> DropWatch(std::unique_ptr<Watch> watch,
                           std::optional<Result<WatchBatch>>* answer) {
  rt::Context& context = co_await rt::CurrentContext{};
  rt::TaskScope scope(context.loop());
  scope.Spawn("next", rt::internal::StoreResult(watch->Next(), answer));
  watch.reset();
  co_return co_await scope.Join();
}

void DestroyingAWatchEndsItsReader(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  std::optional<Result<WatchBatch>> answer;
  ASSERT_TRUE(Await(under_test, DropWatch(MustWatch(store, WatchPrefix("", {})), &answer)).ok());
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status().reason(), Reason::kCancelled);
  store.Put("a", "1");  // nobody is fed
}

void AnIdleWatcherLearnsHowFarTheStoreIs(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const auto watch = MustWatch(store, WatchPrefix("k", {}));
  const Revision last = store.Put("elsewhere", "1");
  EXPECT_TRUE(ReadUntil(under_test, *watch, last).empty());
}

constexpr std::array kContracts = {
    StoreContract{"AWatchDeliversEveryChangeOnce", AWatchDeliversEveryChangeOnce},
    StoreContract{"AnEventTellsTheStateBefore", AnEventTellsTheStateBefore},
    StoreContract{"AWatchOfOneKeySeesOnlyThatKey", AWatchOfOneKeySeesOnlyThatKey},
    StoreContract{"AWatchCatchesUpWhileWritersGoOn", AWatchCatchesUpWhileWritersGoOn},
    StoreContract{"AWatchResumesAcrossARestart", AWatchResumesAcrossARestart},
    StoreContract{"AWatchOfTheFutureWaitsForIt", AWatchOfTheFutureWaitsForIt},
    StoreContract{"AWatchOfCompactedHistoryIsExpired", AWatchOfCompactedHistoryIsExpired},
    StoreContract{"AReaderThatFallsBehindIsExpired", AReaderThatFallsBehindIsExpired},
    StoreContract{"ACancelledReaderLosesNothing", ACancelledReaderLosesNothing},
    StoreContract{"DestroyingAWatchEndsItsReader", DestroyingAWatchEndsItsReader},
    StoreContract{"AnIdleWatcherLearnsHowFarTheStoreIs", AnIdleWatcherLearnsHowFarTheStoreIs},
};

}  // namespace

std::span<const StoreContract> WatchContracts() { return kContracts; }

}  // namespace berth::store
