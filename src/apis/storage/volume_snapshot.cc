// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/volume_snapshot.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"

namespace berth::apis::storage {
namespace {

void Validate(const VolumeSnapshot& object, meta::FieldErrors& errors) {
  core::CheckReference(object.spec.volume_ref, core::SpecPath().Child("volumeRef"), errors);
  core::CheckReference(
      object.spec.volume_pool_ref, core::SpecPath().Child("volumePoolRef"), errors);
}

void ValidateUpdate(const VolumeSnapshot& now,
                    const VolumeSnapshot& before,
                    meta::FieldErrors& errors) {
  core::CheckImmutable(
      now.spec.volume_ref, before.spec.volume_ref, core::SpecPath().Child("volumeRef"), errors);
  core::CheckSetOnce(now.spec.volume_pool_ref,
                     before.spec.volume_pool_ref,
                     core::SpecPath().Child("volumePoolRef"),
                     errors);
}

void ValidateStatusUpdate(const VolumeSnapshot& now,
                          const VolumeSnapshot& /*before*/,
                          meta::FieldErrors& errors) {
  core::CheckConditions(now.status.conditions, core::StatusPath().Child("conditions"), errors);
  if (now.status.size) {
    core::CheckNotNegative(*now.status.size, core::StatusPath().Child("size"), errors);
  }
}

std::string VolumeCell(const VolumeSnapshot& object) {
  return core::OrNone(object.spec.volume_ref.name);
}
std::string PoolCell(const VolumeSnapshot& object) {
  return core::ReferenceCell(object.spec.volume_pool_ref);
}
std::string SizeCell(const VolumeSnapshot& object) {
  return core::OrNone(object.status.size ? object.status.size->ToString() : "");
}
std::string StateCell(const VolumeSnapshot& object) { return core::OrUnknown(object.status.state); }

constexpr meta::Column kColumns[] = {
    {.name = "VolumeRef", .doc = "Volume of the snapshot.", .cell = meta::Hook<&VolumeCell>},
    {.name = "VolumePoolRef", .doc = "Pool of the snapshot.", .cell = meta::Hook<&PoolCell>},
    {.name = "Size",
     .doc = "How large a volume must be to hold it.",
     .cell = meta::Hook<&SizeCell>},
    {.name = "State", .doc = "State of the snapshot.", .cell = meta::Hook<&StateCell>},
};

constexpr std::string_view kSubresources[] = {"binding"};
constexpr std::string_view kSelectors[] = {
    "spec.volumePoolRef.name", "status.placement.poolUID", "spec.volumeRef.name"};

}  // namespace

constinit const meta::KindInfo kVolumeSnapshotKind = {
    .group = "storage",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "VolumeSnapshot",
    .plural = "volumesnapshots",
    .singular = "volumesnapshot",
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<VolumeSnapshot>(),
    .has_status = true,
    .subresources = kSubresources,
    .field_selectors = kSelectors,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::storage
