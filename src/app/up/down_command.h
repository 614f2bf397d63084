// SPDX-License-Identifier: Apache-2.0
// `berth down`: ends the `berth up` of a data folder, and its guests if that is asked for.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/command.h"

namespace berth::app {

// Ends the guests and the fencer of a host, which run on without it. Unavailable if some do not
// end. Blocks.
Status EndGuests(const std::string& host_dir);

cli::Command DownCommand();

}  // namespace berth::app
