// SPDX-License-Identifier: Apache-2.0
#include "apis/compute/machine_pool.h"

#include "apis/core/rules.h"

namespace berth::apis::compute {
namespace {

constexpr int32_t kPortMax = 65535;

void Validate(const MachinePool& object, meta::FieldErrors& errors) {
  core::CheckTaints(object.spec.taints, core::SpecPath().Child("taints"), errors);
  core::CheckPoolSpec(object.spec.host_ref, object.spec.limits, errors);
}

void ValidateUpdate(const MachinePool& now, const MachinePool& before, meta::FieldErrors& errors) {
  core::CheckPoolProviderId(
      now.spec.provider_id,
      before.spec.provider_id,
      IsAnnounced(before.status) ? core::Announced::kYes : core::Announced::kNo,
      errors);
  core::CheckSetOnce(
      now.spec.host_ref, before.spec.host_ref, core::SpecPath().Child("hostRef"), errors);
}

void ValidateStatusUpdate(const MachinePool& now,
                          const MachinePool& before,
                          meta::FieldErrors& errors) {
  core::CheckPoolAgent(now.status.agent, before.status.agent, errors);
  core::CheckReferences(now.status.available_machine_classes,
                        core::StatusPath().Child("availableMachineClasses"),
                        errors);
  core::CheckNotNegative(now.status.capacity, core::StatusPath().Child("capacity"), errors);
  core::CheckNotNegative(now.status.allocatable, core::StatusPath().Child("allocatable"), errors);
  core::CheckConditions(now.status.conditions, core::StatusPath().Child("conditions"), errors);
  const int32_t port = now.status.daemon_endpoints.machinepoollet_endpoint.port;
  if (port < 0 || port > kPortMax) {
    errors.Invalid(
        core::StatusPath().Child("daemonEndpoints").Child("machinepoolletEndpoint").Child("port"),
        std::to_string(port),
        "must be between 0 and 65535, inclusive");
  }
}

std::string MachineClasses(const MachinePool& object) {
  return core::JoinReferences(object.status.available_machine_classes);
}

std::string Schedulable(const MachinePool& object) {
  return object.spec.unschedulable ? "Cordoned" : "Yes";
}
std::string Mode(const MachinePool& object) {
  return core::OrNone(object.status.agent ? object.status.agent->mode : "");
}

constexpr meta::Column kColumns[] = {
    {.name = "MachineClasses",
     .doc = "Classes that the pool can run.",
     .cell = meta::Hook<&MachineClasses>},
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

bool IsAnnounced(const MachinePoolStatus& status) {
  return !status.available_machine_classes.empty() || !status.conditions.empty() ||
         !status.capacity.empty() || !status.allocatable.empty() || status.agent.has_value() ||
         !status.addresses.empty();
}

constinit const meta::KindInfo kMachinePoolKind = {
    .group = "compute",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "MachinePool",
    .plural = "machinepools",
    .singular = "machinepool",
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<MachinePool>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::compute
