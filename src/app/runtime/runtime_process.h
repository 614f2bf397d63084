// SPDX-License-Identifier: Apache-2.0
// What the processes of all runtimes have in common: where their sockets are, which boot of the
// host this is, how they serve until they are told to stop.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/session/session.h"
#include "iri/grpc/server.h"
#include "rt/event.h"
#include "rt/process/child_processes.h"
#include "rt/task.h"
#include "rt/thread_pool.h"

namespace berth::app {

// The absolute path that --socket names; if it is "", the folder that the user has for such things.
// An error says what to do.
Result<std::string> RuntimeSocketPath(std::string socket, const cli::Environment& environment);

// Who may call a runtime.
inline constexpr cli::Flag kAllowUserFlag = {
    .name = "allow-user",
    .kind = cli::FlagKind::kCommaList,
    .value_name = "NAME|UID",
    .help =
        "(sockets) Who may call it beside root and the runtime's own user: the poollet's. May be "
        "repeated.",
    .variable = "BERTH_ALLOW_USER"};
// As that flag says; errors name it.
Result<std::vector<uid_t>> AllowedUsers(const cli::Arguments& arguments);

// Which start of this machine it is.
std::string HostBoot();

// The threads of a runtime on real files and programs; they mostly wait. A process that begins with
// these ends with them.
struct RuntimeThreads {
  static rt::ThreadPool::Options Pool(size_t threads, std::string name);

  rt::ThreadPool files{Pool(2, "files")};
  // What takes minutes, images that are unpacked and copied: nothing short waits behind it.
  rt::ThreadPool large{Pool(4, "large")};
  rt::ThreadPool programs{Pool(4, "programs")};
  rt::ChildProcesses processes{programs};
};

using RuntimeServers = std::vector<std::unique_ptr<iri::RuntimeServer>>;
// Calls in progress get a moment to end. Always ok.
rt::Task<Status> StopServers(const RuntimeServers* servers);
// The same when `stop` is set.
rt::Task<Status> ServeUntil(rt::Event* stop, const RuntimeServers* servers);

// The end of a process of which everything has ended but a thread that waits for a libvirt that may
// never answer: destructors would wait for it. Says what is not ok.
[[noreturn]] void EndWithoutThreads(cli::Session& session, const Status& ended);

}  // namespace berth::app
