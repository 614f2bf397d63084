// SPDX-License-Identifier: Apache-2.0
// The commands that run a server in this process.
#pragma once

#include "cli/command.h"

namespace berth::app {

// A server in this process and a host in processes of its own, with words for a person: where it
// is, how to reach it, what to do next.
cli::Command UpCommand();
// A server for a service manager: nothing on standard output, logs on standard error.
cli::Command ServerCommand();

}  // namespace berth::app
