// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/volume_pool.h"

#include "apis/core/category.h"
#include "apis/core/pool_rules.h"

namespace berth::apis::storage {
namespace {

void ValidateStatusUpdate(const VolumePool& now,
                          const VolumePool& before,
                          meta::FieldErrors& errors) {
  core::CheckPoolStatus(now, before, errors);
  core::CheckReferences(now.status.available_volume_classes,
                        core::StatusPath().Child("availableVolumeClasses"),
                        errors);
  core::CheckNotNegative(now.status.capacity, core::StatusPath().Child("capacity"), errors);
  core::CheckNotNegative(now.status.allocatable, core::StatusPath().Child("allocatable"), errors);
}

std::string VolumeClasses(const VolumePool& object) {
  return core::JoinReferences(object.status.available_volume_classes);
}

constexpr meta::Column kColumns[] = {
    core::kStateColumn<VolumePool>,
    {.name = "VolumeClasses",
     .doc = "Classes that the pool can make.",
     .cell = meta::Hook<&VolumeClasses>},
    core::kAgentModeColumn<VolumePool>,
};

constexpr std::string_view kSubresources[] = {"usage"};

}  // namespace

bool IsAnnounced(const VolumePoolStatus& status) {
  return !status.available_volume_classes.empty() || !status.conditions.empty() ||
         !status.capacity.empty() || !status.allocatable.empty() || status.agent.has_value();
}

constinit const meta::KindInfo kVolumePoolKind = {
    .group = "storage",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "VolumePool",
    .plural = "volumepools",
    .singular = "volumepool",
    .categories = core::kShownByPools,
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<VolumePool>(),
    .has_status = true,
    .subresources = kSubresources,
    .columns = kColumns,
    .validate = meta::Hook<&core::CheckPool<VolumePool>>,
    .validate_update = meta::Hook<&core::CheckPoolUpdate<VolumePool>>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::storage
