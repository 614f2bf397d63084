// SPDX-License-Identifier: Apache-2.0
#include "app/leading/presence.h"

#include "base/log.h"
#include "base/strings.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kTtl = Duration::Seconds(10);
constexpr Duration kRenewal = kTtl / 4;
static_assert(kRenewal < kMarkedAgain);
constexpr std::string_view kGuardPrefix = "/guard/";

}  // namespace

// A server that serves from a store keeps a key there with a lease.
rt::Task<Status> CheckNobodyServes(store::Store& store) {
  store::RangeRequest request;
  request.start = kGuardPrefix;
  request.end = store::PrefixEnd(kGuardPrefix);
  CO_TRY(const store::RangeResult guards, co_await store.Range(std::move(request)));
  for (const store::KeyValue& item : guards.items) {
    if (item.lease.value == 0) continue;
    co_return Conflict("a server serves from this store, or did some seconds ago: " +
                       Quote(item.key) + " is held by " + Quote(item.value.view()));
  }
  co_return OkStatus();
}

rt::Task<Status> CheckNobodyServesEmptied(store::Store& store) {
  CO_TRY_STATUS(co_await CheckNobodyServes(store));
  CO_TRY_STATUS(co_await rt::Sleep(kMarkedAgain));
  co_return co_await CheckNobodyServes(store);
}

rt::Task<Status> Presence::Mark() {
  CO_TRY(const store::LeaseId lease, co_await store_.GrantLease(kTtl));
  store::Txn txn;
  txn.ops.push_back(store::Op::Put(key_, Bytes(name_), lease));
  CO_TRY_STATUS(co_await store_.Commit(std::move(txn)));
  lease_ = lease;
  co_return OkStatus();
}

rt::Task<Status> Presence::Renew() {
  const Status renewed = co_await store_.RenewLease(lease_);
  if (renewed.Is(Reason::kNotFound)) co_return co_await Mark();
  CO_TRY_STATUS(renewed);
  // Whoever empties the store for a restore takes the key, and the lease stays.
  store::RangeRequest request;
  request.start = key_;
  request.keys_only = true;
  CO_TRY(const store::RangeResult found, co_await store_.Range(std::move(request)));
  if (!found.items.empty()) co_return OkStatus();
  co_return co_await Mark();
}

rt::Task<Status> Presence::Keep() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kRenewal));
    const Status kept = co_await Renew();
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
