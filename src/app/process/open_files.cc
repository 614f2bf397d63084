// SPDX-License-Identifier: Apache-2.0
#include "app/process/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace berth::app {

uint64_t RaiseOpenFiles(uint64_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    LOG_WARNING("open files: the limit cannot be read: {}", std::strerror(errno));
    return 0;
  }
  const uint64_t before = limit.rlim_cur;
  const uint64_t most = std::min<uint64_t>(limit.rlim_max, kOpenFilesMax);
  if (most > before) {
    limit.rlim_cur = most;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      LOG_WARNING("open files: the limit stays at {}: {}", before, std::strerror(errno));
      limit.rlim_cur = before;
    }
  }
  if (limit.rlim_cur < wanted) {
    LOG_WARNING("open files: at most {} at once, {} are wanted: ulimit -Hn, LimitNOFILE=",
                limit.rlim_cur,
                wanted);
  }
  return limit.rlim_cur;
}

Status CheckOpenFiles(uint64_t limit) {
  if (limit == 0 || limit >= kOpenFilesMin) return OkStatus();
  return Unavailable(
      fmt::format("open files: at most {} at once, a server needs {}: ulimit -Hn, LimitNOFILE=",
                  limit,
                  kOpenFilesMin));
}

}  // namespace berth::app
