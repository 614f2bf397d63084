// SPDX-License-Identifier: Apache-2.0
#include "apiserver/fairness/priority.h"

#include <algorithm>

#include "client/certificates/pool_names.h"

namespace berth::apiserver {
namespace {

constexpr std::array<std::string_view, kPriorityLevels> kNames = {
    "exempt", "exempt-listing", "system", "object", "listing", "outside"};

// Hosts, schedulers and the server's own, "berth:hosts"; and pools that speak over the API,
// "compute.ironcore.dev:system:machinepools". Only an administrator puts somebody into these.
bool IsSystemGroup(std::string_view group) {
  return group.starts_with("berth:") || client::IsPoolWord(group);
}

}  // namespace

std::string_view NameOf(PriorityLevel level) { return kNames[static_cast<size_t>(level)]; }

PriorityLevel LevelOf(const Identity& identity, const RequestInfo& request) {
  const bool is_listing = !request.is_resource || request.verb == "list" ||
                          request.verb == "watch" || request.verb == "deletecollection";
  if (identity.InGroup("system:masters")) {
    return is_listing ? PriorityLevel::kExemptListing : PriorityLevel::kExempt;
  }
  if (!identity.InGroup("system:authenticated")) return PriorityLevel::kOutside;
  const bool is_election =
      request.group == "coordination.k8s.io" && request.resource == "leases" && !is_listing;
  if (is_election) return PriorityLevel::kSystem;
  if (std::ranges::any_of(identity.groups, IsSystemGroup)) return PriorityLevel::kSystem;
  return is_listing ? PriorityLevel::kListing : PriorityLevel::kObject;
}

}  // namespace berth::apiserver
