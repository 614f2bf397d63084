// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/volume_pool.h"

#include "apis/core/rules.h"

namespace berth::apis::storage {
namespace {

void Validate(const VolumePool& object, meta::FieldErrors& errors) {
  core::CheckTaints(object.spec.taints, core::SpecPath().Child("taints"), errors);
  core::CheckPoolSpec(object.spec.host_ref, object.spec.limits, errors);
}

void ValidateUpdate(const VolumePool& now, const VolumePool& before, meta::FieldErrors& errors) {
  core::CheckPoolProviderId(
      now.spec.provider_id,
      before.spec.provider_id,
      IsAnnounced(before.status) ? core::Announced::kYes : core::Announced::kNo,
      errors);
  core::CheckSetOnce(
      now.spec.host_ref, before.spec.host_ref, core::SpecPath().Child("hostRef"), errors);
}

void ValidateStatusUpdate(const VolumePool& now,
                          const VolumePool& before,
                          meta::FieldErrors& errors) {
  core::CheckPoolAgent(now.status.agent, before.status.agent, errors);
  core::CheckReferences(now.status.available_volume_classes,
                        core::StatusPath().Child("availableVolumeClasses"),
                        errors);
  core::CheckNotNegative(now.status.capacity, core::StatusPath().Child("capacity"), errors);
  core::CheckNotNegative(now.status.allocatable, core::StatusPath().Child("allocatable"), errors);
  core::CheckConditions(now.status.conditions, core::StatusPath().Child("conditions"), errors);
}

std::string VolumeClasses(const VolumePool& object) {
  return core::JoinReferences(object.status.available_volume_classes);
}

std::string Schedulable(const VolumePool& object) {
  return object.spec.unschedulable ? "Cordoned" : "Yes";
}
std::string Mode(const VolumePool& object) {
  return core::OrNone(object.status.agent ? object.status.agent->mode : "");
}

constexpr meta::Column kColumns[] = {
    {.name = "VolumeClasses",
     .doc = "Classes that the pool can make.",
     .cell = meta::Hook<&VolumeClasses>},
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
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<VolumePool>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::storage
