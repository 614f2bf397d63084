// SPDX-License-Identifier: Apache-2.0
// What this machine is, as the kernel tells it.
#pragma once

#include <string>

#include "poollet/host/host.h"

namespace berth::app {

// `folder` is on the disk whose size counts.
poollet::HardwareFacts ReadHardware(const std::string& folder);
// Without a trailing line end; "" if it cannot be read.
std::string ReadFirstLine(const std::string& path);
std::string Hostname();

}  // namespace berth::app
