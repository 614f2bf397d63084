// SPDX-License-Identifier: Apache-2.0
#include "controller/reservations/reservation_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace berth::controller {
namespace {

using apis::core::Reservation;

constexpr char kApiVersion[] = "core.ironcore.dev/v1alpha1";

// The one that says most about the whole: room that is there before room that was, and one that
// may still come before one that will not.
constexpr std::string_view kByWeight[] = {apis::core::kReservationAccepted,
                                          apis::core::kReservationBound,
                                          apis::core::kReservationPending,
                                          apis::core::kReservationLost,
                                          apis::core::kReservationRejected,
                                          apis::core::kReservationExpired};

}  // namespace

std::string PartName(const std::string& whole, const std::string& pool) {
  return fmt::format("{}-{:08x}", whole, static_cast<uint32_t>(Fnv1a(pool)));
}

Reservation PartFor(const Reservation& whole, const std::string& pool) {
  Reservation part;
  part.metadata.namespace_ = whole.metadata.namespace_;
  part.metadata.name = PartName(whole.metadata.name, pool);
  part.metadata.labels = whole.metadata.labels;
  part.metadata.labels[std::string(apis::core::kReservationOfLabel)] = whole.metadata.name;
  meta::OwnerReference& owner = part.metadata.owner_references.emplace_back();
  owner.api_version = kApiVersion;
  owner.kind = apis::core::kReservationKind.kind;
  owner.name = whole.metadata.name;
  owner.uid = whole.metadata.uid;
  owner.controller = true;
  owner.block_owner_deletion = true;
  part.spec = whole.spec;
  part.spec.mode = apis::core::kReserveOne;
  part.spec.pools = {pool};
  return part;
}

bool IsForPool(const Reservation& whole,
               const std::string& pool,
               const std::map<std::string, std::string>& labels) {
  const auto& named = whole.spec.pools;
  if (!named.empty() && std::ranges::find(named, pool) == named.end()) return false;
  return std::ranges::all_of(whole.spec.selector, [&labels](const auto& wanted) {
    const auto found = labels.find(wanted.first);
    return found != labels.end() && found->second == wanted.second;
  });
}

void SumUp(const PartStates& parts, WallTime now, Reservation& whole) {
  apis::core::ReservationStatus& status = whole.status;
  status.pools.clear();
  std::map<std::string, size_t, std::less<>> counts;
  for (const auto& [pool, state] : parts) {
    status.pools.push_back({.name = pool, .state = state});
    ++counts[state];
  }
  status.state = apis::core::kReservationPending;
  for (const std::string_view state : kByWeight) {
    if (!counts.contains(state)) continue;
    status.state = state;
    break;
  }
  const size_t kept = counts[std::string(apis::core::kReservationAccepted)] +
                      counts[std::string(apis::core::kReservationBound)];
  const bool is_whole = !parts.empty() && kept == parts.size();
  const std::string message = fmt::format("{} of {} pools keep the room", kept, parts.size());
  apis::core::ReservationCondition wanted{.type = "Scheduled",
                                          .status = is_whole ? "True" : "False",
                                          .reason = is_whole ? "Accepted" : "NotOnAllPools",
                                          .message = message,
                                          .last_transition_time = now};
  auto& conditions = status.conditions;
  const auto found =
      std::ranges::find(conditions, "Scheduled", &apis::core::ReservationCondition::type);
  if (found == conditions.end()) {
    conditions.push_back(std::move(wanted));
    return;
  }
  if (found->status == wanted.status) wanted.last_transition_time = found->last_transition_time;
  *found = std::move(wanted);
}

}  // namespace berth::controller
