// SPDX-License-Identifier: Apache-2.0
#include "pki/private_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/log.h"

namespace berth::pki {
namespace {

// Keys and kubeconfigs are a few KiB; anything larger is not ours.
constexpr size_t kPrivateFileMax = 1 << 20;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

Status Failed(std::string_view doing, const std::string& path) {
  const int error = errno;
  return Internal(fmt::format("{} {}: {}", doing, path, std::strerror(error)));
}

Status SyncFolderOf(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  Descriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.valid()) return Failed("open folder", folder);
  if (fsync(descriptor.get()) != 0) return Failed("sync folder", folder);
  return OkStatus();
}

Status WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write", path);
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd) != 0) return Failed("sync", path);
  return OkStatus();
}

}  // namespace

Status EnsurePrivateFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::path above = std::filesystem::path(path).parent_path();
  if (!above.empty()) std::filesystem::create_directories(above, error);
  if (error) return Internal(fmt::format("make folder {}: {}", above.string(), error.message()));
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Failed("make folder", path);
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return Failed("look at folder", path);
  if (!S_ISDIR(status.st_mode)) return Internal(fmt::format("{} is not a folder", path));
  if ((status.st_mode & 0777) == 0700) return SyncFolderOf(path);
  LOG_WARNING("folder {} had mode {:04o}, now 0700", path, status.st_mode & 0777);
  if (chmod(path.c_str(), 0700) != 0) return Failed("close to others the folder", path);
  return SyncFolderOf(path);
}

Status WritePrivateFile(const std::string& path, std::string_view text) {
  // One name for the temporary file: a crash leaves at most one behind, and the next write takes it
  // away. O_EXCL after unlink never follows a link that someone else has put there.
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());
  {
    Descriptor file(open(temporary.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         S_IRUSR | S_IWUSR));
    if (!file.valid()) return Failed("create", temporary);
    Status written = WriteAll(file.get(), text, temporary);
    if (!written.ok()) {
      unlink(temporary.c_str());
      return written;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    Status failed = Failed("put in place", path);
    unlink(temporary.c_str());
    return failed;
  }
  return SyncFolderOf(path);
}

Result<std::string> ReadPrivateFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid() && errno == ENOENT) return NotFound(path + " does not exist");
  if (!file.valid()) return Failed("open", path);
  struct stat status{};
  if (fstat(file.get(), &status) != 0) return Failed("look at", path);
  if (!S_ISREG(status.st_mode)) return Forbidden(path + " is not a plain file");
  if ((status.st_mode & 0077) != 0) {
    return Forbidden(
        fmt::format("{} is open to group or others (mode {:04o}); if nobody else has "
                    "read it: chmod 600 {}",
                    path,
                    status.st_mode & 0777,
                    path));
  }
  std::string text;
  char buffer[4096];
  while (true) {
    ssize_t count = read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("read", path);
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kPrivateFileMax) {
      return Internal(fmt::format("{} is larger than {} bytes", path, kPrivateFileMax));
    }
  }
}

}  // namespace berth::pki
