// SPDX-License-Identifier: Apache-2.0
// The one table of all kinds.
#pragma once

#include <span>

#include "meta/kind.h"

namespace berth::apis {

// Every kind that is served, in the order in which discovery lists them.
std::span<const meta::KindInfo* const> AllKinds();

// The kind of a struct: KindOf<compute::Machine>(). Needs only the header of the struct.
template <class T>
const meta::KindInfo& KindOf() {
  return BerthKind(meta::Tag<T>{});
}

}  // namespace berth::apis
