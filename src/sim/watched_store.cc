// SPDX-License-Identifier: Apache-2.0
#include "sim/watched_store.h"

#include <utility>

namespace berth::sim {
namespace {

Status Dead() { return Unavailable("the process is dead"); }

}  // namespace

rt::Task<Result<store::TxnResult>> WatchedStore::Commit(store::Txn txn) {
  if (dead_) co_return Dead();
  std::vector<std::pair<std::string, bool>> keys;  // and whether it is deleted
  for (const store::Op& op : txn.ops) {
    if (op.lease.value == 0) keys.emplace_back(op.key, op.type == store::Op::Type::kDelete);
  }
  Result<store::TxnResult> result = co_await inner_.Commit(std::move(txn));
  if (dead_ || !result.ok()) {
    for (const auto& [key, is_deleted] : keys) acknowledged_.unknown.insert(key);
    if (dead_) co_return Dead();
    co_return result;
  }
  if (!result->committed) co_return result;
  for (const auto& [key, is_deleted] : keys) {
    Acknowledged::Write& write = acknowledged_.writes[key];
    if (write.revision < result->revision) {
      write = {.revision = result->revision, .is_deleted = is_deleted};
    }
  }
  co_return result;
}

rt::Task<Result<store::RangeResult>> WatchedStore::Range(store::RangeRequest request) {
  if (dead_) co_return Dead();
  co_return co_await inner_.Range(std::move(request));
}
rt::Task<Result<std::unique_ptr<store::Watch>>> WatchedStore::StartWatch(
    store::WatchRequest request) {
  if (dead_) co_return Dead();
  co_return co_await inner_.StartWatch(std::move(request));
}
rt::Task<Status> WatchedStore::Compact(store::Revision revision) {
  if (dead_) co_return Dead();
  co_return co_await inner_.Compact(revision);
}
rt::Task<Result<store::Revision>> WatchedStore::CurrentRevision() {
  if (dead_) co_return Dead();
  co_return co_await inner_.CurrentRevision();
}
rt::Task<Result<store::Revision>> WatchedStore::CompactedRevision() {
  if (dead_) co_return Dead();
  co_return co_await inner_.CompactedRevision();
}
rt::Task<Result<store::LeaseId>> WatchedStore::GrantLease(Duration ttl) {
  if (dead_) co_return Dead();
  co_return co_await inner_.GrantLease(ttl);
}
rt::Task<Status> WatchedStore::RenewLease(store::LeaseId lease) {
  if (dead_) co_return Dead();
  co_return co_await inner_.RenewLease(lease);
}
rt::Task<Status> WatchedStore::RevokeLease(store::LeaseId lease) {
  if (dead_) co_return Dead();
  co_return co_await inner_.RevokeLease(lease);
}

}  // namespace berth::sim
