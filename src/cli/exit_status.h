// SPDX-License-Identifier: Apache-2.0
// For commands that stand for another one: how that ended is how they end.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace berth::cli {

// Ends the program with this code, without any further word. REQUIRES: code is not 0.
Status EndWith(uint8_t code);

}  // namespace berth::cli
