// SPDX-License-Identifier: Apache-2.0
// The machine that an object asks for.
#pragma once

#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "meta/object.h"

namespace berth::apiserver {

// A Machine's own spec, or that of a set's template; null for no object and for other kinds.
inline const apis::compute::MachineSpec* AskedMachine(const meta::Object* object) {
  if (object == nullptr) return nullptr;
  if (&object->kind() == &apis::compute::kMachineKind) {
    return &object->as<apis::compute::Machine>().spec;
  }
  if (&object->kind() == &apis::berth_dev::kMachineSetKind) {
    return &object->as<apis::berth_dev::MachineSet>().spec.machine_template.spec;
  }
  return nullptr;
}

}  // namespace berth::apiserver
