// SPDX-License-Identifier: Apache-2.0
#include "sim/leave_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/placement.h"
#include "apis/core/reservation.h"

namespace berth::sim {
namespace {

using apis::compute::kMachineKind;

// As long as a reason may take: the controller that asks begins with the server.
constexpr Duration kAskedWithin = Duration::Seconds(45);

std::string Show(const PlacedFact& fact) {
  return fmt::format("{} {} ({})", fact.kind->kind, fact.key.name, fact.uid);
}

}  // namespace

void LeaveChecker::OnChange(const Truth::Change& change) {
  if (!change.before || !change.now || change.now->kind != &kMachineKind) return;
  const PlacedFact& now = *change.now;
  const bool is_asked =
      change.before->release.empty() &&
      (now.release == apis::core::kReleaseDrain || now.release == apis::core::kReleaseTaint);
  if (is_asked && now.is_tied) {
    Fail(fmt::format("{} has a disk of {} and is asked to leave it", Show(now), now.pool));
  }
}

// The host is away, so nothing can come: what is there was left behind. Somebody may have made the
// pool schedulable again, and then a binding that was decided before may still arrive. A poollet
// that has stopped by itself is away, whether or not the world has cleared it away yet.
void LeaveChecker::CheckDrained(const PoolFact& pool, const PlacedFact& fact) {
  const HostProcess* host = sight_.HostOf(pool.uid);
  if (!pool.is_drained || !pool.is_cordoned || host == nullptr) return;
  if (host->is_up() && !host->has_left()) return;
  const bool can_leave =
      fact.kind == &apis::core::kReservationKind || (fact.kind == &kMachineKind && !fact.is_tied);
  if (can_leave) Fail(fmt::format("{} is on {}, which left drained", Show(fact), pool.name));
}

bool LeaveChecker::Lingers(const PoolFact& pool, const PlacedFact& fact) {
  if (fact.kind != &kMachineKind || fact.is_tied || fact.is_deleting || !fact.release.empty()) {
    return false;
  }
  return std::ranges::any_of(pool.taints, [&fact](const apis::core::Taint& taint) {
    return taint.effect == apis::core::kNoExecute &&
           !apis::core::TolerateTaints(fact.tolerations, {&taint, 1});
  });
}

void LeaveChecker::OnTick() {
  const std::optional<Time> serving = sight_.ServingSince();
  std::map<std::string, Time> lingering;
  for (const auto& [uid, fact] : sight_.truth().placed()) {
    const auto pool = sight_.truth().pools().find(fact.pool_uid);
    if (pool == sight_.truth().pools().end()) continue;
    CheckDrained(pool->second, fact);
    if (!Lingers(pool->second, fact)) continue;
    const auto known = lingering_.find(uid);
    const Time since = known == lingering_.end() ? sight_.now() : known->second;
    lingering[uid] = since;
    if (!serving || sight_.now() - std::max(since, *serving) < kAskedWithin) continue;
    Fail(
        fmt::format("{} is on {} since {:.1f}s, does not tolerate its taint and is not asked to "
                    "leave",
                    Show(fact),
                    pool->second.name,
                    (since - Time()).to_seconds()));
  }
  lingering_ = std::move(lingering);
}

}  // namespace berth::sim
