// SPDX-License-Identifier: Apache-2.0
#include "client/leader/leader_lease.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::client {

rt::Task<Status> LeaderLease::Run() {
  for (;;) {
    attempted_ = loop_.Now();
    Result<bool> held = co_await rt::WithDeadline(TryHold(), options_.attempt_limit);
    if (held.status().Is(Reason::kCancelled)) co_return held.status();
    const bool is_mine = held.ok() && *held;
    if (!held.ok()) {
      LOG_DEBUG("lease {}/{}: {}",
                options_.lease.namespace_,
                options_.lease.name,
                held.status().ToString());
    }
    // Whoever leads may fail to renew for a while: the lease is ours until it is over.
    const bool is_others = held.ok() && !is_mine;
    if (term_ && (is_others || loop_.Now() >= held_until_)) SetTerm(std::nullopt);
    Duration pause = is_mine ? options_.renew_every : options_.try_again;
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
    lease.metadata.annotations = options_.annotations;
    lease.spec = Mine({});
    const int32_t term = *lease.spec.lease_transitions;
    const WriteOptions options;
    CO_TRY_STATUS(co_await client_.Create(meta::Object::Of(apis::k8s::kLeaseKind, std::move(lease)),
                                          options));
    Held(term);
    co_return true;
  }
  CO_TRY_STATUS(found);
  auto& lease = found->as<apis::k8s::Lease>();
  if (lease.spec.holder_identity != options_.holder && !MayTake(lease.spec)) {
    if (options_.on_other) options_.on_other(lease.metadata.annotations);
    co_return false;
  }
  lease.spec = Mine(lease.spec);
  for (const auto& [key, value] : options_.annotations) lease.metadata.annotations[key] = value;
  const int32_t term = *lease.spec.lease_transitions;
  // Conditioned on the state read: of two that try at the same time one gets a Conflict.
  const WriteOptions options;
  CO_TRY_STATUS(co_await client_.Update(*std::move(found), options));
  Held(term);
  co_return true;
}

void LeaderLease::Held(int64_t term) {
  held_until_ = attempted_ + options_.duration;
  SetTerm(term);
}

rt::Task<Status> LeaderLease::Release() {
  CO_TRY(meta::Object found, co_await client_.Get(apis::k8s::kLeaseKind, options_.lease));
  auto& spec = found.as<apis::k8s::Lease>().spec;
  if (spec.holder_identity != options_.holder) co_return OkStatus();
  spec.holder_identity.reset();
  const WriteOptions options;
  const Result<meta::Object> updated = co_await client_.Update(std::move(found), options);
  co_return updated.status();
}

bool LeaderLease::MayTake(const apis::k8s::LeaseSpec& spec) {
  const bool is_free = !spec.holder_identity || spec.holder_identity->empty();
  if (is_free || options_.take_over == TakeOver::kAtOnce ||
      (options_.is_dead && options_.is_dead(*spec.holder_identity))) {
    seen_since_.reset();
    return true;
  }
  const Time now = loop_.Now();
  if (!seen_since_ || seen_ != spec) {
    seen_ = spec;
    seen_since_ = now;
    return false;
  }
  return now > SeenUntil();
}

Time LeaderLease::SeenUntil() const {
  const Duration duration = Duration::Seconds(seen_.lease_duration_seconds.value_or(0));
  return *seen_since_ + std::max(duration, options_.duration);
}

std::optional<Time> LeaderLease::other_until() const {
  if (term_ || !seen_since_) return std::nullopt;
  return SeenUntil();
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
