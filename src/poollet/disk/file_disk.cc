// SPDX-License-Identifier: Apache-2.0
#include "poollet/disk/file_disk.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "pki/private_file.h"

namespace berth::poollet {
namespace {

Status Failed(std::string_view doing, const std::string& path) {
  return Internal(fmt::format("{} {}: {}", doing, path, std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

Status SyncFolder(const std::string& folder) {
  const Descriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return Failed("open", folder);
  if (fsync(fd.get()) != 0) return Failed("sync", folder);
  return OkStatus();
}

Status AppendDurably(const std::string& folder, const std::string& name, std::string_view bytes) {
  TRY_STATUS(pki::EnsurePrivateFolder(folder));
  const std::string path = folder + "/" + name;
  const Descriptor fd(
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return Failed("open", path);
  struct stat before = {};
  if (fstat(fd.get(), &before) != 0) return Failed("stat", path);
  TRY_STATUS(WriteAll(fd.get(), bytes, path));
  if (fdatasync(fd.get()) != 0) return Failed("sync", path);
  return before.st_size == 0 ? SyncFolder(folder) : OkStatus();
}

Status ReplaceDurably(const std::string& folder, const std::string& name, std::string_view bytes) {
  TRY_STATUS(pki::EnsurePrivateFolder(folder));
  return pki::WritePrivateFile(folder + "/" + name, bytes);
}

}  // namespace

rt::Task<Result<std::string>> FileDisk::Read(std::string name) {
  const auto job = [this, &name] { return pki::ReadPrivateFile(folder_ + "/" + name); };
  co_return co_await pool_.Run("disk.read", job);
}

rt::Task<Status> FileDisk::Append(std::string name, std::string bytes) {
  const auto job = [this, &name, &bytes] { return AppendDurably(folder_, name, bytes); };
  co_return co_await pool_.Run("disk.append", job);
}

rt::Task<Status> FileDisk::Replace(std::string name, std::string bytes) {
  const auto job = [this, &name, &bytes] { return ReplaceDurably(folder_, name, bytes); };
  co_return co_await pool_.Run("disk.replace", job);
}

}  // namespace berth::poollet
