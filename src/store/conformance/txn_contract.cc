// SPDX-License-Identifier: Apache-2.0
// Transactions: revisions, conditions, limits, and what concurrent writers see of each other.
#include <array>
#include <string>
#include <utility>

#include "store/conformance/blocking.h"
#include "store/conformance/linearizable.h"
#include "store/conformance/store_contract.h"

namespace berth::store {
namespace {

Txn CreateTxn(std::string key, std::string_view value) {
  Txn txn;
  txn.conditions.push_back(Condition::Absent(key));
  txn.ops.push_back(Op::Put(std::move(key), Bytes(value)));
  return txn;
}

void AnEmptyStoreIsAtRevisionOne(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  EXPECT_EQ(store.revision().value, 1);
  EXPECT_EQ(store.compacted().value, 0);
  EXPECT_TRUE(store.GetAll("").empty());
  EXPECT_EQ(store.Put("a", "1").value, 2);
}

void EveryChangeHasItsOwnRevision(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const Revision created = store.Put("a", "1");
  const Revision changed = store.Put("a", "1");  // the same value is a change, too
  EXPECT_EQ(changed, created.Next());
  const std::optional<KeyValue> kv = store.Get("a");
  ASSERT_TRUE(kv.has_value());
  EXPECT_EQ(kv->create_revision, created);
  EXPECT_EQ(kv->mod_revision, changed);
  EXPECT_EQ(kv->version, 2);
  EXPECT_EQ(store.Delete("a"), changed.Next());
  EXPECT_FALSE(store.Get("a").has_value());
  const Revision again = store.Put("a", "2");
  EXPECT_EQ(store.Get("a")->create_revision, again);
  EXPECT_EQ(store.Get("a")->version, 1);
}

void ATransactionHasOneRevision(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  store.Put("b", "old");
  const Revision at =
      store.Apply({Op::Put("a", Bytes("1")), Op::Delete("b"), Op::Put("c", Bytes("3"))});
  EXPECT_EQ(store.Get("a")->mod_revision, at);
  EXPECT_FALSE(store.Get("b").has_value());
  EXPECT_EQ(store.Get("c")->mod_revision, at);
  EXPECT_EQ(store.revision(), at);
}

void AFailedConditionChangesNothing(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  Blocking other(under_test, under_test.second());
  const Revision at = store.Put("a", "1");
  Txn txn;
  txn.conditions = {
      Condition::Absent("a"), Condition::Unchanged("b", at), Condition::Unchanged("a", at)};
  txn.ops = {Op::Put("c", Bytes("3")), Op::Delete("a")};
  const Result<TxnResult> result = other.Commit(txn);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->committed);
  EXPECT_EQ(result->revision, at);
  ASSERT_EQ(result->conflicts.size(), 2U);
  EXPECT_EQ(Describe(result->conflicts[0]), Describe(*store.Get("a")));
  EXPECT_EQ(result->conflicts[1].key, "b");
  EXPECT_EQ(result->conflicts[1].mod_revision.value, 0);
  EXPECT_EQ(store.revision(), at);
  EXPECT_FALSE(store.Get("c").has_value());
}

void ConditionsThatHoldLetTheTransactionHappen(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const Revision at = store.Put("a", "1");
  Txn txn;
  txn.conditions = {Condition::Unchanged("a", at), Condition::Absent("b")};
  txn.ops = {Op::Put("b", Bytes("2"))};
  const Result<TxnResult> result = store.Commit(txn);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->committed);
  EXPECT_TRUE(result->conflicts.empty());
  EXPECT_EQ(result->revision, at.Next());
  const Result<TxnResult> again = store.Commit(txn);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->committed) << "b is there now";
}

void NoChangeTakesNoRevision(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const Revision at = store.Put("a", "1");
  EXPECT_EQ(store.Delete("absent"), at);
  EXPECT_EQ(store.Apply({}), at);
  EXPECT_EQ(store.revision(), at);
}

void ExpectBadRequest(Blocking& store, Txn txn, std::string_view part) {
  const Result<TxnResult> result = store.Commit(std::move(txn));
  ASSERT_FALSE(result.ok()) << part;
  EXPECT_EQ(result.status().reason(), Reason::kBadRequest) << result.status();
  EXPECT_NE(result.status().message().find(part), std::string_view::npos) << result.status();
}

