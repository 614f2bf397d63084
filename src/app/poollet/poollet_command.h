// SPDX-License-Identifier: Apache-2.0
// berth poollet: the agent of a host.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command PoolletCommand();

}  // namespace berth::app
