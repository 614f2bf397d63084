// SPDX-License-Identifier: Apache-2.0
// The program: a command line in, an exit code out.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/failure.h"

namespace berth::cli {

// Runs one command line (without the program's name) against the table below `root`. Help goes to
// environment.out, errors with their next step to environment.err.
ExitCode RunProgram(const Command& root,
                    const std::vector<std::string>& line,
                    Environment& environment);

// "error: ..." and "next: ..." on environment.err; all field causes, one per line.
void ReportFailure(const Status& status, Environment& environment);

}  // namespace berth::cli
