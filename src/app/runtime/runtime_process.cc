// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/runtime_process.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <utility>

#include "base/strings.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "iri/grpc/endpoint.h"

namespace berth::app {
namespace {

// Calls in progress may end when the process is told to stop.
constexpr Duration kStopGrace = Duration::Seconds(2);

}  // namespace

rt::ThreadPool::Options RuntimeThreads::Pool(size_t threads, std::string name) {
  rt::ThreadPool::Options options;
  options.threads = threads;
  options.name = std::move(name);
  return options;
}

Result<std::string> RuntimeSocketPath(std::string socket, const cli::Environment& environment) {
  const std::string_view user_folder = environment.Variable("XDG_RUNTIME_DIR");
  if (socket.empty() && geteuid() == 0) socket = "/run/berth";
  if (socket.empty() && !user_folder.empty()) socket = std::string(user_folder) + "/berth";
  if (socket.empty()) {
    return cli::Advise(BadRequest("no place for the sockets"), "name a folder with --socket");
  }
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(socket, failed);
  if (failed) return BadRequest("--socket " + Quote(socket) + ": " + failed.message());
  return absolute.lexically_normal().string();
}

Result<std::vector<uid_t>> AllowedUsers(const cli::Arguments& arguments) {
  Result<std::vector<uid_t>> users = iri::UsersOf(arguments.List("allow-user"));
  if (!users.ok()) return users.status().Wrap("--allow-user");
  return users;
}

std::string HostBoot() {
  const Result<std::string> id = cli::ReadFile("/proc/sys/kernel/random/boot_id");
  return id.ok() ? std::string(Trim(*id)) : "unknown";
}

rt::Task<Status> StopServers(const RuntimeServers* servers) {
  for (const auto& server : *servers) CO_TRY_STATUS(co_await server->Stop(kStopGrace));
  co_return OkStatus();
}

rt::Task<Status> ServeUntil(rt::Event* stop, const RuntimeServers* servers) {
  CO_TRY_STATUS(co_await stop->Wait());
  co_return co_await StopServers(servers);
}

void EndWithoutThreads(cli::Session& session, const Status& ended) {
  if (!ended.ok()) session.err() << "error: " << ended.message() << std::endl;
  session.out().flush();
  std::_Exit(ended.ok() ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace berth::app
