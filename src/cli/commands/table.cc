// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.h"

#include "cli/commands/placement_commands.h"

namespace berth::cli {

const std::vector<Command>& ClientCommands() {
  static const auto* const kCommands = new std::vector<Command>{
      GetCommand(),          DescribeCommand(),    WatchCommand(),  EventsCommand(),
      LogsCommand(),         WhyCommand(),         FitCommand(),    TopCommand(),
      DiffCommand(),         ExplainCommand(),     ApplyCommand(),  CreateCommand(),
      EditCommand(),         PatchCommand(),       ScaleCommand(),  LabelCommand(),
      AnnotateCommand(),     DeleteCommand(),      WaitCommand(),   StartCommand(),
      StopCommand(),         RestartCommand(),     CordonCommand(), UncordonCommand(),
      DrainCommand(),        MoveCommand(),        PoolCommand(),   AuthCommand(),
      TokenCommand(),        CertificateCommand(), CaCommand(),     ConfigCommand(),
      ApiResourcesCommand(), ApiVersionsCommand(), DoctorCommand(), SupportBundleCommand(),
      VersionCommand(),      CompletionCommand(),  HelpCommand(),   CompleteCommand(),
  };
  return *kCommands;
}

}  // namespace berth::cli
