// SPDX-License-Identifier: Apache-2.0
#include "app/up/instance.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/strings.h"
#include "pki/private_file.h"

namespace berth::app {
namespace {

constexpr std::array<std::string_view, 3> kStates = {"starting", "ready", "none"};

std::string LockPath(const std::string& data_dir) { return data_dir + "/up.lock"; }
std::string ProgressPath(const std::string& data_dir) { return data_dir + "/up.progress"; }

Status Failed(const std::string& path) {
  return Unavailable(path + ": " + std::string(std::strerror(errno)));
}

}  // namespace

Result<std::unique_ptr<InstanceLock>> InstanceLock::Take(const std::string& data_dir) {
  TRY_STATUS(pki::EnsurePrivateFolder(data_dir));
  const std::string path = LockPath(data_dir);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return Failed(path);
  std::unique_ptr<InstanceLock> lock(new InstanceLock(fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::unique_ptr<InstanceLock>();
    return Failed(path);
  }
  const std::string pid = std::to_string(getpid());
  const bool written = ftruncate(fd, 0) == 0 &&
                       pwrite(fd, pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size());
  if (!written) return Failed(path);
  // What the one before has said is over.
  unlink(ProgressPath(data_dir).c_str());
  return lock;
}

InstanceLock::~InstanceLock() { close(fd_); }

Result<std::optional<pid_t>> FindInstance(const std::string& data_dir) {
  const std::string path = LockPath(data_dir);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return std::optional<pid_t>();
  if (fd < 0) return Failed(path);
  const bool is_free = flock(fd, LOCK_SH | LOCK_NB) == 0;
  std::array<char, 32> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  close(fd);
  if (is_free) return std::optional<pid_t>();
  const auto pid = ParseUint(Trim({text.data(), size > 0 ? static_cast<size_t>(size) : 0}));
  if (!pid.has_value()) return Unavailable(path + " is locked and names no process");
  return std::optional(static_cast<pid_t>(*pid));
}

Status WriteProgress(const std::string& data_dir, const HostProgress& progress) {
  const std::string_view state = kStates.at(static_cast<size_t>(progress.state));
  return pki::WritePrivateFile(ProgressPath(data_dir),
                               std::string(state) + " " + progress.what + " " +
                                   std::to_string(progress.done) + " " +
                                   std::to_string(progress.of) + " " + progress.text + "\n");
}

Result<HostProgress> ReadProgress(const std::string& data_dir) {
  TRY(const std::string text, pki::ReadPrivateFile(ProgressPath(data_dir)));
  std::istringstream words(text);
  std::string state;
  HostProgress progress;
  words >> state >> progress.what >> progress.done >> progress.of;
  words.get();
  std::getline(words, progress.text);
  for (size_t i = 0; i < kStates.size(); ++i) {
    if (kStates.at(i) != state) continue;
    progress.state = static_cast<HostProgress::State>(i);
    return progress;
  }
  return Internal(ProgressPath(data_dir) + ": " + Quote(text) + " is no progress");
}

}  // namespace berth::app
