// SPDX-License-Identifier: Apache-2.0
// `berth runtime machine`: guests of libvirt on this host.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command MachineRuntimeCommand();

}  // namespace berth::app
