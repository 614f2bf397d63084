// SPDX-License-Identifier: Apache-2.0
// Commands that talk to what runs in a machine: exec, console, port-forward.
#pragma once

#include "cli/command.h"

namespace berth::cli {

Command ExecCommand();
Command ConsoleCommand();
Command PortForwardCommand();

}  // namespace berth::cli
