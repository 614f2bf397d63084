// SPDX-License-Identifier: Apache-2.0
// The commands that talk to a server. app/main.cc puts the program's own (up, server) in front.
#pragma once

#include <vector>

#include "cli/command.h"

namespace berth::cli {

// One row per command, in the order in which help shows them. Lives for ever.
const std::vector<Command>& ClientCommands();

// The rows, one function per file.
Command GetCommand();
Command DescribeCommand();
Command WatchCommand();
Command EventsCommand();
Command LogsCommand();
Command ExplainCommand();
Command DiffCommand();
Command ApplyCommand();
Command CreateCommand();
Command EditCommand();
Command PatchCommand();
Command ScaleCommand();
Command LabelCommand();
Command AnnotateCommand();
Command DeleteCommand();
Command WaitCommand();
Command StartCommand();
Command StopCommand();
Command RestartCommand();
Command CordonCommand();
Command UncordonCommand();
Command DrainCommand();
Command MoveCommand();
Command PoolCommand();
Command AuthCommand();
Command TokenCommand();
Command CertificateCommand();
Command CaCommand();
Command ConfigCommand();
Command ApiResourcesCommand();
Command ApiVersionsCommand();
Command DoctorCommand();
Command SupportBundleCommand();
Command VersionCommand();
Command CompletionCommand();
Command CompleteCommand();
Command HelpCommand();

}  // namespace berth::cli
