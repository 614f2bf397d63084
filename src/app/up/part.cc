// SPDX-License-Identifier: Apache-2.0
#include "app/up/part.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "rt/backoff.h"
#include "rt/sleep.h"

extern char** environ;

namespace berth::app {
namespace {

constexpr Duration kLook = Duration::Millis(50);
constexpr Duration kStopGrace = Duration::Seconds(10);
// One that ran for so long has not failed to start.
constexpr Duration kSettled = Duration::Seconds(30);
// Our program is open there in the child: a user who may not enter the folder where it lies can
// run it all the same.
constexpr int kProgramFd = 3;

// setpriv is in Debian's base; it changes the user and asks for the signal in one program that has
// a single thread, which a fork of ours has not.
std::vector<std::string> Line(const PartCommand& command) {
  std::vector<std::string> line = {"/usr/bin/setpriv", "--pdeathsig=TERM"};
  if (command.user.has_value()) {
    line.push_back("--reuid=" + std::to_string(command.user->uid));
    line.push_back("--regid=" + std::to_string(command.user->gid));
    line.emplace_back("--clear-groups");
  }
  if (!command.rights.empty()) {
    line.push_back("--inh-caps=" + command.rights);
    line.push_back("--ambient-caps=" + command.rights);
  }
  line.emplace_back("--");
  for (const std::string& word : command.words) line.push_back(word);
  std::string& program = line[line.size() - command.words.size()];
  if (program.empty()) program = "/proc/self/fd/" + std::to_string(kProgramFd);
  return line;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return pointers;
}

// Whether there is a variable of the same name.
bool IsNamed(const std::vector<std::string>& variables, std::string_view other) {
  const std::string_view name = other.substr(0, other.find('=') + 1);
  return std::ranges::any_of(variables,
                             [name](const std::string& one) { return one.starts_with(name); });
}

}  // namespace

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return "was killed by signal " + std::to_string(WTERMSIG(wait_status));
  }
  return "ended with " + std::to_string(WEXITSTATUS(wait_status));
}

Part::~Part() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Status Part::Start() {
  const int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (program < 0) return Unavailable("/proc/self/exe: " + std::string(std::strerror(errno)));
  std::vector<std::string> line = Line(command_);
  std::vector<char*> words = Pointers(line);
  words.push_back(nullptr);
  std::vector<std::string> named = command_.variables;
  std::vector<char*> variables = Pointers(named);
  for (char** own = environ; *own != nullptr; ++own) {
    // A shell takes the last of two, others the first.
    if (!IsNamed(command_.variables, *own)) variables.push_back(*own);
  }
  variables.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files,
                                   STDOUT_FILENO,
                                   command_.log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW,
                                   0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  if (!command_.output.empty()) {
    posix_spawn_file_actions_addopen(&files,
                                     STDOUT_FILENO,
                                     command_.output.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
                                     0600);
  }
  posix_spawn_file_actions_adddup2(&files, program, kProgramFd);
  posix_spawn_file_actions_addclosefrom_np(&files, kProgramFd + 1);
  // A group of its own: Ctrl-C is for us, and we stop the parts in their order.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, line[0].c_str(), &files, &attributes, words.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(program);
  if (failed != 0) return Unavailable(command_.name + ": " + std::strerror(failed));
  pid_ = pid;
  return OkStatus();
}

std::optional<int> Part::Ended() {
  int status = 0;
  if (pid_ == 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = 0;
  return status;
}

rt::Task<Result<int>> Part::AwaitEnd() {
  while (true) {
    if (const auto status = Ended()) co_return *status;
    CO_TRY_STATUS(co_await rt::Sleep(kLook));
  }
}

rt::Task<Status> Part::Keep() {
  rt::Backoff backoff;
  while (true) {
    const Time started = loop_.Now();
    const Status start = Start();
    if (start.ok()) {
      CO_TRY(const int status, co_await AwaitEnd());
      LOG_WARNING(
          "{} {}; it is started again (log: {})", name(), DescribeEnd(status), command_.log);
    } else {
      LOG_WARNING("{}", start.message());
    }
    if (loop_.Now() - started > kSettled) backoff.Reset();
    CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(loop_.random())));
  }
}

rt::Task<Status> Part::RunOnce() {
  CO_TRY_STATUS(Start());
  CO_TRY(const int status, co_await AwaitEnd());
  if (status == 0) co_return OkStatus();
  co_return Unavailable(name() + " " + DescribeEnd(status) + "; see " + command_.log);
}

rt::Task<Status> Part::Stop() {
  if (pid_ == 0) co_return OkStatus();
  kill(pid_, SIGTERM);
  const Time deadline = loop_.Now() + kStopGrace;
  while (!Ended().has_value() && pid_ != 0) {
    if (loop_.Now() >= deadline) {
      LOG_WARNING("{} does not stop: killed", name());
      kill(pid_, SIGKILL);
      waitpid(std::exchange(pid_, 0), nullptr, 0);
      break;
    }
    CO_TRY_STATUS(co_await rt::Sleep(kLook));
  }
  co_return OkStatus();
}

}  // namespace berth::app
