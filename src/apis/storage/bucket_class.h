// SPDX-License-Identifier: Apache-2.0
// BucketClass: what a bucket can do.
#pragma once

#include "apis/core/resources.h"
#include "meta/kind.h"

namespace berth::apis::storage {

struct BucketClass {
  meta::ObjectMeta metadata;
  core::ResourceList capabilities;
};
BERTH_DESCRIBE(BucketClass,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.BucketClass",
               "What buckets of this class can do.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(capabilities,
                           "capabilities",
                           "tps (bytes per second) and iops (operations per second), both greater "
                           "than zero, and whatever else a provider knows. Cannot change."))

extern const meta::KindInfo kBucketClassKind;
inline const meta::KindInfo& BerthKind(meta::Tag<BucketClass>) { return kBucketClassKind; }

}  // namespace berth::apis::storage
