// SPDX-License-Identifier: Apache-2.0
// `berth runtime`: the processes that run things on a host.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command RuntimeCommand();

}  // namespace berth::app
