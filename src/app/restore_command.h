// SPDX-License-Identifier: Apache-2.0
// berth restore: an older state of the store in the place of the present one.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command RestoreCommand();

}  // namespace berth::app
