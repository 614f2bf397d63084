// SPDX-License-Identifier: Apache-2.0
// `berth down`: ends the `berth up` of a data folder, and its guests if that is asked for.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command DownCommand();

}  // namespace berth::app
