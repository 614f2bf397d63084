// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/bucket_pool.h"

#include "apis/core/category.h"
#include "apis/core/pool_rules.h"

namespace berth::apis::storage {
namespace {

void ValidateStatusUpdate(const BucketPool& now,
                          const BucketPool& before,
                          meta::FieldErrors& errors) {
  core::CheckPoolStatus(now, before, errors);
  core::CheckReferences(now.status.available_bucket_classes,
                        core::StatusPath().Child("availableBucketClasses"),
                        errors);
}

std::string BucketClasses(const BucketPool& object) {
  return core::JoinReferences(object.status.available_bucket_classes);
}

constexpr meta::Column kColumns[] = {
    core::kStateColumn<BucketPool>,
    {.name = "BucketClasses",
     .doc = "Classes that the pool can make.",
     .cell = meta::Hook<&BucketClasses>},
    core::kAgentModeColumn<BucketPool>,
};

constexpr std::string_view kSubresources[] = {"usage"};

}  // namespace

bool IsAnnounced(const BucketPoolStatus& status) {
  return !status.available_bucket_classes.empty() || !status.conditions.empty() ||
         status.agent.has_value();
}

constinit const meta::KindInfo kBucketPoolKind = {
    .group = "storage",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "BucketPool",
    .plural = "bucketpools",
    .singular = "bucketpool",
    .categories = core::kShownByPools,
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<BucketPool>(),
    .has_status = true,
    .subresources = kSubresources,
    .columns = kColumns,
    .validate = meta::Hook<&core::CheckPool<BucketPool>>,
    .validate_update = meta::Hook<&core::CheckPoolUpdate<BucketPool>>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::storage
