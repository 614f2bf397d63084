// SPDX-License-Identifier: Apache-2.0
#include "poollet/fencer/guest_handles.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/proc_file.h"
#include "base/strings.h"

namespace berth::poollet {
namespace {

// "4711 (name (with) anything) S 1 …": counted behind the last parenthesis, the state is field 3.
std::optional<uint64_t> StartTicksOf(int64_t pid) {
  const std::string text = ReadProcFile("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text.size()) return std::nullopt;
  const auto fields = Split(std::string_view(text).substr(name_end + 2), ' ');
  constexpr size_t kStartField = 22 - 3;
  if (fields.size() <= kStartField) return std::nullopt;
  const auto ticks = ParseInt(fields[kStartField]);
  if (!ticks.has_value()) return std::nullopt;
  return static_cast<uint64_t>(*ticks);
}

int OpenPidfd(int64_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
}

}  // namespace

GuestHandles::~GuestHandles() {
  for (const auto& [process, fd] : held_) close(fd);
}

std::vector<FenceProcess> GuestHandles::Hold(const std::set<FenceProcess>& processes) {
  for (auto it = held_.begin(); it != held_.end();) {
    if (processes.contains(it->first)) {
      ++it;
      continue;
    }
    close(it->second);
    killed_.erase(it->first);
    it = held_.erase(it);
  }
  std::vector<FenceProcess> missing;
  for (const FenceProcess& process : processes) {
    if (held_.contains(process)) continue;
    // The handle first: what is read afterwards is of the process that it holds, or of none.
    const int fd = OpenPidfd(process.pid);
    if (fd >= 0 && StartTicksOf(process.pid) == process.start_ticks) {
      held_[process] = fd;
      continue;
    }
    if (fd < 0 && errno != ESRCH) {
      LOG_ERROR("fencer: process {}: {}", process.pid, std::strerror(errno));
    }
    if (fd >= 0) close(fd);
    missing.push_back(process);
  }
  return missing;
}

void GuestHandles::Kill(const std::set<FenceProcess>& processes) {
  for (const FenceProcess& process : processes) {
    const auto held = held_.find(process);
    if (held == held_.end() || !killed_.insert(process).second) continue;
    if (syscall(SYS_pidfd_send_signal, held->second, SIGKILL, nullptr, 0) == 0) {
      LOG_WARNING("fencer: killed process {}", process.pid);
    } else if (errno != ESRCH) {
      LOG_ERROR("fencer: kill {}: {}", process.pid, std::strerror(errno));
      killed_.erase(process);  // tried again with the next turn
    }
  }
}

}  // namespace berth::poollet
