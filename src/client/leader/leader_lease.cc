// SPDX-License-Identifier: Apache-2.0
#include "client/leader/leader_lease.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::client {
namespace {

// Attempts that fail, or find another leader, are made this often.
constexpr Duration kTryAgain = Duration::Millis(500);

}  // namespace

rt::Task<Status> LeaderLease::Run() {
  for (;;) {
    const Time started = loop_.Now();
    // An attempt that hangs must not outlast what it is to renew.
    Result<bool> held = co_await rt::WithDeadline(TryHold(), options_.renew_every);
    if (held.status().Is(Reason::kCancelled)) co_return held.status();
    if (held.ok() && *held) {
      held_until_ = started + options_.duration;
    } else {
      if (!held.ok()) {
        LOG_DEBUG("lease {}/{}: {}",
                  options_.lease.namespace_,
                  options_.lease.name,
                  held.status().ToString());
      }
      // Whoever leads may fail to renew for a while: the lease is ours until it is over.
      const bool other = held.ok();
      if (term_ && (other || loop_.Now() >= held_until_)) SetTerm(std::nullopt);
    }
    Duration pause = held.ok() && *held ? options_.renew_every : kTryAgain;
    if (term_) pause = std::min(pause, std::max(held_until_ - loop_.Now(), Duration::Millis(1)));
    CO_TRY_STATUS(co_await rt::Sleep(pause));
    if (term_ && loop_.Now() >= held_until_) SetTerm(std::nullopt);
  }
}

rt::Task<Result<bool>> LeaderLease::TryHold() {
  Result<meta::Object> found = co_await client_.Get(apis::k8s::kLeaseKind, options_.lease);
  if (found.status().Is(Reason::kNotFound)) {
    apis::k8s::Lease lease;
    lease.metadata.namespace_ = options_.lease.namespace_;
    lease.metadata.name = options_.lease.name;
    lease.spec = Mine({});
    const int32_t term = *lease.spec.lease_transitions;
    const WriteOptions options;
    CO_TRY_STATUS(co_await client_.Create(meta::Object::Of(apis::k8s::kLeaseKind, std::move(lease)),
                                          options));
    SetTerm(term);
    co_return true;
  }
  CO_TRY_STATUS(found);
  auto& lease = found->as<apis::k8s::Lease>();
  if (lease.spec.holder_identity != options_.holder && !MayTake(lease.spec)) co_return false;
  lease.spec = Mine(lease.spec);
  const int32_t term = *lease.spec.lease_transitions;
  // Conditioned on the state read: of two that try at the same time one gets a Conflict.
  const WriteOptions options;
  CO_TRY_STATUS(co_await client_.Update(*std::move(found), options));
  SetTerm(term);
  co_return true;
}

bool LeaderLease::MayTake(const apis::k8s::LeaseSpec& spec) {
  const bool is_free = !spec.holder_identity || spec.holder_identity->empty();
  if (is_free || options_.take_over == TakeOver::kAtOnce) return true;
  const Time now = loop_.Now();
  if (!seen_since_ || seen_ != spec) {
    seen_ = spec;
    seen_since_ = now;
    return false;
  }
  const Duration duration = Duration::Seconds(spec.lease_duration_seconds.value_or(0));
  return now - *seen_since_ > std::max(duration, options_.duration);
}

apis::k8s::LeaseSpec LeaderLease::Mine(const apis::k8s::LeaseSpec& before) const {
  const WallTime now = loop_.WallNow();
  apis::k8s::LeaseSpec spec = before;
  if (before.holder_identity != options_.holder) {
    spec.holder_identity = options_.holder;
    spec.acquire_time = meta::MicroTime{now};
    spec.lease_transitions = before.lease_transitions.value_or(0) + 1;
  }
  spec.lease_duration_seconds = static_cast<int32_t>(options_.duration.seconds());
  spec.renew_time = meta::MicroTime{now};
  return spec;
}

void LeaderLease::SetTerm(std::optional<int64_t> term) {
  if (term == term_) return;
  term_ = term;
  seen_since_.reset();
  on_change_(term);
}

}  // namespace berth::client
