// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/bucket_pool.h"

#include "apis/core/rules.h"

namespace berth::apis::storage {
namespace {

void Validate(const BucketPool& object, meta::FieldErrors& errors) {
  core::CheckTaints(object.spec.taints, core::SpecPath().Child("taints"), errors);
}

void ValidateUpdate(const BucketPool& now, const BucketPool& before, meta::FieldErrors& errors) {
  core::CheckPoolProviderId(
      now.spec.provider_id,
      before.spec.provider_id,
      IsAnnounced(before.status) ? core::Announced::kYes : core::Announced::kNo,
      errors);
}

void ValidateStatusUpdate(const BucketPool& now,
                          const BucketPool& /*before*/,
                          meta::FieldErrors& errors) {
  core::CheckReferences(now.status.available_bucket_classes,
                        core::StatusPath().Child("availableBucketClasses"),
                        errors);
}

std::string BucketClasses(const BucketPool& object) {
  return core::JoinReferences(object.status.available_bucket_classes);
}

constexpr meta::Column kColumns[] = {
    {.name = "BucketClasses",
     .doc = "Classes that the pool can make.",
     .cell = meta::Hook<&BucketClasses>},
};

}  // namespace

bool IsAnnounced(const BucketPoolStatus& status) {
  return !status.available_bucket_classes.empty();
}

constinit const meta::KindInfo kBucketPoolKind = {
    .group = "storage",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "BucketPool",
    .plural = "bucketpools",
    .singular = "bucketpool",
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<BucketPool>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::storage
