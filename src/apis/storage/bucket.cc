// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/bucket.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"

namespace berth::apis::storage {
namespace {

constexpr std::string_view kNoClass = "must not be set on a bucket without bucketClassRef";

void Validate(const Bucket& object, meta::FieldErrors& errors) {
  const BucketSpec& spec = object.spec;
  const meta::FieldPath path = core::SpecPath();
  if (!spec.bucket_class_ref) {
    if (!spec.bucket_pool_selector.empty()) {
      errors.Forbidden(path.Child("bucketPoolSelector"), kNoClass);
    }
    if (spec.bucket_pool_ref) errors.Forbidden(path.Child("bucketPoolRef"), kNoClass);
    if (!spec.tolerations.empty()) errors.Forbidden(path.Child("tolerations"), kNoClass);
    return;
  }
  core::CheckReference(spec.bucket_class_ref, path.Child("bucketClassRef"), errors);
  core::CheckLabels(spec.bucket_pool_selector, path.Child("bucketPoolSelector"), errors);
  core::CheckReference(spec.bucket_pool_ref, path.Child("bucketPoolRef"), errors);
  core::CheckTolerations(spec.tolerations, path.Child("tolerations"), errors);
}

void ValidateUpdate(const Bucket& now, const Bucket& before, meta::FieldErrors& errors) {
  const meta::FieldPath spec = core::SpecPath();
  core::CheckImmutable(now.spec.bucket_class_ref,
                       before.spec.bucket_class_ref,
                       spec.Child("bucketClassRef"),
                       errors);
  core::CheckSetOnce(
      now.spec.bucket_pool_ref, before.spec.bucket_pool_ref, spec.Child("bucketPoolRef"), errors);
}

void ValidateStatusUpdate(const Bucket& now, const Bucket& /*before*/, meta::FieldErrors& errors) {
  const meta::FieldPath status = core::StatusPath();
  core::CheckConditions(now.status.conditions, status.Child("conditions"), errors);
  if (now.status.access) {
    core::CheckReference(
        now.status.access->secret_ref, status.Child("access").Child("secretRef"), errors);
  }
}

std::string PoolCell(const Bucket& object) {
  return core::ReferenceCell(object.spec.bucket_pool_ref);
}
std::string ClassCell(const Bucket& object) {
  return core::ReferenceCell(object.spec.bucket_class_ref);
}
std::string StateCell(const Bucket& object) { return core::OrUnknown(object.status.state); }

constexpr meta::Column kColumns[] = {
    {.name = "BucketPoolRef", .doc = "Pool of the bucket.", .cell = meta::Hook<&PoolCell>},
    {.name = "BucketClass", .doc = "Class of the bucket.", .cell = meta::Hook<&ClassCell>},
    {.name = "State", .doc = "State of the bucket.", .cell = meta::Hook<&StateCell>},
};

constexpr std::string_view kSubresources[] = {"binding"};
constexpr std::string_view kSelectors[] = {
    "spec.bucketPoolRef.name", "spec.bucketClassRef.name", "status.placement.poolUID"};

}  // namespace

constinit const meta::KindInfo kBucketKind = {
    .group = "storage",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "Bucket",
    .plural = "buckets",
    .singular = "bucket",
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<Bucket>(),
    .has_status = true,
    .subresources = kSubresources,
    .field_selectors = kSelectors,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::storage
