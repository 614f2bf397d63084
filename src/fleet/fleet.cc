// SPDX-License-Identifier: Apache-2.0
#include "fleet/fleet.h"

#include "base/check.h"

namespace berth::fleet {

std::string_view NameOf(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kMachine: return "Machine";
    case ObjectKind::kVolume: return "Volume";
    case ObjectKind::kBucket: return "Bucket";
    case ObjectKind::kReservation: return "Reservation";
    case ObjectKind::kVolumeSnapshot: return "VolumeSnapshot";
  }
  CHECK(false) << "an object kind that is none";
  return "";
}

}  // namespace berth::fleet
