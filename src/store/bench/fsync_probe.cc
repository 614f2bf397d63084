// SPDX-License-Identifier: Apache-2.0
#include "store/bench/fsync_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rt/asio/asio_loop.h"

namespace berth::store {
namespace {

constexpr size_t kWriteBytes = 1024;

Status ProbeError(const std::string& path) {
  return Unavailable(fmt::format("measure fsync with {}: {}", path, std::strerror(errno)));
}

}  // namespace

Result<double> MeasureFsyncPerSecond(const std::string& dir, Duration duration) {
  std::string path = dir + "/fsync-probe-XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0) return ProbeError(path);
  ::unlink(path.c_str());
  const rt::AsioLoop clock("probe");  // only its clock is used
  const std::string block(kWriteBytes, 'x');
  const Time start = clock.Now();
  int64_t count = 0;
  Status status;
  while (status.ok() && clock.Now() - start < duration) {
    const bool written =
        ::write(fd, block.data(), block.size()) == static_cast<ssize_t>(kWriteBytes);
    if (!written || ::fdatasync(fd) != 0) status = ProbeError(path);
    ++count;
  }
  const Duration taken = std::max(clock.Now() - start, Duration::Nanos(1));
  ::close(fd);
  if (!status.ok()) return status;
  return static_cast<double>(count) / taken.to_seconds();
}

}  // namespace berth::store
