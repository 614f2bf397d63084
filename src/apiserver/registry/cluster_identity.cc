// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/cluster_identity.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/registry/write_parts.h"
#include "base/uid.h"
#include "meta/json.h"
#include "meta/type.h"

namespace berth::apiserver {

namespace {

constexpr std::string_view kIdentityKey = "/guard/cluster";

struct Record {
  std::string id;
  int64_t incarnation = 0;
  int64_t start = 0;
  bool rewound = false;
};
BERTH_DESCRIBE(Record,
               "dev.berth.store.ClusterIdentity",
               "Who this cluster is.",
               BERTH_FIELD(id, "id", "UUID of the cluster."),
               BERTH_FIELD(incarnation, "incarnation", "Grows with every restore."),
               BERTH_FIELD(start, "start", "Grows with every start of a server."),
               BERTH_FIELD(rewound, "rewound", "Not all hosts were heard since a restore."))

client::ClusterIdentity FromRecord(Record record) {
  return {.id = std::move(record.id),
          .incarnation = static_cast<uint64_t>(record.incarnation),
          .start = static_cast<uint64_t>(record.start),
          .is_rewound = record.rewound};
}

enum class Step : uint8_t { kStart, kIncarnation, kSettled };

rt::Task<Result<client::ClusterIdentity>> Advance(rt::Loop* loop,
                                                  store::Store* store,
                                                  Step step,
                                                  std::optional<client::ClusterIdentity> replaced) {
  for (int attempt = 0; attempt < kCommitAttempts; ++attempt) {
    store::RangeRequest request;
    request.start = kIdentityKey;
    CO_TRY(const store::RangeResult found, co_await store->Range(std::move(request)));
    Record record;
    store::Revision revision;
    if (found.items.empty()) {
      record.id = NewUid(loop->random());
      record.incarnation = 1;
    } else {
      CO_TRY(record, meta::DecodeJsonAs<Record>(found.items[0].value.view()));
      revision = found.items[0].mod_revision;
      if (replaced && replaced->id == record.id) {
        record.incarnation =
            std::max(record.incarnation, static_cast<int64_t>(replaced->incarnation));
        record.start = std::max(record.start, static_cast<int64_t>(replaced->start));
      }
      if (step == Step::kIncarnation) {
        ++record.incarnation;
        record.rewound = true;
      }
      if (step == Step::kSettled) record.rewound = false;
    }
    if (step == Step::kStart) ++record.start;
    store::Txn txn;
    txn.conditions.push_back({.key = std::string(kIdentityKey), .mod_revision = revision});
    txn.ops.push_back(store::Op::Put(std::string(kIdentityKey), Bytes(meta::EncodeJsonOf(record))));
    CO_TRY(const store::TxnResult result, co_await store->Commit(std::move(txn)));
    if (!result.committed) continue;
    co_return FromRecord(std::move(record));
  }
  co_return Conflict("the cluster's identity: other servers start all the time");
}

}  // namespace

rt::Task<Result<client::ClusterIdentity>> CountStart(rt::Loop& loop, store::Store& store) {
  return Advance(&loop, &store, Step::kStart, std::nullopt);
}

rt::Task<Result<std::optional<client::ClusterIdentity>>> ReadIdentity(store::Store& store) {
  store::RangeRequest request;
  request.start = kIdentityKey;
  CO_TRY(const store::RangeResult found, co_await store.Range(std::move(request)));
  if (found.items.empty()) co_return std::optional<client::ClusterIdentity>();
  CO_TRY(Record record, meta::DecodeJsonAs<Record>(found.items[0].value.view()));
  co_return std::optional(FromRecord(std::move(record)));
}

rt::Task<Result<client::ClusterIdentity>> BeginIncarnation(
    rt::Loop& loop, store::Store& store, std::optional<client::ClusterIdentity> replaced) {
  return Advance(&loop, &store, Step::kIncarnation, std::move(replaced));
}

rt::Task<Status> SettleIncarnation(rt::Loop& loop, store::Store& store) {
  const Result<client::ClusterIdentity> settled =
      co_await Advance(&loop, &store, Step::kSettled, std::nullopt);
  co_return settled.status();
}

}  // namespace berth::apiserver
