// SPDX-License-Identifier: Apache-2.0
#include "store/conformance/blocking.h"

#include <fmt/format.h>

namespace berth::store {

Revision Blocking::Apply(std::vector<Op> ops) {
  Txn txn;
  txn.ops = std::move(ops);
  const Result<TxnResult> result = Commit(std::move(txn));
  CHECK(result.ok()) << result.status();
  CHECK(result->committed);
  return result->revision;
}

Revision Blocking::Put(std::string key, std::string_view value, LeaseId lease) {
  return Apply({Op::Put(std::move(key), Bytes(value), lease)});
}

Revision Blocking::Delete(std::string key) { return Apply({Op::Delete(std::move(key))}); }

std::optional<KeyValue> Blocking::Get(std::string key) {
  RangeRequest request;
  request.start = std::move(key);
  Result<RangeResult> result = Range(std::move(request));
  CHECK(result.ok()) << result.status();
  if (result->items.empty()) return std::nullopt;
  return result->items.front();
}

std::vector<KeyValue> Blocking::GetAll(std::string_view prefix, Revision at) {
  Result<RangeResult> result = Range(RangePrefix(prefix, at));
  CHECK(result.ok()) << result.status();
  return result->items;
}

std::vector<Event> ReadUntil(StoreUnderTest& under_test, Watch& watch, Revision through) {
  std::vector<Event> events;
  while (true) {
    Result<WatchBatch> batch = Await(under_test, watch.Next());
    if (!batch.ok()) {
      ADD_FAILURE() << "the watch ended before revision " << through.value << ": "
                    << batch.status();
      return events;
    }
    for (Event& event : batch->events) events.push_back(std::move(event));
    if (batch->revision >= through) return events;
  }
}

WatchRequest WatchPrefix(std::string_view prefix, Revision from) {
  return {.start = std::string(prefix), .end = PrefixEnd(prefix), .from = from};
}

RangeRequest RangePrefix(std::string_view prefix, Revision at) {
  RangeRequest request;
  request.start = prefix;
  request.end = PrefixEnd(prefix);
  request.revision = at;
  return request;
}

std::string Describe(const KeyValue& kv) {
  return fmt::format("{}={}@{}", kv.key, kv.value.view(), kv.mod_revision.value);
}

std::string Describe(const Event& event) {
  if (event.type == Event::Type::kPut) return Describe(event.kv);
  return fmt::format("{} deleted@{}", event.kv.key, event.kv.mod_revision.value);
}

}  // namespace berth::store
