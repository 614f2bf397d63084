// SPDX-License-Identifier: Apache-2.0
// `berth bench api` and `berth bench store`.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command BenchCommand();

}  // namespace berth::app