Txn TxnOf(size_t conditions, size_t ops) {
  Txn txn;
  for (size_t i = 0; i < conditions; ++i) {
    txn.conditions.push_back(Condition::Absent("condition" + std::to_string(i)));
  }
  for (size_t i = 0; i < ops; ++i) {
    txn.ops.push_back(Op::Put("key" + std::to_string(i), Bytes("v")));
  }
  return txn;
}

void LimitsAreEnforced(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const auto put = [](std::string key, size_t bytes) {
    Txn txn;
    txn.ops.push_back(Op::Put(std::move(key), Bytes(std::string(bytes, 'x'))));
    return txn;
  };
  ExpectBadRequest(store, TxnOf(64, 66), "128");  // one more than with a fence (store/fenced)
  ExpectBadRequest(store, put("", 1), "empty");
  ExpectBadRequest(store, put(std::string(kMaxKeyBytes + 1, 'k'), 1), "1024");
  ExpectBadRequest(store, put("a", kMaxValueBytes + 1), std::to_string(kMaxValueBytes));
  Txn large = put("a", kMaxTxnBytes / 2);
  large.ops.push_back(Op::Put("b", Bytes(std::string(kMaxTxnBytes / 2, 'x'))));
  ExpectBadRequest(store, large, std::to_string(kMaxTxnBytes));
  Txn twice = put("a", 1);
  twice.ops.push_back(Op::Delete("a"));
  ExpectBadRequest(store, twice, "two operations");
  EXPECT_EQ(store.revision().value, 1) << "nothing of this happened";
}

void WhatIsJustWithinTheLimitsIsAccepted(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const Result<TxnResult> wide = store.Commit(TxnOf(64, 64));
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(store.GetAll("key").size(), 64U);
  const std::string key(kMaxKeyBytes, 'k');
  store.Put(key, std::string(kMaxValueBytes, 'x'));
  EXPECT_EQ(store.Get(key)->value.size(), kMaxValueBytes);
  store.Put("empty", "");
  EXPECT_TRUE(store.Get("empty")->value.empty());
  const std::string odd("\0\xff\n", 3);
  store.Put(odd, odd);
  EXPECT_EQ(store.Get(odd)->value.view(), odd);
}

void OfTwoCreatorsOneWinsAndTheOtherSeesWhat(StoreUnderTest& under_test) {
  std::vector<rt::Task<Result<TxnResult>>> both;
  both.push_back(under_test.first().Commit(CreateTxn("a", "first")));
  both.push_back(under_test.second().Commit(CreateTxn("a", "second")));
  const auto results = AwaitAll(under_test, std::move(both));
  ASSERT_TRUE(results[0].ok() && results[1].ok());
  EXPECT_NE(results[0]->committed, results[1]->committed);
  const TxnResult& loser = results[0]->committed ? *results[1] : *results[0];
  ASSERT_EQ(loser.conflicts.size(), 1U);
  Blocking store(under_test, under_test.first());
  EXPECT_EQ(Describe(loser.conflicts[0]), Describe(*store.Get("a")));
  EXPECT_GE(store.revision(), loser.revision) << "the answer came after what it tells is durable";
}

// Adds one to a counter by compare-and-set, until it happened `times` times.
rt::Task<Status> CountUp(Store* store, int times) {
  for (int done = 0; done < times;) {
    RangeRequest request;
    request.start = "counter";
    CO_TRY(RangeResult now, co_await store->Range(request));
    Txn txn;
    int64_t value = 0;
    if (now.items.empty()) {
      txn.conditions.push_back(Condition::Absent("counter"));
    } else {
      value = std::stoll(std::string(now.items[0].value.view()));
      txn.conditions.push_back(Condition::Unchanged("counter", now.items[0].mod_revision));
    }
    txn.ops.push_back(Op::Put("counter", Bytes(std::to_string(value + 1))));
    CO_TRY(TxnResult result, co_await store->Commit(std::move(txn)));
    if (result.committed) ++done;
  }
  co_return OkStatus();
}

void CompareAndSetNeverLosesAnIncrement(StoreUnderTest& under_test) {
  constexpr int kTasks = 8;
  constexpr int kTimes = 25;
  std::vector<rt::Task<Status>> tasks;
  for (int i = 0; i < kTasks; ++i) {
    tasks.push_back(CountUp(i % 2 == 0 ? &under_test.first() : &under_test.second(), kTimes));
  }
  for (const Status& status : AwaitAll(under_test, std::move(tasks))) EXPECT_TRUE(status.ok());
  Blocking store(under_test, under_test.first());
  EXPECT_EQ(store.Get("counter")->value.view(), std::to_string(kTasks * kTimes));
  EXPECT_EQ(store.Get("counter")->version, kTasks * kTimes);
}

