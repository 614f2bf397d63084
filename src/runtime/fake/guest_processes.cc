// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/guest_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/proc_file.h"
#include "base/strings.h"

namespace berth::runtime {
namespace {

// Waits at its gate, and then does what guests of a fake host do. Whoever holds the gate and dies
// takes a held guest with him.
constexpr const char* kGuest = "read -r go <&3 || exit 1; exec sleep infinity 3<&-";

int OpenPidfd(int64_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
}

bool IsDead(int pidfd) {
  pollfd polled = {.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&polled, 1, 0) > 0;
}

void Close(int& fd) {
  if (fd >= 0) close(std::exchange(fd, -1));
}

}  // namespace

uint64_t StartTicksOf(int64_t pid) {
  const std::string text = ReadProcFile("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text.size()) return 0;
  const auto fields = Split(std::string_view(text).substr(name_end + 2), ' ');
  constexpr size_t kStartField = 22 - 3;  // the state, behind the name, is field 3
  if (fields.size() <= kStartField) return 0;
  return static_cast<uint64_t>(ParseInt(fields[kStartField]).value_or(0));
}

GuestProcesses::~GuestProcesses() {
  for (auto& [id, process] : processes_) {
    if (lifetime_ == Lifetime::kWithUs) {
      End(process);
    } else {
      Close(process.gate);
      Close(process.pidfd);
    }
  }
}

Result<GuestProcesses::Process> GuestProcesses::Spawn() {
  std::array<int, 2> gate = {-1, -1};
  if (pipe2(gate.data(), O_CLOEXEC) != 0) {
    return Internal("guest: pipe: " + std::string(std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, gate[0], 3);
  for (const int fd : {0, 1, 2}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, 4);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::array<char*, 4> line = {
      const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(kGuest), nullptr};
  std::array<char*, 1> environment = {nullptr};
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, "/bin/sh", &actions, &attributes, line.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(gate[0]);
  Process process;
  process.gate = gate[1];
  if (failed != 0) {
    Close(process.gate);
    return Internal("guest: /bin/sh: " + std::string(std::strerror(failed)));
  }
  process.pid = pid;
  process.pidfd = OpenPidfd(pid);  // our child, not yet waited for: the number is its own
  process.start_ticks = StartTicksOf(pid);
  return process;
}

bool GuestProcesses::Adopt(const FakeGuest& guest, Process& process) {
  process.pid = guest.pid;
  process.start_ticks = guest.start_ticks;
  process.pidfd = OpenPidfd(guest.pid);
  const bool same =
      process.pidfd >= 0 && StartTicksOf(guest.pid) == guest.start_ticks && !IsDead(process.pidfd);
  if (!same) Close(process.pidfd);
  return same;
}

void GuestProcesses::End(Process& process) {
  Close(process.gate);
  if (process.pidfd >= 0) {
    syscall(SYS_pidfd_send_signal, process.pidfd, SIGKILL, nullptr, 0);
    // Ours or, of an earlier life, somebody else's to wait for. A killed one does not take long.
    waitpid(static_cast<pid_t>(process.pid), nullptr, 0);
  }
  Close(process.pidfd);
}

void GuestProcesses::Reap(FakeHostState& state, const FakeClock& clock) {
  for (auto it = processes_.begin(); it != processes_.end();) {
    if (it->second.pidfd >= 0 && !IsDead(it->second.pidfd)) {
      ++it;
      continue;
    }
    const std::string id = it->first;
    const int64_t pid = it->second.pid;
    End(it->second);
    it = processes_.erase(it);
    const auto machine = state.machines().find(id);
    const bool is_guest = machine != state.machines().end() && machine->second.guest.alive() &&
                          machine->second.guest.pid == pid;
    if (is_guest) state.CrashGuest(clock, id, "Killed");
  }
}

void GuestProcesses::Start(FakeHostState& state, const FakeMachine& machine) {
  const std::string id = machine.object.metadata.id;
  auto process = Spawn();
  if (!process.ok()) {
    LOG_ERROR("{}: {}", id, process.status().message());  // tried again with the next look
    return;
  }
  state.SetProcess(id, process->pid, process->start_ticks);
  processes_[id] = *std::move(process);
}

void GuestProcesses::Match(FakeHostState& state, const FakeClock& clock) {
  Reap(state, clock);
  for (auto it = processes_.begin(); it != processes_.end();) {
    const auto machine = state.machines().find(it->first);
    const bool wanted = machine != state.machines().end() && machine->second.guest.alive() &&
                        machine->second.guest.pid == it->second.pid;
    if (!wanted) End(it->second);
    it = wanted ? std::next(it) : processes_.erase(it);
  }
  std::set<std::string> lost;
  for (const auto& [id, machine] : state.machines()) {
    if (!machine.guest.alive() || processes_.contains(id)) continue;
    Process process;
    if (machine.guest.pid == 0) {
      Start(state, machine);
    } else if (Adopt(machine.guest, process)) {
      processes_[id] = process;
    } else {
      lost.insert(id);
    }
  }
  for (const std::string& id : lost) state.CrashGuest(clock, id, "Killed");
  for (auto& [id, process] : processes_) {
    if (process.gate < 0 || state.machines().at(id).guest.held) continue;
    constexpr std::string_view kGo = "go\n";
    if (write(process.gate, kGo.data(), kGo.size()) < 0) {
      LOG_WARNING("{}: {}", id, std::strerror(errno));
    }
    Close(process.gate);
  }
}

}  // namespace berth::runtime
