// SPDX-License-Identifier: Apache-2.0
// The objects that a machine's templates ask for. Pure.
#pragma once

#include <string>
#include <vector>

#include "apis/compute/machine.h"
#include "meta/object.h"

namespace berth::controller {

struct EphemeralPart {
  std::string name;   // of the object
  std::string field;  // "spec.volumes[data]", for people
  meta::Object object;
};

// All Volumes and NetworkInterfaces of the machine's templates. `architecture` is that of its
// class, "" if it says none.
std::vector<EphemeralPart> EphemeralPartsOf(const apis::compute::Machine& machine,
                                            const std::string& architecture);

bool HasEphemeralParts(const apis::compute::Machine& machine);

// It was made for the machine with this uid, by us.
bool IsEphemeralPartOf(const meta::ObjectMeta& part, const std::string& machine_uid);
// The uid of the machine that it was made for; "" if it was not made by us.
std::string EphemeralOwnerOf(const meta::ObjectMeta& part);

}  // namespace berth::controller
