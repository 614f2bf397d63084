// SPDX-License-Identifier: Apache-2.0
// Blocking calls on a store under test, so that contracts read as a list of steps.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rt/join_all.h"
#include "store/conformance/store_contract.h"
#include "store/store.h"

namespace berth::store {

template <class T>
T Await(StoreUnderTest& under_test, rt::Task<T> task) {
  std::optional<T> answer;
  const Status ran = under_test.Run(rt::internal::StoreResult(std::move(task), &answer));
  CHECK(ran.ok()) << ran;
  return *std::move(answer);
}

// Starts all tasks in one turn of the loop and waits for all.
template <class T>
std::vector<T> AwaitAll(StoreUnderTest& under_test, std::vector<rt::Task<T>> tasks) {
  return Await(under_test, rt::JoinAll(std::move(tasks)));
}

// A handle whose calls block. CHECKs what must not fail.
class Blocking {
 public:
  Blocking(StoreUnderTest& under_test, Store& store) : under_test_(under_test), store_(store) {}

  Result<TxnResult> Commit(Txn txn) { return Await(under_test_, store_.Commit(std::move(txn))); }
  Result<RangeResult> Range(RangeRequest request) {
    return Await(under_test_, store_.Range(std::move(request)));
  }
  Result<std::unique_ptr<Watch>> StartWatch(WatchRequest request) {
    return Await(under_test_, store_.StartWatch(std::move(request)));
  }
  Status Compact(Revision revision) { return Await(under_test_, store_.Compact(revision)); }
  Result<LeaseId> GrantLease(Duration ttl) { return Await(under_test_, store_.GrantLease(ttl)); }
  Status RenewLease(LeaseId lease) { return Await(under_test_, store_.RenewLease(lease)); }
  Status RevokeLease(LeaseId lease) { return Await(under_test_, store_.RevokeLease(lease)); }
  Revision revision() { return *Await(under_test_, store_.CurrentRevision()); }
  Revision compacted() { return *Await(under_test_, store_.CompactedRevision()); }

  // Unconditional changes that succeed; the revision of the commit.
  Revision Put(std::string key, std::string_view value, LeaseId lease = {});
  Revision Delete(std::string key);
  Revision Apply(std::vector<Op> ops);
  // The key's state now, if it is there.
  std::optional<KeyValue> Get(std::string key);
  std::vector<KeyValue> GetAll(std::string_view prefix, Revision at = {});

 private:
  StoreUnderTest& under_test_;
  Store& store_;
};

// Reads batches until one reaches `through`; the events of all of them. Adds a failure to the test
// if the watch ends before.
std::vector<Event> ReadUntil(StoreUnderTest& under_test, Watch& watch, Revision through);
WatchRequest WatchPrefix(std::string_view prefix, Revision from);
RangeRequest RangePrefix(std::string_view prefix, Revision at = {});

// "key=value@mod" for puts and "key deleted@mod" for deletions: short to compare.
std::string Describe(const Event& event);
std::string Describe(const KeyValue& kv);
template <class T>
std::vector<std::string> DescribeAll(const std::vector<T>& items) {
  std::vector<std::string> lines;
  for (const T& item : items) lines.push_back(Describe(item));
  return lines;
}

}  // namespace berth::store
