// SPDX-License-Identifier: Apache-2.0
// MachineClass: how large a machine is.
#pragma once

#include "apis/core/resources.h"
#include "meta/kind.h"

namespace berth::apis::compute {

struct MachineClass {
  meta::ObjectMeta metadata;
  core::ResourceList capabilities;
};
BERTH_DESCRIBE(MachineClass,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachineClass",
               "How large machines of this class are.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(capabilities,
                           "capabilities",
                           "cpu and memory, both greater than zero, and whatever else a pool "
                           "offers, such as nvidia.com/gpu. Cannot change."))

extern const meta::KindInfo kMachineClassKind;
inline const meta::KindInfo& BerthKind(meta::Tag<MachineClass>) { return kMachineClassKind; }

}  // namespace berth::apis::compute
