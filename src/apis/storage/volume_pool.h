// SPDX-License-Identifier: Apache-2.0
// VolumePool: a place where volumes live, announced by a poollet.
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

namespace berth::apis::storage {

// Absent is Any. Nobody writes the default into objects.
inline constexpr std::string_view kReachHost = "Host";
inline constexpr std::string_view kReachZone = "Zone";
inline constexpr std::string_view kReachRegion = "Region";
inline constexpr std::string_view kReachAny = "Any";

struct VolumePoolSpec {
  std::string provider_id;
  std::vector<core::Taint> taints;
  bool unschedulable = false;
  std::optional<core::LocalObjectReference> host_ref;
  core::ResourceList limits;
  std::string reach;
  bool operator==(const VolumePoolSpec&) const = default;
};
BERTH_DESCRIBE(
    VolumePoolSpec,
    "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumePoolSpec",
    "Who provides the pool, and who may use it.",
    BERTH_FIELD(provider_id,
                "providerID",
                "Name of the pool at its provider, TYPE://ID. Fixed once a poollet has "
                "announced the pool.",
                {.always = true}),
    BERTH_FIELD(taints, "taints", "Marks that keep volumes away."),
    BERTH_FIELD(unschedulable, "unschedulable", "True: nothing new comes; what is there stays."),
    BERTH_FIELD(host_ref, "hostRef", "The host whose poollet runs the pool. Set once."),
    BERTH_FIELD(limits, "limits", "How much of the capacity that the host reports may be used."),
    BERTH_FIELD(reach,
                "reach",
                "From which machine pools the volumes can be used: those of the same "
                "host, zone or region, or Any (also when empty).",
                {.values = {"Host", "Zone", "Region", "Any"}}))

struct VolumePoolCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  int64_t observed_generation = 0;
  WallTime last_transition_time;
  bool operator==(const VolumePoolCondition&) const = default;
};
BERTH_DESCRIBE(VolumePoolCondition,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumePoolCondition",
               "One aspect of the pool's health.",
               BERTH_FIELD(type, "type", "What the condition is about.", {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(reason, "reason", "One word for programs.", {.always = true}),
               BERTH_FIELD(message, "message", "A sentence for people.", {.always = true}),
               BERTH_FIELD(observed_generation,
                           "observedGeneration",
                           "Generation of the pool that the condition speaks of."),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct VolumePoolStatus {
  std::string state;
  std::vector<VolumePoolCondition> conditions;
  std::vector<core::LocalObjectReference> available_volume_classes;
  core::ResourceList capacity;
  core::ResourceList allocatable;
  std::optional<core::PoolAgent> agent;
  std::map<std::string, std::string> facts;
};
BERTH_DESCRIBE(VolumePoolStatus,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumePoolStatus",
               "What the pool's poollet reports.",
               BERTH_FIELD(state,
                           "state",
                           "Available, Pending or Unavailable.",
                           {.values = {"Available", "Pending", "Unavailable"}}),
               BERTH_FIELD(conditions, "conditions", "The pool's health, aspect by aspect."),
               BERTH_FIELD(available_volume_classes,
                           "availableVolumeClasses",
                           "Classes that the pool can make."),
               BERTH_FIELD(capacity,
                           "capacity",
                           "Bytes in total: storage where it is known, and for each class under "
                           "class/volume.NAME."),
               BERTH_FIELD(allocatable,
                           "allocatable",
                           "Bytes still free, for each class under class/volume.NAME."),
               BERTH_FIELD(agent, "agent", "The poollet that runs the pool."),
               BERTH_FIELD(facts,
                           "facts",
                           "What the host says of itself; nothing is decided by it."))

struct VolumePool {
  meta::ObjectMeta metadata;
  VolumePoolSpec spec;
  VolumePoolStatus status;
};
BERTH_DESCRIBE(VolumePool,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumePool",
               "A place where volumes live.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "What the operator decides about the pool."),
               BERTH_FIELD(status, "status", "What the pool's poollet reports."))

extern const meta::KindInfo kVolumePoolKind;
inline const meta::KindInfo& BerthKind(meta::Tag<VolumePool>) { return kVolumePoolKind; }

// The reach, with what absent means.
inline std::string_view ReachOf(const VolumePoolSpec& spec) {
  return spec.reach.empty() ? kReachAny : std::string_view(spec.reach);
}

// Whether a poollet has reported anything about the pool.
bool IsAnnounced(const VolumePoolStatus& status);

}  // namespace berth::apis::storage
