// SPDX-License-Identifier: Apache-2.0
// `berth runtime volume`: volumes that are files of this host.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command VolumeRuntimeCommand();

}  // namespace berth::app
