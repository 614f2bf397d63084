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

// The highest version that both ends know. BadRequest, with both ranges, if there is none.
inline Result<uint32_t> ChooseVersion(uint32_t min, uint32_t max) {
  const uint32_t version = std::min(max, kProtocolMax);
  if (min <= max && version >= std::max(min, kProtocolMin)) return version;
  return BadRequest("protocol versions " + std::to_string(min) + " to " + std::to_string(max) +
                    " are not spoken here: " + std::to_string(kProtocolMin) + " to " +
                    std::to_string(kProtocolMax) + " are");
}

}  // namespace berth::gateway
