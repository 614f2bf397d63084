// SPDX-License-Identifier: Apache-2.0
#include "app/bench/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

extern char** environ;

namespace berth::app {

namespace {

// Only calls that are safe between fork and exec in a process of many threads.
[[noreturn]] void Become(pid_t parent, char* const* arguments) {
  // A bench that is killed leaves nothing behind.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // What it says to people is not among our figures; its log goes where ours does.
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  execve("/proc/self/exe", arguments, environ);
  _exit(1);
}

}  // namespace

Result<ChildProcess> ChildProcess::Start(std::vector<std::string> words) {
  words.insert(words.begin(), "berth");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Become(parent, arguments.data());
  if (pid > 0) return ChildProcess(pid);
  return Unavailable("start of berth " + words[1] + ": " + std::string(std::strerror(errno)));
}

bool ChildProcess::HasEnded() {
  if (pid_ != 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
  return pid_ == 0;
}

Status ChildProcess::Stop() {
  if (pid_ == 0) return OkStatus();
  kill(pid_, SIGTERM);
  int code = 0;
  waitpid(std::exchange(pid_, 0), &code, 0);
  if (code != 0) return Internal("a child process ended with status " + std::to_string(code));
  return OkStatus();
}

void ChildProcess::Kill() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(std::exchange(pid_, 0), nullptr, 0);
}

void ChildProcess::Pause() {
  if (pid_ != 0) kill(pid_, SIGSTOP);
}

void ChildProcess::Resume() {
  if (pid_ != 0) kill(pid_, SIGCONT);
}

Result<double> ChildProcess::RssMb() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/statm");
  long total = 0;
  long resident = 0;
  if (!(file >> total >> resident)) {
    return Unavailable("memory of process " + std::to_string(pid_) + " is unknown");
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

Result<double> ChildProcess::OwnRssMb() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/statm");
  long total = 0;
  long resident = 0;
  long shared = 0;  // pages of files
  if (!(file >> total >> resident >> shared)) {
    return Unavailable("memory of process " + std::to_string(pid_) + " is unknown");
  }
  return static_cast<double>(resident - shared) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

Result<double> ChildProcess::CpuSeconds() const { return CpuSecondsOf(pid_); }

Result<double> CpuSecondsOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  // The name in parentheses may hold anything; 11 fields later come two counts of ticks.
  const size_t end = line.rfind(')');
  if (end == std::string::npos) {
    return Unavailable("the time of process " + std::to_string(pid) + " is unknown");
  }
  std::istringstream fields(line.substr(end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double kernel = 0;
  fields >> user >> kernel;
  return (user + kernel) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace berth::app
