// SPDX-License-Identifier: Apache-2.0
// One binary: a table of commands. Servers come first, then the commands that talk to one.
#include <csignal>
#include <string>
#include <vector>

#include "app/backup_command.h"
#include "app/bench_command.h"
#include "app/images/image_command.h"
#include "app/poollet/fencer_command.h"
#include "app/poollet/poollet_command.h"
#include "app/restore_command.h"
#include "app/runtime/runtime_command.h"
#include "app/serve_commands.h"
#include "app/sim_command.h"
#include "app/store_command.h"
#include "app/up/down_command.h"
#include "app/up/libvirtd_command.h"
#include "cli/commands/table.h"
#include "cli/guests/guest_commands.h"
#include "cli/https/process_environment.h"
#include "cli/iri/iri_command.h"
#include "cli/session/program.h"

// Read by jemalloc, the allocator of all but sanitized builds (docs/adr/0015). Few threads
// allocate: more arenas would only keep memory from each other. What is free for a second goes
// back.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming): jemalloc's name
extern const char* const malloc_conf;
const char* const malloc_conf = "narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0";
// NOLINTEND(readability-identifier-naming)
}

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed peer is an error, not a death
  std::vector<berth::cli::Command> commands = {berth::app::UpCommand(),
                                               berth::app::DownCommand(),
                                               berth::app::ServerCommand(),
                                               berth::app::PoolletCommand()};
  for (const auto& command : berth::cli::ClientCommands()) commands.push_back(command);
  commands.push_back(berth::cli::ExecCommand());
  commands.push_back(berth::cli::ConsoleCommand());
  commands.push_back(berth::cli::PortForwardCommand());
  commands.push_back(berth::app::ImageCommand());
  commands.push_back(berth::cli::IriCommand());
  commands.push_back(berth::app::RuntimeCommand());
  commands.push_back(berth::app::BackupCommand());
  commands.push_back(berth::app::RestoreCommand());
  commands.push_back(berth::app::StoreCommand());
  commands.push_back(berth::app::BenchCommand());
  commands.push_back(berth::app::FencerCommand());
  commands.push_back(berth::app::LibvirtdCommand());
  commands.push_back(berth::app::SimCommand());
  const berth::cli::Command root = {
      .name = "berth",
      .usage = "COMMAND [flags]",
      .summary = "Places machines, volumes and buckets on pools of hosts",
      .children = commands};
  auto environment = berth::cli::ProcessEnvironment();
  const std::vector<std::string> line(argv + 1, argv + argc);
  return static_cast<int>(berth::cli::RunProgram(root, line, environment));
}
