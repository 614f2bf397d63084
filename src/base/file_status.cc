// SPDX-License-Identifier: Apache-2.0
#include "base/file_status.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth {
namespace {

Status Sync(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return FileFailed("open", path);
  const int failed = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  if (failed == 0) return OkStatus();
  errno = failed;
  return FileFailed("sync", path);
}

}  // namespace

Status FileFailed(std::string_view doing, const std::string& path) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT;
  return {full ? Reason::kTooManyRequests : Reason::kInternal,
          fmt::format("{} {}: {}", doing, path, std::strerror(error))};
}

Status AsFullDisk(const Status& status) {
  const bool full = status.message().find("No space left on device") != std::string_view::npos ||
                    status.message().find("Disk quota exceeded") != std::string_view::npos;
  return full ? Status(Reason::kTooManyRequests, std::string(status.message())) : status;
}

Status SyncFile(const std::string& path) { return Sync(path, O_RDONLY); }
Status SyncFolder(const std::string& path) { return Sync(path, O_RDONLY | O_DIRECTORY); }

}  // namespace berth
