// SPDX-License-Identifier: Apache-2.0
#include "apis/berth/machine_set.h"

#include <algorithm>

#include "apis/core/category.h"
#include "apis/core/placement.h"
#include "apis/core/rules.h"

namespace berth::apis::berth_dev {
namespace {

void CheckSelector(const MachineSetSpec& spec, meta::FieldErrors& errors) {
  const meta::FieldPath path = core::SpecPath().Child("selector");
  meta::ValidateLabelSelector(path, spec.selector, errors);
  const Result<meta::Selector> selector = meta::Selector::From(spec.selector);
  if (selector.ok() && !selector->Matches(spec.machine_template.metadata.labels)) {
    errors.Invalid(core::SpecPath().Child("template").Child("metadata").Child("labels"),
                   selector->ToString(),
                   "the template's labels must match the selector");
  }
}

void CheckRollingUpdate(const MachineSetSpec& spec, meta::FieldErrors& errors) {
  if (!spec.strategy || !spec.strategy->rolling_update) return;
  const RollingUpdate& update = *spec.strategy->rolling_update;
  const meta::FieldPath path = core::SpecPath().Child("strategy").Child("rollingUpdate");
  const int32_t unavailable = update.max_unavailable.value_or(0);
  const int32_t surge = update.max_surge.value_or(1);
  if (unavailable < 0) {
    errors.Invalid(
        path.Child("maxUnavailable"), std::to_string(unavailable), "must not be negative");
  }
  if (surge < 0) {
    errors.Invalid(path.Child("maxSurge"), std::to_string(surge), "must not be negative");
  }
  if (unavailable == 0 && surge == 0) {
    errors.Invalid(path, "0 and 0", "one of maxUnavailable and maxSurge must be above 0");
  }
}

void Validate(const MachineSet& object, meta::FieldErrors& errors) {
  const MachineSetSpec& spec = object.spec;
  const meta::FieldPath path = core::SpecPath();
  const int32_t replicas = spec.replicas.value_or(1);
  if (replicas < 0 || replicas > kReplicasMax) {
    errors.Invalid(path.Child("replicas"),
                   std::to_string(replicas),
                   "must be from 0 to " + std::to_string(kReplicasMax));
  }
  CheckSelector(spec, errors);
  CheckRollingUpdate(spec, errors);
  if (spec.disruption_budget && spec.disruption_budget->max_unavailable.value_or(0) < 0) {
    errors.Invalid(path.Child("disruptionBudget").Child("maxUnavailable"),
                   int64_t{*spec.disruption_budget->max_unavailable},
                   "must not be negative");
  }
  const meta::FieldPath at = path.Child("template");
  core::CheckTemplateMetadata(spec.machine_template.metadata, at.Child("metadata"), errors);
  compute::CheckMachineSpec(spec.machine_template.spec, at.Child("spec"), errors);
  if (spec.machine_template.spec.machine_pool_ref) {
    errors.Forbidden(at.Child("spec").Child("machinePoolRef"), "must not be set in a template");
  }
  const auto& placement = spec.machine_template.spec.placement;
  if (placement && placement->priority) {
    errors.Forbidden(at.Child("spec").Child("placement").Child("priority"),
                     "must not be set in a template; name a priorityClassName");
  }
  for (size_t i = 0; i < spec.machine_template.spec.volumes.size(); ++i) {
    if (!spec.machine_template.spec.volumes[i].volume_ref || replicas <= 1) continue;
    errors.Forbidden(at.Child("spec").Child("volumes").Index(i).Child("volumeRef"),
                     "one volume cannot serve several machines; use ephemeral");
  }
}

void ValidateUpdate(const MachineSet& now, const MachineSet& before, meta::FieldErrors& errors) {
  core::CheckImmutable(
      now.spec.selector, before.spec.selector, core::SpecPath().Child("selector"), errors);
}

std::string WantedCell(const MachineSet& object) {
  return std::to_string(object.spec.replicas.value_or(1));
}
std::string CurrentCell(const MachineSet& object) { return std::to_string(object.status.replicas); }
std::string ReadyCell(const MachineSet& object) { return std::to_string(object.status.ready); }
std::string UpdatedCell(const MachineSet& object) { return std::to_string(object.status.updated); }
std::string ClassCell(const MachineSet& object) {
  return object.spec.machine_template.spec.machine_class_ref.name;
}

constexpr meta::Column kColumns[] = {
    {.name = "Desired",
     .type = "integer",
     .doc = "How many are wanted.",
     .cell = meta::Hook<&WantedCell>},
    {.name = "Current",
     .type = "integer",
     .doc = "How many there are.",
     .cell = meta::Hook<&CurrentCell>},
    {.name = "Ready", .type = "integer", .doc = "How many run.", .cell = meta::Hook<&ReadyCell>},
    {.name = "Updated",
     .type = "integer",
     .doc = "How many follow the present template.",
     .cell = meta::Hook<&UpdatedCell>},
    {.name = "MachineClassRef",
     .doc = "Class of the machines.",
     .priority = 1,
     .cell = meta::Hook<&ClassCell>},
};

constexpr std::string_view kShortNames[] = {"mset"};

constexpr meta::ScalePaths kScale = {.spec_replicas = ".spec.replicas",
                                     .status_replicas = ".status.replicas",
                                     .label_selector = ".status.selector"};

}  // namespace

std::string_view OnPoolLossOf(const MachineSetSpec& spec) {
  if (!spec.on_pool_loss.empty()) return spec.on_pool_loss;
  const auto& volumes = spec.machine_template.spec.volumes;
  const bool owns_volumes = std::any_of(volumes.begin(), volumes.end(), [](const auto& volume) {
    return volume.volume_ref.has_value() || volume.ephemeral.has_value();
  });
  return owns_volumes ? core::kOnPoolLossKeep : core::kOnPoolLossReplace;
}

constinit const meta::KindInfo kMachineSetKind = {
    .group = "berth.dev",
    .naming = meta::GroupNaming::kFixed,
    .version = "v1alpha1",
    .kind = "MachineSet",
    .plural = "machinesets",
    .singular = "machineset",
    .short_names = kShortNames,
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    // A machine's name is the set's name and a suffix, and a DNS label.
    .name_rule = meta::NameRule::kDnsLabel,
    .type = &meta::TypeInfoOf<MachineSet>(),
    .has_status = true,
    .scale = &kScale,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::berth_dev
