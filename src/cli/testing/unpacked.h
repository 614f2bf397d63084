// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::cli {

// The content of a .gz file of at most a few megabytes; "" if it is none.
std::string UnpackedGz(const std::string& path);

}  // namespace berth::cli
