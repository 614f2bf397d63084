// SPDX-License-Identifier: Apache-2.0
// `berth sim`.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command SimCommand();

}  // namespace berth::app
