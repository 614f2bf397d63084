// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/bucket_class.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"

namespace berth::apis::storage {
namespace {

void Validate(const BucketClass& object, meta::FieldErrors& errors) {
  core::CheckRequiredResource(object.capabilities, core::kTps, core::CapabilitiesPath(), errors);
  core::CheckRequiredResource(object.capabilities, core::kIops, core::CapabilitiesPath(), errors);
}

void ValidateUpdate(const BucketClass& now, const BucketClass& before, meta::FieldErrors& errors) {
  core::CheckImmutable(now.capabilities, before.capabilities, core::CapabilitiesPath(), errors);
}

std::string Tps(const BucketClass& object) {
  return core::ResourceCell(object.capabilities, core::kTps);
}
std::string Iops(const BucketClass& object) {
  return core::ResourceCell(object.capabilities, core::kIops);
}

constexpr meta::Column kColumns[] = {
    {.name = "TPS", .doc = "Bytes per second.", .cell = meta::Hook<&Tps>},
    {.name = "IOPS", .doc = "Operations per second.", .cell = meta::Hook<&Iops>},
};

}  // namespace

constinit const meta::KindInfo kBucketClassKind = {
    .group = "storage",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "BucketClass",
    .plural = "bucketclasses",
    .singular = "bucketclass",
    .categories = core::kShownByClasses,
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<BucketClass>(),
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::storage
