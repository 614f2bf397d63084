// SPDX-License-Identifier: Apache-2.0
// BucketPool: a place where buckets live, announced by a poollet.
#pragma once

#include <string>
#include <vector>

#include "apis/core/references.h"
#include "apis/core/taints.h"
#include "meta/kind.h"

namespace berth::apis::storage {

struct BucketPoolSpec {
  std::string provider_id;
  std::vector<core::Taint> taints;
  bool operator==(const BucketPoolSpec&) const = default;
};
BERTH_DESCRIBE(BucketPoolSpec,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.BucketPoolSpec",
               "Who provides the pool, and who may use it.",
               BERTH_FIELD(provider_id,
                           "providerID",
                           "Name of the pool at its provider, TYPE://ID. Fixed once a poollet has "
                           "announced the pool.",
                           {.always = true}),
               BERTH_FIELD(taints, "taints", "Marks that keep buckets away."))

struct BucketPoolStatus {
  std::string state;
  std::vector<core::LocalObjectReference> available_bucket_classes;
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
                           "Classes that the pool can make."))

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
