// SPDX-License-Identifier: Apache-2.0
// Who asked for a Prefix or a PrefixAllocation, and how those that are made for somebody look.
#pragma once

#include <string>

#include "meta/object.h"

namespace berth::controller {

// UID of the Prefix that the PrefixAllocation was made for; "": somebody made it by hand.
std::string RequesterOf(const meta::Object& allocation);
// Whose the part is: the requester's, or its own.
std::string HolderOf(const meta::Object& allocation);
// UID of the NetworkInterface that the Prefix was made for; "": made by hand.
std::string InterfaceOf(const meta::Object& prefix);

// The owner reference of something that goes with `owner`.
meta::OwnerReference OwnedBy(const meta::Object& owner);
// Name of the PrefixAllocation of a Prefix: always the same one, so that it is not made twice.
std::string AllocationNameOf(const meta::ObjectMeta& prefix);

}  // namespace berth::controller
