// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/volume_class.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"

namespace berth::apis::storage {
namespace {

void Validate(const VolumeClass& object, meta::FieldErrors& errors) {
  core::CheckRequiredResource(object.capabilities, core::kTps, core::CapabilitiesPath(), errors);
  core::CheckRequiredResource(object.capabilities, core::kIops, core::CapabilitiesPath(), errors);
}

void ValidateUpdate(const VolumeClass& now, const VolumeClass& before, meta::FieldErrors& errors) {
  core::CheckImmutable(now.capabilities, before.capabilities, core::CapabilitiesPath(), errors);
}

std::string Tps(const VolumeClass& object) {
  return core::ResourceCell(object.capabilities, core::kTps);
}
std::string Iops(const VolumeClass& object) {
  return core::ResourceCell(object.capabilities, core::kIops);
}

constexpr meta::Column kColumns[] = {
    {.name = "TPS", .doc = "Bytes per second.", .cell = meta::Hook<&Tps>},
    {.name = "IOPS", .doc = "Operations per second.", .cell = meta::Hook<&Iops>},
};

}  // namespace

constinit const meta::KindInfo kVolumeClassKind = {
    .group = "storage",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "VolumeClass",
    .plural = "volumeclasses",
    .singular = "volumeclass",
    .categories = core::kShownByClasses,
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<VolumeClass>(),
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::storage
