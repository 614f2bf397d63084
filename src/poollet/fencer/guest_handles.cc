// SPDX-License-Identifier: Apache-2.0
#include "poollet/fencer/guest_handles.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
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

int OpenReserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

GuestHandles::GuestHandles() : reserve_(OpenReserve()) {}

GuestHandles::~GuestHandles() {
  for (const auto& [process, fd] : held_) close(fd);
  if (reserve_ >= 0) close(reserve_);
}

std::vector<FenceProcess> GuestHandles::Hold(const std::set<FenceProcess>& processes) {
  const auto is_over = [&](const FenceProcess& process) { return !processes.contains(process); };
  std::erase_if(held_, [&](const auto& entry) {
    if (!is_over(entry.first)) return false;
    close(entry.second);
    return true;
  });
  std::erase_if(unheld_, is_over);
  std::erase_if(killed_, is_over);
  std::erase_if(unseen_, is_over);
  // Somebody else of this host was faster when it was given back.
  if (reserve_ < 0) reserve_ = OpenReserve();
  std::vector<FenceProcess> gone;
  for (const FenceProcess& process : processes) {
    if (held_.contains(process)) continue;
    const Sight sight = Take(process);
    if (sight == Sight::kGone) gone.push_back(process);
    if (sight != Sight::kUnknown) unheld_.erase(process);
  }
  return gone;
}

GuestHandles::Sight GuestHandles::Take(const FenceProcess& process) {
  if (process.pid > std::numeric_limits<pid_t>::max()) return Sight::kGone;  // nor was it ever
  // The handle first: what is read afterwards is of the process that it holds, or of none.
  const int fd = OpenPidfd(process.pid);
  const int error = fd < 0 ? errno : 0;
  if (error == ESRCH) return Sight::kGone;
  const std::optional<uint64_t> start = ReadStart(process.pid);
  if (fd >= 0 && start == process.start_ticks) {
    held_[process] = fd;
    return Sight::kHeld;
  }
  if (fd >= 0) close(fd);
  if (start.has_value() && *start != process.start_ticks) return Sight::kGone;
  if (unheld_.insert(process).second) {  // said once
    LOG_ERROR("fencer: process {} is not held yet: {}",
              process.pid,
              error == 0 ? "its start time cannot be read" : std::strerror(error));
  }
  return Sight::kUnknown;
}

std::optional<uint64_t> GuestHandles::ReadStart(int64_t pid) {
  const std::optional<uint64_t> start = StartTicksOf(pid);
  if (start.has_value() || reserve_ < 0) return start;
  close(reserve_);
  const std::optional<uint64_t> again = StartTicksOf(pid);
  reserve_ = OpenReserve();
  return again;
}

// The guests' start times were compared, so another process can be meant only if this one dies and
// its number comes round again between two system calls.
int GuestHandles::Signal(const FenceProcess& process) {
  const auto held = held_.find(process);
  if (held != held_.end()) {
    return syscall(SYS_pidfd_send_signal, held->second, SIGKILL, nullptr, 0) == 0 ? 0 : errno;
  }
  const std::optional<uint64_t> start = ReadStart(process.pid);
  if (!start.has_value() && unseen_.insert(process).second) {  // said once
    LOG_ERROR("fencer: process {} is not killed yet: its start time cannot be read", process.pid);
  }
  if (start != process.start_ticks) return EAGAIN;
  return kill(static_cast<pid_t>(process.pid), SIGKILL) == 0 ? 0 : errno;
}

void GuestHandles::Kill(const std::set<FenceProcess>& processes) {
  for (const FenceProcess& process : processes) {
    if (!killed_.insert(process).second) continue;
    const int error = Signal(process);
    if (error == 0) LOG_WARNING("fencer: killed process {}", process.pid);
    if (error == 0 || error == ESRCH) continue;
    killed_.erase(process);  // tried again with the next turn
    if (error != EAGAIN) LOG_ERROR("fencer: kill {}: {}", process.pid, std::strerror(error));
  }
}

}  // namespace berth::poollet
