// SPDX-License-Identifier: Apache-2.0
// Adoption: an object that runs on a host and that the store has lost, after a restore of an older
// one for example, is created again under the UID that it has there. Nothing of it is stopped.
#pragma once

#include <string_view>

#include "apis/placement.h"

namespace berth::apis {

// On a new Machine, Volume or Bucket that names a pool: the UID of the orphan there whose name it
// has. Needs the verb `adopt` on the pool. Not kept in the object.
inline constexpr std::string_view kAdoptAnnotation = "berth.dev/adopt";

// status.placement.reason from the creation until it is bound: its host keeps what it has, although
// nothing is bound to it yet.
inline constexpr std::string_view kPlacementAdopting = "Adopting";

// REQUIRES: IsPlaceable(object.kind()).
inline bool IsBeingAdopted(const meta::Object& object) {
  const auto& placement = PlacementOf(object);
  return placement && placement->pool_uid.empty() && placement->reason == kPlacementAdopting;
}

}  // namespace berth::apis
