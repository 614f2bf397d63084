// SPDX-License-Identifier: Apache-2.0
// What is right for pools of every kind, and what tables show of all of them. A Pool has
// spec.{taints,hostRef,limits,providerID,unschedulable}, status.{agent,conditions} and, in its own
// namespace, IsAnnounced(status).
#pragma once

#include <string>

#include "apis/core/pool_parts.h"
#include "apis/core/rules.h"
#include "apis/core/taints.h"
#include "meta/kind.h"

namespace berth::apis::core {

template <class Pool>
void CheckPool(const Pool& pool, meta::FieldErrors& errors) {
  CheckTaints(pool.spec.taints, SpecPath().Child("taints"), errors);
  CheckPoolSpec(pool.spec.host_ref, pool.spec.limits, errors);
}

template <class Pool>
void CheckPoolUpdate(const Pool& now, const Pool& before, meta::FieldErrors& errors) {
  CheckPoolProviderId(now.spec.provider_id,
                      before.spec.provider_id,
                      IsAnnounced(before.status) ? Announced::kYes : Announced::kNo,
                      errors);
  CheckSetOnce(now.spec.host_ref, before.spec.host_ref, SpecPath().Child("hostRef"), errors);
}

template <class Pool>
void CheckPoolStatus(const Pool& now, const Pool& before, meta::FieldErrors& errors) {
  CheckPoolAgent(now.status.agent, before.status.agent, errors);
  CheckConditions(now.status.conditions, StatusPath().Child("conditions"), errors);
}

template <class Pool>
std::string StateCell(const Pool& pool) {
  return OrUnknown(pool.status.state) + (pool.spec.unschedulable ? ",Cordoned" : "");
}
template <class Pool>
constexpr meta::Column kStateColumn = {.name = "State",
                                       .doc = "State of the pool; Cordoned: nothing new may come.",
                                       .cell = meta::Hook<&StateCell<Pool>>};

// On a pool whose poollet was given wide rights: `berth pool allow-legacy`.
inline constexpr char kLegacyAccessAnnotation[] = "berth.dev/legacy-access";

template <class Pool>
std::string AgentModeCell(const Pool& pool) {
  const std::string mode = pool.status.agent ? pool.status.agent->mode : "";
  if (pool.metadata.annotations.contains(kLegacyAccessAnnotation)) return mode + " (legacy rights)";
  return OrNone(mode);
}
template <class Pool>
constexpr meta::Column kAgentModeColumn = {.name = "Mode",
                                           .doc = "How the poollet speaks to the server.",
                                           .priority = 1,
                                           .cell = meta::Hook<&AgentModeCell<Pool>>};

}  // namespace berth::apis::core
