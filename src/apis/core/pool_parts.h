// SPDX-License-Identifier: Apache-2.0
// What all pools have in common beyond what IronCore knows: who runs them, and how they speak.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "apis/core/references.h"
#include "apis/core/resources.h"
#include "apis/core/rules.h"
#include "base/time.h"
#include "meta/type.h"

namespace berth::apis::core {

// How a pool's poollet speaks to the server; fixed by its first announcement.
inline constexpr std::string_view kPoolModeSession = "Session";
inline constexpr std::string_view kPoolModeApi = "API";

// Conditions of pools.
inline constexpr std::string_view kPoolReady = "Ready";
inline constexpr std::string_view kPoolOrphans = "Orphans";
inline constexpr std::string_view kPoolFenceReady = "FenceReady";
inline constexpr std::string_view kPoolDrained = "Drained";

// A host that leaves with a drain, on its pools. All of them go when it comes back.
//
// When it said so: machines and reservations of the pool are sent elsewhere.
inline constexpr std::string_view kDrainRequestedAnnotation = "berth.dev/drain-requested";
// The request that is over, by its time: what could leave has left, or the host waits no longer.
inline constexpr std::string_view kDrainDoneAnnotation = "berth.dev/drain-done";
// "true": the pool was not cordoned before, and is not when the host comes back.
inline constexpr std::string_view kDrainCordonedAnnotation = "berth.dev/drain-cordoned";

// Keeps a pool that is to be deleted while anything is bound to it; set and removed by the server.
inline constexpr std::string_view kPoolInUseFinalizer = "berth.dev/pool-in-use";

struct PoolAgent {
  std::string mode;
  std::string version;
  WallTime session_since;
  int32_t lease_seconds = 0;
  bool operator==(const PoolAgent&) const = default;
};
BERTH_DESCRIBE(
    PoolAgent,
    "dev.berth.api.v1alpha1.PoolAgent",
    "The poollet of a pool.",
    BERTH_FIELD(mode,
                "mode",
                "How the poollet speaks to the server: in a session, or with the API. "
                "Fixed once set.",
                {.values = {"Session", "API"}}),
    BERTH_FIELD(version, "version", "Version of the poollet."),
    BERTH_FIELD(session_since,
                "sessionSince",
                "When the present session began; absent without one."),
    BERTH_FIELD(lease_seconds,
                "leaseSeconds",
                "How long machines that may be moved live on without contact: as the host was "
                "told in its last session, or longer while what it was told before may hold."))

// The rules of the fields that every pool's spec has. Limits are amounts.
inline void CheckPoolSpec(const std::optional<LocalObjectReference>& host_ref,
                          const ResourceList& limits,
                          meta::FieldErrors& errors) {
  CheckReference(host_ref, SpecPath().Child("hostRef"), errors);
  CheckNotNegative(limits, SpecPath().Child("limits"), errors);
}
inline void CheckPoolAgent(const std::optional<PoolAgent>& now,
                           const std::optional<PoolAgent>& before,
                           meta::FieldErrors& errors) {
  const std::string mode = now ? now->mode : std::string();
  const std::string mode_before = before ? before->mode : std::string();
  CheckSetOnce(mode, mode_before, StatusPath().Child("agent").Child("mode"), errors);
}

}  // namespace berth::apis::core
