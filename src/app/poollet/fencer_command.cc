// SPDX-License-Identifier: Apache-2.0
#include "app/poollet/fencer_command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "app/process/open_files.h"
#include "cli/arguments.h"
#include "cli/session/session.h"
#include "pki/private_file.h"
#include "poollet/fencer/fencer_process.h"

namespace berth::app {
namespace {

constexpr std::array kFlags = {cli::Flag{.name = "folder",
                                         .kind = cli::FlagKind::kText,
                                         .value_name = "DIR",
                                         .help = "(host) Where its socket and its files are.",
                                         .completion = cli::Completion::kFiles}};

Status Run(cli::Session& session, const cli::Arguments& arguments) {
  (void)session;
  const std::string& folder = arguments.Text("folder");
  if (folder.empty()) return BadRequest("--folder is needed");
  umask(0077);
  RaiseOpenFiles(kOpenFilesWantedOfHost);  // a handle of every guest
  return poollet::RunFencer(folder);
}

}  // namespace

cli::Command FencerCommand() {
  return {.name = "fencer",
          .group = "Hosts",
          .summary = "Kill the guests of this host whose leases have run out",
          .details =
              "Started by the poollet of a host whose guests are processes, and lives on when that "
              "dies: a machine that may be started elsewhere must be dead here by then. Not meant "
              "to be started by hand.",
          .examples = "berth fencer --folder /var/lib/berth-poollet",
          .flags = kFlags,
          .run = &Run,
          .visibility = cli::Visibility::kHidden};
}

Status FencerLauncher::Launch() {
  // The one before is dead, or none of ours.
  if (last_ > 0 && waitpid(last_, nullptr, WNOHANG) != 0) last_ = 0;
  TRY_STATUS(pki::EnsurePrivateFolder(folder_));
  const std::string log = folder_ + "/fencer.log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(
      &actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  // Nothing of ours is kept open by a process that outlives us.
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::array<std::string, 4> words = {"berth", "fencer", "--folder", folder_};
  std::array<char*, 5> line = {
      words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, line.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return Internal("berth fencer: " + std::string(std::strerror(failed)));
  last_ = pid;
  return OkStatus();
}

}  // namespace berth::app
