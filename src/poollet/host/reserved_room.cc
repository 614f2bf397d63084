// SPDX-License-Identifier: Apache-2.0
#include "poollet/host/reserved_room.h"

#include <utility>

#include "base/log.h"
#include "rt/deadline.h"

namespace berth::poollet {

rt::Task<Status> ReservedRoom::Set(iri::HostRuntime* host,
                                   std::vector<iri::Reservation> reservations) {
  runtimes_[host].kept.reset();
  const Status set = co_await rt::WithDeadline(host->SetReservations(reservations), call_limit_);
  Runtime& runtime = runtimes_[host];
  if (set.ok()) runtime.kept = std::move(reservations);
  runtime.keeps_none = set.Is(Reason::kMethodNotSupported);
  co_return runtime.keeps_none ? OkStatus() : set;
}

rt::Task<Status> ReservedRoom::Tell(iri::HostRuntime* host) {
  if (host == nullptr) co_return OkStatus();
  CO_TRY(const rt::Gate::Permit permit, co_await telling_.Enter());
  std::vector<iri::Reservation> wanted = wanted_(host);
  if (runtimes_[host].keeps_none || runtimes_[host].kept == wanted) co_return OkStatus();
  const Status set = co_await Set(host, std::move(wanted));
  if (!set.Is(Reason::kConflict)) {
    runtimes_[host].has_conflict = false;
    co_return set;
  }
  // Something is there that the ledger does not know of. Older reservations, which the runtime
  // would keep on, could be in the way of what the ledger has allowed.
  if (!std::exchange(runtimes_[host].has_conflict, true)) {
    LOG_WARNING("the runtime keeps no room free: {}", set.message());
  }
  std::vector<iri::Reservation> none;
  co_return co_await Set(host, std::move(none));
}

rt::Task<Status> ReservedRoom::Check(iri::HostRuntime* host) {
  if (host == nullptr || runtimes_[host].keeps_none) co_return OkStatus();
  {
    CO_TRY(const rt::Gate::Permit permit, co_await telling_.Enter());
    auto listed = co_await rt::WithDeadline(host->ListReservations(), call_limit_);
    Runtime& runtime = runtimes_[host];
    runtime.kept.reset();
    runtime.keeps_none = listed.status().Is(Reason::kMethodNotSupported);
    if (runtime.keeps_none) co_return OkStatus();
    if (!listed.ok()) co_return listed.status();
    runtime.kept = *std::move(listed);
  }
  co_return co_await Tell(host);
}

}  // namespace berth::poollet
