// SPDX-License-Identifier: Apache-2.0
// Bucket: a store of objects by key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apis/core/placement.h"
#include "apis/core/references.h"
#include "apis/core/taints.h"
#include "meta/kind.h"

namespace berth::apis::storage {

struct BucketSpec {
  std::optional<core::LocalObjectReference> bucket_class_ref;
  std::map<std::string, std::string> bucket_pool_selector;
  std::optional<core::LocalObjectReference> bucket_pool_ref;
  std::vector<core::Toleration> tolerations;
  bool operator==(const BucketSpec&) const = default;
};
BERTH_DESCRIBE(BucketSpec,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.BucketSpec",
               "The bucket wanted.",
               BERTH_FIELD(bucket_class_ref,
                           "bucketClassRef",
                           "Class of the bucket; without one, the bucket was made elsewhere and is "
                           "only known here. Cannot change."),
               BERTH_FIELD(bucket_pool_selector,
                           "bucketPoolSelector",
                           "Labels that the pool must have."),
               BERTH_FIELD(bucket_pool_ref,
                           "bucketPoolRef",
                           "The pool that holds the bucket; usually set by the scheduler. Set "
                           "once."),
               BERTH_FIELD(tolerations, "tolerations", "Taints of pools that are accepted."))

struct BucketAccess {
  std::optional<core::LocalObjectReference> secret_ref;
  std::string endpoint;
  bool operator==(const BucketAccess&) const = default;
};
BERTH_DESCRIBE(BucketAccess,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.BucketAccess",
               "How to reach the bucket.",
               BERTH_FIELD(secret_ref, "secretRef", "A Secret with what is needed for access."),
               BERTH_FIELD(endpoint, "endpoint", "Address of the bucket.", {.required = true}))

struct BucketCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  int64_t observed_generation = 0;
  WallTime last_transition_time;
  bool operator==(const BucketCondition&) const = default;
};
BERTH_DESCRIBE(BucketCondition,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.BucketCondition",
               "One aspect of the bucket's condition.",
               BERTH_FIELD(type, "type", "What the condition is about.", {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(reason, "reason", "One word for programs."),
               BERTH_FIELD(message, "message", "A sentence for people."),
               BERTH_FIELD(observed_generation,
                           "observedGeneration",
                           "Generation of the bucket that the condition speaks of."),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct BucketStatus {
  std::string bucket_id;
  std::string state;
  WallTime last_state_transition_time;
  std::optional<BucketAccess> access;
  std::vector<BucketCondition> conditions;
  std::optional<core::PlacementStatus> placement;
  bool operator==(const BucketStatus&) const = default;
};
BERTH_DESCRIBE(
    BucketStatus,
    "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.BucketStatus",
    "The bucket as its poollet reports it.",
    BERTH_FIELD(bucket_id, "bucketID", "Name of the bucket at its provider, TYPE://ID."),
    BERTH_FIELD(state,
                "state",
                "Pending, Available or Error.",
                {.values = {"Pending", "Available", "Error"}, .fallback = "\"Pending\""}),
    BERTH_FIELD(last_state_transition_time, "lastStateTransitionTime", "When state last changed."),
    BERTH_FIELD(access, "access", "How to reach the bucket."),
    BERTH_FIELD(conditions, "conditions", "More about the bucket, aspect by aspect."),
    BERTH_FIELD(placement, "placement", "Where the bucket is placed; written by the scheduler."))

struct Bucket {
  meta::ObjectMeta metadata;
  BucketSpec spec;
  BucketStatus status;
};
BERTH_DESCRIBE(Bucket,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.Bucket",
               "A store of objects by key.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The bucket wanted."),
               BERTH_FIELD(status, "status", "The bucket as it is; written by the system."))

extern const meta::KindInfo kBucketKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Bucket>) { return kBucketKind; }

}  // namespace berth::apis::storage
