// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/bucket_pool.h"

#include "apis/core/rules.h"

namespace berth::apis::storage {
namespace {

void Validate(const BucketPool& object, meta::FieldErrors& errors) {
  core::CheckTaints(object.spec.taints, core::SpecPath().Child("taints"), errors);
  core::CheckPoolSpec(object.spec.host_ref, object.spec.limits, errors);
}

void ValidateUpdate(const BucketPool& now, const BucketPool& before, meta::FieldErrors& errors) {
  core::CheckPoolProviderId(
      now.spec.provider_id,
      before.spec.provider_id,
      IsAnnounced(before.status) ? core::Announced::kYes : core::Announced::kNo,
      errors);
  core::CheckSetOnce(
      now.spec.host_ref, before.spec.host_ref, core::SpecPath().Child("hostRef"), errors);
}

void ValidateStatusUpdate(const BucketPool& now,
                          const BucketPool& before,
                          meta::FieldErrors& errors) {
  core::CheckConditions(now.status.conditions, core::StatusPath().Child("conditions"), errors);
  core::CheckPoolAgent(now.status.agent, before.status.agent, errors);
  core::CheckReferences(now.status.available_bucket_classes,
                        core::StatusPath().Child("availableBucketClasses"),
                        errors);
}

std::string BucketClasses(const BucketPool& object) {
  return core::JoinReferences(object.status.available_bucket_classes);
}

std::string Schedulable(const BucketPool& object) {
  return object.spec.unschedulable ? "Cordoned" : "Yes";
}
std::string Mode(const BucketPool& object) {
  return core::OrNone(object.status.agent ? object.status.agent->mode : "");
}

constexpr meta::Column kColumns[] = {
    {.name = "BucketClasses",
     .doc = "Classes that the pool can make.",
     .cell = meta::Hook<&BucketClasses>},
    {.name = "Schedulable",
     .doc = "Whether anything new may come.",
     .priority = 1,
     .cell = meta::Hook<&Schedulable>},
    {.name = "Mode",
     .doc = "How the poollet speaks to the server.",
     .priority = 1,
     .cell = meta::Hook<&Mode>},
};

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
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<BucketPool>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::storage
