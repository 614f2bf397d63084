// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/console_log_cut.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_status.h"

namespace berth::runtime {
namespace {

Status CutOpenLog(int fd, const std::string& path, int64_t keep, int64_t length_max) {
  constexpr int64_t kBlock = 512;  // of st_blocks
  struct stat status = {};
  if (fstat(fd, &status) != 0) return FileFailed("look at", path);
  if (!S_ISREG(status.st_mode)) return OkStatus();
  const int64_t length = status.st_size;
  if (length <= length_max) {
    const int64_t gone = (length - keep) / kLogCutUnit * kLogCutUnit;
    const int64_t taken = int64_t{status.st_blocks} * kBlock;
    if (gone <= 0 || taken <= length - gone + kLogCutUnit) return OkStatus();
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, gone) == 0) return OkStatus();
    if (errno != EOPNOTSUPP && errno != ENOSYS) return FileFailed("cut", path);
  }
  // QEMU appends: it goes on at the beginning.
  return ftruncate(fd, 0) == 0 ? OkStatus() : FileFailed("empty", path);
}

}  // namespace

Status CutLog(const std::string& path, int64_t keep, int64_t length_max) {
  // Not O_APPEND: the front is written to.
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT ? OkStatus() : FileFailed("open", path);
  Status cut = CutOpenLog(fd, path, keep, length_max);
  close(fd);
  return cut;
}

}  // namespace berth::runtime
