// SPDX-License-Identifier: Apache-2.0
// Reads: ranges, pages, old revisions, and compaction.
#include <array>
#include <map>
#include <string>
#include <utility>

#include "store/conformance/blocking.h"
#include "store/conformance/store_contract.h"

namespace berth::store {
namespace {

std::vector<std::string> KeysOf(const RangeResult& result) {
  std::vector<std::string> keys;
  for (const KeyValue& kv : result.items) keys.push_back(kv.key);
  return keys;
}

void RangesAreSortedAndBounded(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  for (const char* key : {"b/2", "a", "b/1", "c", "b/10", "b0", "\xff\xff"}) store.Put(key, "v");
  struct Case {
    std::string start;
    std::string end;
    std::vector<std::string> keys;
  };
  const std::vector<Case> cases = {
      {"b/", PrefixEnd("b/"), {"b/1", "b/10", "b/2"}},
      {"b/1", "", {"b/1"}},
      {"b/3", "", {}},
      {"", PrefixEnd(""), {"a", "b/1", "b/10", "b/2", "b0", "c", "\xff\xff"}},
      {"b0", std::string(kNoEnd), {"b0", "c", "\xff\xff"}},
      {"\xff", PrefixEnd("\xff"), {"\xff\xff"}},
      {"a", "b/10", {"a", "b/1"}},
      {"c", "a", {}},
  };
  for (const Case& c : cases) {
    RangeRequest request;
    request.start = c.start;
    request.end = c.end;
    const Result<RangeResult> result = store.Range(request);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(KeysOf(*result), c.keys) << c.start << " to " << c.end;
    EXPECT_EQ(result->count, c.keys.size());
    EXPECT_FALSE(result->more);
    EXPECT_EQ(result->revision, store.revision());
  }
  RangeRequest nothing;
  EXPECT_EQ(store.Range(nothing).status().reason(), Reason::kBadRequest);
}

void KeysOnlyLeavesTheValuesOut(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const Revision old = store.Put("a", "1");
  store.Put("a", "2");
  for (const Revision at : {Revision{}, old}) {
    RangeRequest request = RangePrefix("a", at);
    request.keys_only = true;
    const Result<RangeResult> result = store.Range(request);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->items.size(), 1U);
    EXPECT_TRUE(result->items[0].value.empty());
    EXPECT_EQ(result->items[0].create_revision, old);
  }
}

void PagesShowOneStateWhileWritersGoOn(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  Blocking other(under_test, under_test.second());
  constexpr int kKeys = 300;
  for (int i = 0; i < kKeys; ++i) store.Put("k" + std::to_string(1000 + i), "old");
  const Revision state = store.revision();
  RangeRequest request = RangePrefix("k");
  request.limit = 7;
  std::vector<KeyValue> all;
  for (int page = 0;; ++page) {
    const Result<RangeResult> result = store.Range(request);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->revision, state);
    EXPECT_LE(result->items.size(), 7U);
    EXPECT_EQ(result->count, kKeys - all.size()) << "page " << page;
    all.insert(all.end(), result->items.begin(), result->items.end());
    // Ahead of the reader: one key changed, one deleted, one new.
    other.Put("k" + std::to_string(1000 + kKeys - 1 - page), "new");
    other.Delete("k" + std::to_string(1000 + page * 11 % kKeys));
    other.Put("k2" + std::to_string(page), "new");
    if (!result->more) break;
    request.start = result->items.back().key + '\0';
    request.revision = result->revision;
  }
  ASSERT_EQ(all.size(), static_cast<size_t>(kKeys));
  for (int i = 0; i < kKeys; ++i) {
    EXPECT_EQ(all[static_cast<size_t>(i)].key, "k" + std::to_string(1000 + i));
    EXPECT_EQ(all[static_cast<size_t>(i)].value.view(), "old");
    EXPECT_LE(all[static_cast<size_t>(i)].mod_revision, state);
  }
}

void EveryOldRevisionStaysReadable(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  std::map<Revision, std::vector<std::string>> states;
  for (int i = 0; i < 60; ++i) {
    const std::string key = "k" + std::to_string(i * 7 % 11);
    const Revision at = i % 5 == 4 ? store.Delete(key) : store.Put(key, std::to_string(i));
    states[at] = DescribeAll(store.GetAll("k"));
  }
  for (const auto& [at, state] : states) {
    EXPECT_EQ(DescribeAll(store.GetAll("k", at)), state) << at.value;
  }
}

void AReadOfTheFutureIsRefused(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const Revision at = store.Put("a", "1");
  EXPECT_EQ(store.Range(RangePrefix("", at.Next())).status().reason(), Reason::kBadRequest);
}

