// SPDX-License-Identifier: Apache-2.0
#include "cli/https/process_environment.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/https/https_transport.h"
#include "rt/asio/asio_loop.h"

extern char** environ;

namespace berth::cli {
namespace {

Variables ReadVariables() {
  Variables out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      out.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return out;
}

size_t TerminalColumns() {
  winsize size{};
  constexpr size_t kUsual = 80;
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

Status RunForeground(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  // posix_spawn does not change its arguments; its type predates const.
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) {
    return Internal(fmt::format("run {}: {}", Printable(arguments.front()), std::strerror(error)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Internal(fmt::format("wait: {}", std::strerror(errno)));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return OkStatus();
  return Internal(fmt::format("{} ended with {}",
                              Printable(arguments.front()),
                              WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                                : fmt::format("signal {}", WTERMSIG(status))));
}

}  // namespace

Environment ProcessEnvironment() {
  // A loop that never runs is a clock.
  const auto clock = std::make_shared<rt::AsioLoop>("clock");
  Environment out;
  out.variables = ReadVariables();
  out.in = &std::cin;
  out.out = &std::cout;
  out.err = &std::cerr;
  out.terminal = {.out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
                  .in_is_terminal = ::isatty(STDIN_FILENO) == 1,
                  .columns = TerminalColumns()};
  out.wall_now = [clock] { return clock->WallNow(); };
  out.now = [clock] { return clock->Now(); };
  out.connect = [](const Connection& connection) { return ConnectHttps(connection); };
  out.run_program = &RunForeground;
  return out;
}

}  // namespace berth::cli
