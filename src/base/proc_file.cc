// SPDX-License-Identifier: Apache-2.0
#include "base/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace berth {

std::string ReadToEnd(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t count = read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {};
    if (count == 0) return text;
    text.append(part.data(), static_cast<size_t>(count));
  }
}

std::string ReadProcFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text = ReadToEnd(fd);
  close(fd);
  return text;
}

}  // namespace berth
