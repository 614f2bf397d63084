// SPDX-License-Identifier: Apache-2.0
#include "app/backup/state_copy.h"

#include <optional>
#include <utility>

#include "base/strings.h"

namespace berth::app {
namespace {

// 16 values of 1 MiB are 16 MiB at most.
constexpr size_t kReadPage = 16;
constexpr size_t kEmptyPage = 64;
constexpr size_t kTxnBytes = 512 * 1024;
constexpr size_t kTxnOps = 64;
// What a key costs in a transaction beside key and value.
constexpr size_t kOpBytes = 64;

rt::Task<Result<std::vector<store::KeyValue>>> FirstKeys(store::Store* store) {
  store::RangeRequest request;
  request.start = std::string(1, '\0');
  request.end = store::kNoEnd;
  request.limit = kEmptyPage;
  request.keys_only = true;
  CO_TRY(store::RangeResult page, co_await store->Range(std::move(request)));
  co_return std::move(page.items);
}

// "" if it is not there.
rt::Task<Result<std::string>> ReadMark(store::Store* store, std::string_view key) {
  store::RangeRequest request;
  request.start = key;
  CO_TRY(const store::RangeResult found, co_await store->Range(std::move(request)));
  if (found.items.empty()) co_return std::string();
  co_return std::string(found.items[0].value.view());
}

}  // namespace

bool IsCopied(const store::KeyValue& item) {
  return item.lease.value == 0 && item.key != kFillingKey && item.key != kMovedKey &&
         item.key != kBaseKey;
}

rt::Task<Result<std::vector<store::KeyValue>>> StateReader::Next() {
  std::vector<store::KeyValue> values;
  while (values.empty() && !ended_) {
    store::RangeRequest request;
    request.start = after_ + '\0';
    request.end = store::kNoEnd;
    request.limit = kReadPage;
    request.revision = revision_;
    CO_TRY(store::RangeResult page, co_await store_.Range(std::move(request)));
    revision_ = page.revision;
    ended_ = !page.more;
    if (!page.items.empty()) after_ = page.items.back().key;
    for (store::KeyValue& item : page.items) {
      if (IsCopied(item)) values.push_back(std::move(item));
    }
  }
  co_return values;
}

rt::Task<Status> StateWriter::Add(std::string key, Bytes value) {
  const size_t bytes = key.size() + value.size() + kOpBytes;
  if (txn_.ops.size() >= kTxnOps || (bytes_ > 0 && bytes_ + bytes > kTxnBytes)) {
    CO_TRY_STATUS(co_await Flush());
  }
  txn_.ops.push_back(store::Op::Put(std::move(key), std::move(value)));
  bytes_ += bytes;
  co_return OkStatus();
}

rt::Task<Status> StateWriter::Flush() {
  if (txn_.ops.empty()) co_return OkStatus();
  store::Txn txn = std::exchange(txn_, {});
  bytes_ = 0;
  const auto committed = co_await store_.Commit(std::move(txn));
  co_return committed.status();
}

rt::Task<Result<StateSum>> SumState(store::Store& store) {
  StateReader reader(store);
  StateSum sum;
  pki::Sha256Stream digest;
  while (true) {
    CO_TRY(const std::vector<store::KeyValue> values, co_await reader.Next());
    if (values.empty()) break;
    for (const store::KeyValue& item : values) {
      ++sum.keys;
      digest.Add(std::to_string(item.key.size()) + ' ' + std::to_string(item.value.size()) + ' ');
      digest.Add(item.key);
      digest.Add(item.value.view());
    }
  }
  sum.digest = digest.Hex();
  co_return sum;
}

rt::Task<Status> BeginFilling(store::Store& store) {
  CO_TRY(const std::string mark, co_await ReadMark(&store, kFillingKey));
  const bool is_filling = !mark.empty();
  while (true) {
    CO_TRY(const std::vector<store::KeyValue> items, co_await FirstKeys(&store));
    store::Txn txn;
    for (const store::KeyValue& item : items) {
      if (item.key == kFillingKey) continue;
      if (!is_filling) {
        co_return Conflict("the store is not empty: it has " + Quote(item.key));
      }
      txn.ops.push_back(store::Op::Delete(item.key));
    }
    if (txn.ops.empty()) break;
    CO_TRY_STATUS(co_await store.Commit(std::move(txn)));
  }
  if (is_filling) co_return OkStatus();
  store::Txn txn;
  txn.conditions.push_back(store::Condition::Absent(std::string(kFillingKey)));
  txn.ops.push_back(store::Op::Put(std::string(kFillingKey), Bytes("1")));
  CO_TRY(const store::TxnResult marked, co_await store.Commit(std::move(txn)));
  if (!marked.committed) co_return Conflict("another process fills the store");
  co_return OkStatus();
}

rt::Task<Status> EndFilling(store::Store& store) {
  store::Txn txn;
  txn.ops.push_back(store::Op::Delete(std::string(kFillingKey)));
  const auto committed = co_await store.Commit(std::move(txn));
  co_return committed.status();
}

rt::Task<Status> CheckFilled(store::Store& store) {
  CO_TRY(const std::string filling, co_await ReadMark(&store, kFillingKey));
  if (!filling.empty()) {
    co_return Conflict(
        "the store is not whole: what was filling it (berth restore, berth store migrate) did not "
        "come to its end; run that again");
  }
  CO_TRY(const std::string moved, co_await ReadMark(&store, kMovedKey));
  if (moved.empty()) co_return OkStatus();
  co_return Conflict("the store was migrated to " + moved + ": its place is there now");
}

rt::Task<Result<int64_t>> ReadRevisionBase(store::Store& store) {
  CO_TRY(const std::string text, co_await ReadMark(&store, kBaseKey));
  if (text.empty()) co_return int64_t{0};
  const std::optional<int64_t> base = ParseInt(text);
  if (!base || *base < 0) {
    co_return Internal(std::string(kBaseKey) + " holds " + Quote(text) + ", which is no number");
  }
  co_return *base;
}

rt::Task<Status> PutMark(store::Store& store, std::string_view key, std::string value) {
  store::Txn txn;
  txn.ops.push_back(store::Op::Put(std::string(key), Bytes(value)));
  const auto committed = co_await store.Commit(std::move(txn));
  co_return committed.status();
}

}  // namespace berth::app
