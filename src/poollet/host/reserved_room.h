// SPDX-License-Identifier: Apache-2.0
// The ReservedRoom has runtimes keep free what the ledger keeps free, against whoever else uses
// them. The ledger stays the authority: a runtime keeps at most as much, and is told of less before
// anything is made in it that the ledger has allowed. On-loop only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "iri/host.h"
#include "rt/gate.h"
#include "rt/task.h"

namespace berth::poollet {

class ReservedRoom {
 public:
  // `wanted` says what a runtime shall keep free at this moment, in a stable order.
  using Wanted = std::function<std::vector<iri::Reservation>(const iri::HostRuntime* host)>;
  ReservedRoom(Wanted wanted, Duration call_limit)
      : wanted_(std::move(wanted)), call_limit_(call_limit) {}

  // Tells the runtime, if it does not keep that already. Ok also for a runtime that keeps no
  // reservations, and for one where they do not fit: it keeps nothing then. Any other error leaves
  // open what the runtime keeps; the next call tells it again. Idempotent.
  rt::Task<Status> Tell(iri::HostRuntime* host);
  // Asks what it keeps, which is nothing after some restarts, and tells it.
  rt::Task<Status> Check(iri::HostRuntime* host);

 private:
  struct Runtime {
    std::optional<std::vector<iri::Reservation>> kept;  // nullopt: not known
    bool keeps_none = false;                            // it has no reservations at all
    bool has_conflict = false;
  };
  rt::Task<Status> Set(iri::HostRuntime* host, std::vector<iri::Reservation> reservations);

  const Wanted wanted_;
  const Duration call_limit_;
  std::map<iri::HostRuntime*, Runtime> runtimes_;
  rt::Gate telling_{1};  // so that an older set never follows a newer one
};

}  // namespace berth::poollet
