// SPDX-License-Identifier: Apache-2.0
#include "apis/compute/machine_class.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"

namespace berth::apis::compute {
namespace {

void Validate(const MachineClass& object, meta::FieldErrors& errors) {
  core::CheckRequiredResource(object.capabilities, core::kCpu, core::CapabilitiesPath(), errors);
  core::CheckRequiredResource(object.capabilities, core::kMemory, core::CapabilitiesPath(), errors);
}

void ValidateUpdate(const MachineClass& now,
                    const MachineClass& before,
                    meta::FieldErrors& errors) {
  core::CheckImmutable(now.capabilities, before.capabilities, core::CapabilitiesPath(), errors);
}

std::string Cpu(const MachineClass& object) {
  return core::ResourceCell(object.capabilities, core::kCpu);
}
std::string Memory(const MachineClass& object) {
  return core::ResourceCell(object.capabilities, core::kMemory);
}

constexpr meta::Column kColumns[] = {
    {.name = "CPU", .doc = "Processors of a machine.", .cell = meta::Hook<&Cpu>},
    {.name = "Memory", .doc = "Memory of a machine.", .cell = meta::Hook<&Memory>},
};

}  // namespace

constinit const meta::KindInfo kMachineClassKind = {
    .group = "compute",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "MachineClass",
    .plural = "machineclasses",
    .singular = "machineclass",
    .categories = core::kShownByClasses,
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<MachineClass>(),
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::compute
