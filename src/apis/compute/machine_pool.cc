// SPDX-License-Identifier: Apache-2.0
#include "apis/compute/machine_pool.h"

#include "apis/core/category.h"
#include "apis/core/pool_rules.h"

namespace berth::apis::compute {
namespace {

constexpr int32_t kPortMax = 65535;

void ValidateStatusUpdate(const MachinePool& now,
                          const MachinePool& before,
                          meta::FieldErrors& errors) {
  core::CheckPoolStatus(now, before, errors);
  core::CheckReferences(now.status.available_machine_classes,
                        core::StatusPath().Child("availableMachineClasses"),
                        errors);
  core::CheckNotNegative(now.status.capacity, core::StatusPath().Child("capacity"), errors);
  core::CheckNotNegative(now.status.allocatable, core::StatusPath().Child("allocatable"), errors);
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

constexpr meta::Column kColumns[] = {
    core::kStateColumn<MachinePool>,
    {.name = "MachineClasses",
     .doc = "Classes that the pool can run.",
     .cell = meta::Hook<&MachineClasses>},
    core::kAgentModeColumn<MachinePool>,
};

constexpr std::string_view kSubresources[] = {"usage"};

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
    .categories = core::kShownByPools,
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<MachinePool>(),
    .has_status = true,
    .subresources = kSubresources,
    .columns = kColumns,
    .validate = meta::Hook<&core::CheckPool<MachinePool>>,
    .validate_update = meta::Hook<&core::CheckPoolUpdate<MachinePool>>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::compute
