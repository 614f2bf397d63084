// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/volume_snapshot.h"

#include "apis/core/rules.h"

namespace berth::apis::storage {
namespace {

void Validate(const VolumeSnapshot& object, meta::FieldErrors& errors) {
  core::CheckReference(object.spec.volume_ref, core::SpecPath().Child("volumeRef"), errors);
}

void ValidateUpdate(const VolumeSnapshot& now,
                    const VolumeSnapshot& before,
                    meta::FieldErrors& errors) {
  core::CheckImmutable(
      now.spec.volume_ref, before.spec.volume_ref, core::SpecPath().Child("volumeRef"), errors);
}

void ValidateStatusUpdate(const VolumeSnapshot& now,
                          const VolumeSnapshot& /*before*/,
                          meta::FieldErrors& errors) {
  if (now.status.size) {
    core::CheckNotNegative(*now.status.size, core::StatusPath().Child("size"), errors);
  }
}

std::string VolumeCell(const VolumeSnapshot& object) {
  return core::OrNone(object.spec.volume_ref.name);
}
std::string StateCell(const VolumeSnapshot& object) { return core::OrUnknown(object.status.state); }

constexpr meta::Column kColumns[] = {
    {.name = "VolumeRef", .doc = "Volume of the snapshot.", .cell = meta::Hook<&VolumeCell>},
    {.name = "State", .doc = "State of the snapshot.", .cell = meta::Hook<&StateCell>},
};

}  // namespace

constinit const meta::KindInfo kVolumeSnapshotKind = {
    .group = "storage",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "VolumeSnapshot",
    .plural = "volumesnapshots",
    .singular = "volumesnapshot",
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<VolumeSnapshot>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::storage
