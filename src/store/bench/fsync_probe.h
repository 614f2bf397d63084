// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"

namespace berth::store {

// How often per second 1 KiB can be appended to a file in this folder and be made durable. Blocks
// for `duration`; leaves nothing behind.
Result<double> MeasureFsyncPerSecond(const std::string& dir, Duration duration);

}  // namespace berth::store
