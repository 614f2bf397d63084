// SPDX-License-Identifier: Apache-2.0
// What pools in API mode are called: compute.DOMAIN:system:machinepool:NAME, in the group
// compute.DOMAIN:system:machinepools, and the like for volume and bucket pools. DOMAIN is the
// canonical one or an alias, in any spelling: they name the same pool.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "meta/kind.h"
#include "meta/scheme.h"

namespace berth::client {

struct PoolName {
  const meta::KindInfo* pool_kind = nullptr;
  std::string pool;
};

// Nullopt if the user is no pool, or not in the group of its kind of pools.
std::optional<PoolName> PoolNameOf(const meta::Scheme& scheme,
                                   std::string_view user,
                                   std::span<const std::string> groups);
// The same for all users that name one pool, "compute.*:system:machinepool:NAME", and for everybody
// else the user itself. For comparing only.
std::string IdentityOf(std::string_view user);
// Whether a user or group of this name would speak for a part of the cluster, under whatever
// domain.
bool IsPoolWord(std::string_view word);
// The user and the group of a pool under the canonical domain.
std::string PoolUser(const meta::Scheme& scheme,
                     const meta::KindInfo& pool_kind,
                     std::string_view pool);
std::string PoolGroup(const meta::Scheme& scheme, const meta::KindInfo& pool_kind);

}  // namespace berth::client
