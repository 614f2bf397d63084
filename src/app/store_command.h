// SPDX-License-Identifier: Apache-2.0
// berth store: work on what a server keeps, from the machine that it runs on.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command StoreCommand();

}  // namespace berth::app
