// SPDX-License-Identifier: Apache-2.0
#include "cli/files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace berth::cli {
namespace {

Status FileError(std::string_view doing, const std::string& path, int error) {
  std::string message = fmt::format("{} {}: {}", doing, Printable(path), std::strerror(error));
  if (error == ENOENT) return NotFound(std::move(message));
  if (error == EACCES || error == EPERM) return Forbidden(std::move(message));
  return Internal(std::move(message));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Status WriteAll(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError("write", path, errno);
    content.remove_prefix(static_cast<size_t>(count));
  }
  return OkStatus();
}

// mkostemps wants a writable template and fills in its name; files are made with mode 0600.
Result<std::string> MakeTemporary(std::string pattern, size_t suffix, std::string_view content) {
  const Descriptor file(::mkostemps(pattern.data(), static_cast<int>(suffix), O_CLOEXEC));
  if (file.get() < 0) return FileError("create", pattern, errno);
  const Status written = WriteAll(file.get(), pattern, content);
  if (!written.ok()) {
    ::unlink(pattern.c_str());
    return written;
  }
  return pattern;
}

}  // namespace

Result<std::string> ReadFile(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError("open", path, errno);
  std::string out;
  std::string buffer(64 << 10, '\0');
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EISDIR) {
      return BadRequest(fmt::format("read {}: it is a folder", Printable(path)));
    }
    if (count < 0) return FileError("read", path, errno);
    if (count == 0) return out;
    out.append(buffer, 0, static_cast<size_t>(count));
    if (out.size() > kFileBytesMax) {
      return BadRequest(fmt::format(
          "read {}: the file is larger than {} MiB", Printable(path), kFileBytesMax >> 20));
    }
  }
}

Result<std::string> MakePrivateTemporary(std::string_view folder,
                                         std::string_view suffix,
                                         std::string_view content) {
  const std::string_view root = folder.empty() ? std::string_view("/tmp") : folder;
  return MakeTemporary(fmt::format("{}/berth-XXXXXX{}", root, suffix), suffix.size(), content);
}

}  // namespace berth::cli
