// SPDX-License-Identifier: Apache-2.0
// Which version of the session protocol two ends speak.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace berth::gateway {

inline constexpr uint32_t kProtocolMin = 1;
inline constexpr uint32_t kProtocolMax = 1;

// What one end speaks; this server, unless somebody says otherwise.
struct ProtocolVersions {
  uint32_t min = kProtocolMin;
  uint32_t max = kProtocolMax;
};

// The highest version that both ends know. BadRequest, with both ranges, if there is none.
inline Result<uint32_t> ChooseVersion(ProtocolVersions theirs, ProtocolVersions ours) {
  const uint32_t version = std::min(theirs.max, ours.max);
  if (theirs.min <= theirs.max && version >= std::max(theirs.min, ours.min)) return version;
  return BadRequest("protocol versions " + std::to_string(theirs.min) + " to " +
                    std::to_string(theirs.max) + " are not spoken here: " +
                    std::to_string(ours.min) + " to " + std::to_string(ours.max) + " are");
}

}  // namespace berth::gateway