void ConcurrentClientsAgreeOnOneOrder(StoreUnderTest& under_test) {
  std::vector<Observation> history;
  std::vector<rt::Task<Status>> clients;
  for (int i = 0; i < 8; ++i) {
    ClientOptions options;
    options.name = "client" + std::to_string(i);
    options.seed = static_cast<uint64_t>(i) + 1;
    Store& store = i % 2 == 0 ? under_test.first() : under_test.second();
    clients.push_back(RunClient(&store, std::move(options), &history));
  }
  for (const Status& status : AwaitAll(under_test, std::move(clients))) EXPECT_TRUE(status.ok());
  EXPECT_EQ(history.size(), 800U);
  EXPECT_EQ(FindViolations(history), std::vector<std::string>());
}

void EverythingSurvivesARestart(StoreUnderTest& under_test) {
  Revision at;
  {
    Blocking store(under_test, under_test.first());
    store.Put("a", "1");
    store.Put("b", "2");
    store.Put("a", "3");
    at = store.Delete("b");
  }
  under_test.Reopen();
  Blocking store(under_test, under_test.first());
  EXPECT_EQ(store.revision(), at);
  EXPECT_EQ(Describe(*store.Get("a")), "a=3@4");
  EXPECT_EQ(store.Get("a")->create_revision.value, 2);
  EXPECT_EQ(store.Get("a")->version, 2);
  EXPECT_EQ(DescribeAll(store.GetAll("", Revision{3})),
            (std::vector<std::string>{"a=1@2", "b=2@3"}));
  EXPECT_EQ(store.Put("c", "4"), at.Next());
}

void AClosedStoreRefusesEverything(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  store.Put("a", "1");
  ASSERT_TRUE(under_test.Close().ok());
  Txn txn;
  txn.ops.push_back(Op::Put("b", Bytes("2")));
  EXPECT_EQ(store.Commit(txn).status().reason(), Reason::kUnavailable);
  EXPECT_EQ(store.Range(RangePrefix("")).status().reason(), Reason::kUnavailable);
  EXPECT_EQ(store.StartWatch(WatchPrefix("", {})).status().reason(), Reason::kUnavailable);
  EXPECT_EQ(store.Compact(Revision{2}).reason(), Reason::kUnavailable);
  EXPECT_EQ(store.GrantLease(Duration::Seconds(5)).status().reason(), Reason::kUnavailable);
}

constexpr std::array kContracts = {
    StoreContract{"AnEmptyStoreIsAtRevisionOne", AnEmptyStoreIsAtRevisionOne},
    StoreContract{"EveryChangeHasItsOwnRevision", EveryChangeHasItsOwnRevision},
    StoreContract{"ATransactionHasOneRevision", ATransactionHasOneRevision},
    StoreContract{"AFailedConditionChangesNothing", AFailedConditionChangesNothing},
    StoreContract{"ConditionsThatHoldLetTheTransactionHappen",
                  ConditionsThatHoldLetTheTransactionHappen},
    StoreContract{"NoChangeTakesNoRevision", NoChangeTakesNoRevision},
    StoreContract{"LimitsAreEnforced", LimitsAreEnforced},
    StoreContract{"WhatIsJustWithinTheLimitsIsAccepted", WhatIsJustWithinTheLimitsIsAccepted},
    StoreContract{"OfTwoCreatorsOneWinsAndTheOtherSeesWhat",
                  OfTwoCreatorsOneWinsAndTheOtherSeesWhat},
    StoreContract{"CompareAndSetNeverLosesAnIncrement", CompareAndSetNeverLosesAnIncrement},
    StoreContract{"ConcurrentClientsAgreeOnOneOrder", ConcurrentClientsAgreeOnOneOrder},
    StoreContract{"EverythingSurvivesARestart", EverythingSurvivesARestart},
    StoreContract{"AClosedStoreRefusesEverything", AClosedStoreRefusesEverything},
};

}  // namespace

std::span<const StoreContract> TxnContracts() { return kContracts; }

}  // namespace berth::store
