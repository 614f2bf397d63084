// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"
#include "cli/commands/table.h"
#include "cli/help.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

// `berth help COMMAND` is read as `berth COMMAND --help` before it gets here.
Status RunHelp(Session& session, const Arguments&) {
  session.out() << HelpText({&session.root()}, GlobalFlags());
  return OkStatus();
}

}  // namespace

Command HelpCommand() {
  return {.name = "help",
          .group = "Server",
          .usage = "[COMMAND...]",
          .summary = "Show help about any command",
          .examples =
              "berth help\n"
              "berth help pool join-token",
          .words = Completion::kCommands,
          .run = &RunHelp};
}

}  // namespace berth::cli
