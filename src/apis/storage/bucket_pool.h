// SPDX-License-Identifier: Apache-2.0
// BucketPool: a place where buckets live, announced by a poollet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/pool_parts.h"
#include "apis/core/references.h"
#include "apis/core/taints.h"
#include "meta/kind.h"

namespace berth::apis::storage {

struct BucketPoolSpec {
  std::string provider_id;
  std::vector<core::Taint> taints;
  bool unschedulable = false;
  std::optional<core::LocalObjectReference> host_ref;
  core::ResourceList limits;
  bool operator==(const BucketPoolSpec&) const = default;
};
BERTH_DESCRIBE(
    BucketPoolSpec,
    "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.BucketPoolSpec",
    "Who provides the pool, and who may use it.",
    BERTH_FIELD(provider_id,
                "providerID",
                "Name of the pool at its provider, TYPE://ID. Fixed once a poollet has "
                "announced the pool.",
                {.always = true}),
    BERTH_FIELD(taints, "taints", "Marks that keep buckets away."),
    BERTH_FIELD(unschedulable, "unschedulable", "True: nothing new comes; what is there stays."),
    BERTH_FIELD(host_ref, "hostRef", "The host whose poollet runs the pool. Set once."),
    BERTH_FIELD(limits, "limits", "How much of the capacity that the host reports may be used."))

struct BucketPoolCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  int64_t observed_generation = 0;
  WallTime last_transition_time;
  bool operator==(const BucketPoolCondition&) const = default;
};
BERTH_DESCRIBE(BucketPoolCondition,
               "dev.berth.api.v1alpha1.BucketPoolCondition",
               "One aspect of the pool's health.",
               BERTH_FIELD(type, "type", "What the condition is about.", {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(reason, "reason", "One word for programs."),
               BERTH_FIELD(message, "message", "A sentence for people."),
               BERTH_FIELD(observed_generation,
                           "observedGeneration",
                           "Generation of the pool that the condition speaks of."),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct BucketPoolStatus {
  std::string state;
  std::vector<core::LocalObjectReference> available_bucket_classes;
  std::vector<BucketPoolCondition> conditions;
  std::optional<core::PoolAgent> agent;
  std::map<std::string, std::string> facts;
  bool operator==(const BucketPoolStatus&) const = default;
};
BERTH_DESCRIBE(BucketPoolStatus,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.BucketPoolStatus",
               "What the pool's poollet reports.",
               BERTH_FIELD(state,
                           "state",
                           "Available, Pending or Unavailable.",
                           {.values = {"Available", "Pending", "Unavailable"}}),
               BERTH_FIELD(available_bucket_classes,
                           "availableBucketClasses",
                           "Classes that the pool can make."),
               BERTH_FIELD(conditions, "conditions", "The pool's health, aspect by aspect."),
               BERTH_FIELD(agent, "agent", "The poollet that runs the pool."),
               BERTH_FIELD(facts,
                           "facts",
                           "What the host says of itself; nothing is decided by it."))

struct BucketPool {
  meta::ObjectMeta metadata;
  BucketPoolSpec spec;
  BucketPoolStatus status;
};
BERTH_DESCRIBE(BucketPool,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.BucketPool",
               "A place where buckets live.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "What the operator decides about the pool."),
               BERTH_FIELD(status, "status", "What the pool's poollet reports."))

extern const meta::KindInfo kBucketPoolKind;
inline const meta::KindInfo& BerthKind(meta::Tag<BucketPool>) { return kBucketPoolKind; }

// Whether a poollet has reported anything about the pool.
bool IsAnnounced(const BucketPoolStatus& status);

}  // namespace berth::apis::storage
