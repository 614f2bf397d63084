// SPDX-License-Identifier: Apache-2.0
// Device names of machine volumes: oda, odb, ... odz, odaa, ... odzz.
#pragma once

#include <string>
#include <string_view>

#include "apis/compute/machine.h"
#include "base/status.h"

namespace berth::apis::compute {

inline constexpr int kDeviceNamesMax = 702;  // 26 with one letter, 26 * 26 with two

// 0 is "oda". REQUIRES: 0 <= index < kDeviceNamesMax.
std::string DeviceName(int index);
// Two letters of prefix and one or two letters of index: "oda", "vdb", "sdaa".
bool IsDeviceName(std::string_view name);

// Gives every volume without a device the first free name; names that are there stay. Invalid, with
// the machine unchanged, when no name is left.
Status AssignDeviceNames(Machine& machine);

}  // namespace berth::apis::compute
