// SPDX-License-Identifier: Apache-2.0
#include "apiserver/fairness/priority.h"

namespace berth::apiserver {
namespace {

constexpr std::array<std::string_view, kPriorityLevels> kNames = {
    "exempt", "system", "object", "listing", "outside"};

}  // namespace

std::string_view NameOf(PriorityLevel level) { return kNames[static_cast<size_t>(level)]; }

PriorityLevel LevelOf(const Identity& identity, const RequestInfo& request) {
  if (identity.InGroup("system:masters")) return PriorityLevel::kExempt;
  if (!identity.InGroup("system:authenticated")) return PriorityLevel::kOutside;
  const bool is_listing =
      request.verb == "list" || request.verb == "watch" || request.verb == "deletecollection";
  const bool is_election =
      request.group == "coordination.k8s.io" && request.resource == "leases" && !is_listing;
  if (is_election) return PriorityLevel::kSystem;
  for (const auto& group : identity.groups) {
    if (group.starts_with("berth:")) return PriorityLevel::kSystem;
  }
  return is_listing ? PriorityLevel::kListing : PriorityLevel::kObject;
}

}  // namespace berth::apiserver
