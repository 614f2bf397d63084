// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/event_leases.h"

#include "apiserver/cache/keys.h"

namespace berth::apiserver {

namespace {

// Events live at most this much longer. 1 h / 5 min = 13 leases at a time.
constexpr Duration kLeaseShared = Duration::Minutes(5);

}  // namespace

rt::Task<Result<store::LeaseId>> EventLeases::For(const meta::KindInfo& kind) {
  const meta::KindInfo& stored = StoredKind(kind);
  if (stored.kind != "Event" || stored.naming != meta::GroupNaming::kFixed) {
    co_return store::LeaseId{};
  }
  if (current_.value != 0 && loop_.Now() - granted_at_ < kLeaseShared) co_return current_;
  const Time now = loop_.Now();
  CO_TRY(current_, co_await store_.GrantLease(kEventTtl + kLeaseShared));
  granted_at_ = now;
  co_return current_;
}

void EventLeases::Forget(store::LeaseId lease) {
  if (current_ == lease) current_ = {};
}

}  // namespace berth::apiserver
