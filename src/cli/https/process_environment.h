// SPDX-License-Identifier: Apache-2.0
// The environment of the real process: its variables, terminal, clock and child processes.
#pragma once

#include "cli/environment.h"

namespace berth::cli {

// Call once, in main, before any thread starts.
Environment ProcessEnvironment();

}  // namespace berth::cli
