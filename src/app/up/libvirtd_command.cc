// SPDX-License-Identifier: Apache-2.0
#include "app/up/libvirtd_command.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "cli/arguments.h"
#include "cli/session/session.h"

namespace berth::app {
namespace {

// A libvirtd that is killed while it starts a guest leaves a status without a process. The next one
// takes it for a guest that is starting, for ever: it refuses to start, end or forget it. There is
// no guest, since libvirt writes its number down before QEMU may begin.
//
// One that is killed while a guest begins or ends leaves the folder with that guest's sockets. What
// no status and no process names is nobody's; grep reads the name from its input, lest it finds
// itself.
//
// $0 is the folder of libvirt's states, $1 that of the guests' folders, the rest is the command.
constexpr std::string_view kScript =
    "for status in \"$0\"/*.xml; do\n"
    "if grep -qs \"^<domstatus .* pid='0'\" \"$status\"; then rm -f -- \"$status\"; fi\n"
    "done\n"
    "for folder in \"$1\"/domain-*-berth-*; do\n"
    "printf %s \"${folder##*/}\" | grep -qsaF -f - \"$0\"/*.xml /proc/[0-9]*/cmdline\n"
    "case $? in 1 | 2) rm -rf -- \"$folder\" ;; esac\n"
    "done\n"
    "shift\n"
    "exec \"$@\"\n";

constexpr std::array kFlags = {cli::Flag{.name = "states",
                                         .kind = cli::FlagKind::kText,
                                         .value_name = "DIR",
                                         .help = "(host) Where it keeps the states of guests.",
                                         .completion = cli::Completion::kFiles},
                               cli::Flag{.name = "sockets",
                                         .kind = cli::FlagKind::kText,
                                         .value_name = "DIR",
                                         .help = "(host) Where it keeps the sockets of guests.",
                                         .completion = cli::Completion::kFiles}};

Status Run(cli::Session& session, const cli::Arguments& arguments) {
  (void)session;
  const LibvirtdFolders folders = {.states = arguments.Text("states"),
                                   .sockets = arguments.Text("sockets")};
  if (folders.states.empty() || folders.sockets.empty()) {
    return BadRequest("--states and --sockets are needed");
  }
  std::vector<std::string> line = LibvirtdLine(folders);
  std::vector<char*> words;
  for (std::string& word : line) words.push_back(word.data());
  words.push_back(nullptr);
  execv(words[0], words.data());
  return Unavailable(line[0] + ": " + std::string(std::strerror(errno)));
}

}  // namespace

std::vector<std::string> LibvirtdLine(const LibvirtdFolders& folders) {
  return {
      "/bin/sh", "-c", std::string(kScript), folders.states, folders.sockets, "/usr/sbin/libvirtd"};
}

cli::Command LibvirtdCommand() {
  return {.name = "libvirtd",
          .group = "Hosts",
          .summary = "Become a libvirtd, without what one that was killed has left",
          .details =
              "Started by berth up, with the folders of a libvirtd of its own in its "
              "environment. Not meant to be started by hand.",
          .examples =
              "berth libvirtd --states /run/berth-1/libvirt/qemu/run --sockets "
              "/var/lib/berth-host/config/libvirt/qemu/lib",
          .flags = kFlags,
          .run = &Run,
          .visibility = cli::Visibility::kHidden};
}

}  // namespace berth::app
