// SPDX-License-Identifier: Apache-2.0
// The rows of the commands that look at placement: where things go, and what they use there.
#pragma once

#include "cli/command.h"

namespace berth::cli {

Command WhyCommand();
Command FitCommand();
Command TopCommand();

}  // namespace berth::cli
