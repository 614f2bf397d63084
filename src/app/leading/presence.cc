// SPDX-License-Identifier: Apache-2.0
#include "app/leading/presence.h"

#include "base/log.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kTtl = Duration::Seconds(10);

}  // namespace

rt::Task<Status> Presence::Mark() {
  CO_TRY(const store::LeaseId lease, co_await store_.GrantLease(kTtl));
  store::Txn txn;
  txn.ops.push_back(store::Op::Put(key_, Bytes(name_), lease));
  CO_TRY_STATUS(co_await store_.Commit(std::move(txn)));
  lease_ = lease;
  co_return OkStatus();
}

rt::Task<Status> Presence::Keep() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kTtl / 4));
    Status kept = co_await store_.RenewLease(lease_);
    if (kept.Is(Reason::kNotFound)) kept = co_await Mark();
    if (kept.Is(Reason::kCancelled)) co_return kept;
    // Otherwise it is the store's own trouble: there is a next time.
    if (!kept.ok()) LOG_DEBUG("{}: {}", key_, kept.message());
  }
}

rt::Task<Status> Presence::Leave() {
  const Status revoked = co_await store_.RevokeLease(lease_);
  co_return revoked.Is(Reason::kNotFound) ? OkStatus() : revoked;
}

}  // namespace berth::app