void AReadDoesNotSeeWhatIsNotDurable(StoreUnderTest& under_test) {
  // Both start in the same turn: the commit cannot be durable when the read looks.
  std::optional<Result<TxnResult>> committed;
  std::optional<Result<RangeResult>> read;
  Txn txn;
  txn.ops.push_back(Op::Put("a", Bytes("1")));
  std::vector<rt::Task<Status>> both;
  both.push_back(rt::internal::StoreResult(under_test.first().Commit(txn), &committed));
  both.push_back(rt::internal::StoreResult(under_test.second().Range(RangePrefix("")), &read));
  AwaitAll(under_test, std::move(both));
  ASSERT_TRUE(read->ok() && committed->ok());
  const bool is_before = (*read)->revision < (*committed)->revision;
  EXPECT_EQ((*read)->items.empty(), is_before) << "a read shows the state at its revision";
  if (!under_test.is_remote()) EXPECT_TRUE(is_before);
}

void CompactionForgetsThePastAndNothingElse(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  store.Put("a", "1");
  store.Put("gone", "1");
  store.Delete("gone");
  store.Put("a", "2");
  const Revision compacted = store.Put("b", "1");
  const auto state = DescribeAll(store.GetAll(""));
  store.Put("a", "3");
  const Revision last = store.Delete("b");
  const auto end = DescribeAll(store.GetAll(""));

  EXPECT_EQ(store.Compact(last.Next()).reason(), Reason::kBadRequest);
  ASSERT_TRUE(store.Compact(compacted).ok());
  EXPECT_TRUE(store.Compact(compacted).ok()) << "idempotent";
  EXPECT_TRUE(store.Compact(Revision{2}).ok()) << "already forgotten";
  EXPECT_EQ(store.compacted(), compacted);
  for (int64_t at = 1; at < compacted.value; ++at) {
    EXPECT_EQ(store.Range(RangePrefix("", Revision{at})).status().reason(), Reason::kExpired);
  }
  EXPECT_EQ(DescribeAll(store.GetAll("", compacted)), state);
  EXPECT_EQ(DescribeAll(store.GetAll("")), end);
  EXPECT_EQ(store.revision(), last);
}

void CompactionSurvivesARestart(StoreUnderTest& under_test) {
  Revision last;
  {
    Blocking store(under_test, under_test.first());
    store.Put("a", "1");
    store.Put("b", "1");
    store.Put("a", "2");
    last = store.Delete("b");  // compaction drops this record, yet its revision must not return
    ASSERT_TRUE(store.Compact(last).ok());
  }
  for (int round = 0; round < 2; ++round) {
    under_test.Reopen();
    Blocking store(under_test, under_test.first());
    EXPECT_EQ(store.compacted(), last);
    EXPECT_EQ(store.revision(), last);
    EXPECT_EQ(DescribeAll(store.GetAll("")), std::vector<std::string>{"a=2@4"});
    EXPECT_EQ(store.Range(RangePrefix("", Revision{3})).status().reason(), Reason::kExpired);
  }
  Blocking store(under_test, under_test.first());
  EXPECT_EQ(store.Put("c", "1"), last.Next());
}

void ManyKeysAreCompacted(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const auto key = [](int i) { return "k" + std::to_string(10'000 + i); };
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 6'000; i += 100) {
      std::vector<Op> ops;
      for (int k = i; k < i + 100; ++k) {
        const bool deletes = round == 3 && k % 2 == 0;
        ops.push_back(deletes ? Op::Delete(key(k)) : Op::Put(key(k), Bytes(std::to_string(round))));
      }
      store.Apply(std::move(ops));
    }
  }
  const Revision at = store.revision();
  store.Put("other", "1");
  ASSERT_TRUE(store.Compact(at).ok());
  store.Put("other", "2");
  EXPECT_EQ(store.GetAll("k").size(), 3'000U);
  EXPECT_EQ(store.GetAll("k", at).size(), 3'000U);
  RangeRequest request = RangePrefix("k");
  request.limit = 10;
  EXPECT_EQ(store.Range(request)->count, 3'000U);
  under_test.Reopen();
  Blocking after(under_test, under_test.first());
  EXPECT_EQ(after.GetAll("k").size(), 3'000U);
  EXPECT_EQ(after.Get("other")->value.view(), "2");
}

constexpr std::array kContracts = {
    StoreContract{"RangesAreSortedAndBounded", RangesAreSortedAndBounded},
    StoreContract{"KeysOnlyLeavesTheValuesOut", KeysOnlyLeavesTheValuesOut},
    StoreContract{"PagesShowOneStateWhileWritersGoOn", PagesShowOneStateWhileWritersGoOn},
    StoreContract{"EveryOldRevisionStaysReadable", EveryOldRevisionStaysReadable},
    StoreContract{"AReadOfTheFutureIsRefused", AReadOfTheFutureIsRefused},
    StoreContract{"AReadDoesNotSeeWhatIsNotDurable", AReadDoesNotSeeWhatIsNotDurable},
    StoreContract{"CompactionForgetsThePastAndNothingElse", CompactionForgetsThePastAndNothingElse},
    StoreContract{"CompactionSurvivesARestart", CompactionSurvivesARestart},
    StoreContract{"ManyKeysAreCompacted", ManyKeysAreCompacted},
};

}  // namespace

std::span<const StoreContract> RangeContracts() { return kContracts; }

}  // namespace berth::store
