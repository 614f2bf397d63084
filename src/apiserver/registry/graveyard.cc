// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/graveyard.h"

#include <algorithm>
#include <utility>

#include "apis/placement.h"
#include "meta/json.h"
#include "meta/type.h"

namespace berth::apiserver {

namespace {

struct Record {
  std::string kind;
  int64_t placement = 0;
};
BERTH_DESCRIBE(Record,
               "dev.berth.store.Tombstone",
               "Something that its host has to remove.",
               BERTH_FIELD(kind, "kind", "Kind of the object."),
               BERTH_FIELD(placement, "placement", "The placement that it had."))

std::string PoolPrefix(std::string_view pool_uid) {
  return std::string(kTombstonePrefix) + std::string(pool_uid) + "/";
}

}  // namespace

store::Op MakeTombstone(const meta::Object& object) {
  const auto& placement = *apis::PlacementOf(object);
  const Record record{.kind = std::string(object.kind().kind), .placement = placement.epoch};
  return store::Op::Put(PoolPrefix(placement.pool_uid) + object.metadata().uid,
                        Bytes(meta::EncodeJsonOf(record)));
}

rt::Task<Result<std::vector<client::Tombstone>>> Graveyard::ListTombstones(std::string pool_uid) {
  const std::string prefix = PoolPrefix(pool_uid);
  store::RangeRequest request;
  request.start = prefix;
  request.end = store::PrefixEnd(prefix);
  CO_TRY(const store::RangeResult found, co_await store_.Range(std::move(request)));
  std::vector<client::Tombstone> tombstones;
  tombstones.reserve(found.items.size());
  for (const store::KeyValue& item : found.items) {
    CO_TRY(Record record, meta::DecodeJsonAs<Record>(item.value.view()));
    tombstones.push_back({.pool_uid = pool_uid,
                          .uid = item.key.substr(prefix.size()),
                          .kind = std::move(record.kind),
                          .placement = record.placement});
  }
  co_return tombstones;
}

rt::Task<Status> Graveyard::ClearTombstones(std::string pool_uid, std::vector<std::string> uids) {
  const std::string prefix = PoolPrefix(pool_uid);
  std::ranges::sort(uids);
  uids.erase(std::ranges::unique(uids).begin(), uids.end());
  for (size_t begin = 0; begin < uids.size(); begin += store::kMaxTxnKeys) {
    store::Txn txn;
    const size_t end = std::min(uids.size(), begin + store::kMaxTxnKeys);
    for (size_t i = begin; i < end; ++i) txn.ops.push_back(store::Op::Delete(prefix + uids[i]));
    CO_TRY_STATUS(co_await store_.Commit(std::move(txn)));
  }
  co_return OkStatus();
}

rt::Task<Status> Graveyard::ClearAll(std::string pool_uid) {
  CO_TRY(const std::vector<client::Tombstone> all, co_await ListTombstones(pool_uid));
  std::vector<std::string> uids;
  uids.reserve(all.size());
  for (const client::Tombstone& tombstone : all) uids.push_back(tombstone.uid);
  co_return co_await ClearTombstones(std::move(pool_uid), std::move(uids));
}

}  // namespace berth::apiserver
