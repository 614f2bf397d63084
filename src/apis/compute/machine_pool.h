// SPDX-License-Identifier: Apache-2.0
// MachinePool: a place where machines run, announced by a poollet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/pool_parts.h"
#include "apis/core/references.h"
#include "apis/core/resources.h"
#include "apis/core/taints.h"
#include "meta/kind.h"

namespace berth::apis::compute {

inline constexpr std::string_view kPoolReadyCondition = "Ready";

struct MachinePoolSpec {
  std::string provider_id;
  std::vector<core::Taint> taints;
  bool unschedulable = false;
  std::optional<core::LocalObjectReference> host_ref;
  core::ResourceList limits;
  bool operator==(const MachinePoolSpec&) const = default;
};
BERTH_DESCRIBE(
    MachinePoolSpec,
    "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachinePoolSpec",
    "Who provides the pool, and who may use it.",
    BERTH_FIELD(provider_id,
                "providerID",
                "Name of the pool at its provider, TYPE://ID. Fixed once a poollet has "
                "announced the pool.",
                {.always = true}),
    BERTH_FIELD(taints, "taints", "Marks that keep machines away."),
    BERTH_FIELD(unschedulable, "unschedulable", "True: nothing new comes; what is there stays."),
    BERTH_FIELD(host_ref, "hostRef", "The host whose poollet runs the pool. Set once."),
    BERTH_FIELD(limits, "limits", "How much of the capacity that the host reports may be used."))

struct MachinePoolCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  int64_t observed_generation = 0;
  WallTime last_update_time;
  WallTime last_transition_time;
  bool operator==(const MachinePoolCondition&) const = default;
};
BERTH_DESCRIBE(MachinePoolCondition,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachinePoolCondition",
               "One aspect of the pool's health.",
               BERTH_FIELD(type, "type", "What the condition is about: Ready.", {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(reason, "reason", "One word for programs.", {.always = true}),
               BERTH_FIELD(message, "message", "A sentence for people.", {.always = true}),
               BERTH_FIELD(observed_generation,
                           "observedGeneration",
                           "Generation of the pool that the condition speaks of."),
               BERTH_FIELD(last_update_time,
                           "lastUpdateTime",
                           "When the condition was last looked at."),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct MachinePoolAddress {
  std::string type;
  std::string address;
  bool operator==(const MachinePoolAddress&) const = default;
};
BERTH_DESCRIBE(
    MachinePoolAddress,
    "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachinePoolAddress",
    "Where the pool's poollet can be reached.",
    BERTH_FIELD(type,
                "type",
                "How to read the address.",
                {.required = true,
                 .values = {"Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"}}),
    BERTH_FIELD(address, "address", "The address.", {.required = true}))

struct DaemonEndpoint {
  int32_t port = 0;
  bool operator==(const DaemonEndpoint&) const = default;
};
BERTH_DESCRIBE(DaemonEndpoint,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.DaemonEndpoint",
               "Where a daemon listens.",
               BERTH_FIELD(port, "port", "TCP port; 0 for none.", {.always = true}))

struct MachinePoolDaemonEndpoints {
  DaemonEndpoint machinepoollet_endpoint;
  bool operator==(const MachinePoolDaemonEndpoints&) const = default;
};
BERTH_DESCRIBE(MachinePoolDaemonEndpoints,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachinePoolDaemonEndpoints",
               "Where the daemons of the pool listen.",
               BERTH_FIELD(machinepoollet_endpoint,
                           "machinepoolletEndpoint",
                           "Where the poollet listens for exec."))

struct MachinePoolStatus {
  std::string state;
  std::vector<MachinePoolCondition> conditions;
  std::vector<core::LocalObjectReference> available_machine_classes;
  std::vector<MachinePoolAddress> addresses;
  MachinePoolDaemonEndpoints daemon_endpoints;
  core::ResourceList capacity;
  core::ResourceList allocatable;
  std::optional<core::PoolAgent> agent;
  std::map<std::string, std::string> facts;
};
BERTH_DESCRIBE(
    MachinePoolStatus,
    "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachinePoolStatus",
    "What the pool's poollet reports.",
    BERTH_FIELD(state,
                "state",
                "Ready, Pending, Error or Offline; the condition Ready says more.",
                {.values = {"Ready", "Pending", "Error", "Offline"}}),
    BERTH_FIELD(conditions, "conditions", "The pool's health, aspect by aspect."),
    BERTH_FIELD(available_machine_classes,
                "availableMachineClasses",
                "Classes that the pool can run."),
    BERTH_FIELD(addresses, "addresses", "Where the poollet can be reached."),
    BERTH_FIELD(daemon_endpoints, "daemonEndpoints", "Where the daemons of the pool listen."),
    BERTH_FIELD(capacity,
                "capacity",
                "What the host has: cpu, memory and more where it is known; machines in "
                "total for each class under class/machine.NAME."),
    BERTH_FIELD(allocatable,
                "allocatable",
                "Machines that still fit, for each class under class/machine.NAME."),
    BERTH_FIELD(agent, "agent", "The poollet that runs the pool."),
    BERTH_FIELD(facts, "facts", "What the host says of itself; nothing is decided by it."))

struct MachinePool {
  meta::ObjectMeta metadata;
  MachinePoolSpec spec;
  MachinePoolStatus status;
};
BERTH_DESCRIBE(MachinePool,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachinePool",
               "A place where machines run.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "What the operator decides about the pool."),
               BERTH_FIELD(status, "status", "What the pool's poollet reports."))

extern const meta::KindInfo kMachinePoolKind;
inline const meta::KindInfo& BerthKind(meta::Tag<MachinePool>) { return kMachinePoolKind; }

// Whether a poollet has reported anything about the pool.
bool IsAnnounced(const MachinePoolStatus& status);

}  // namespace berth::apis::compute
