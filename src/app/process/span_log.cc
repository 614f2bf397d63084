// SPDX-License-Identifier: Apache-2.0
#include "app/process/span_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "meta/json.h"

namespace berth::app {

Result<std::unique_ptr<SpanLog>> SpanLog::Open(rt::Loop& loop, const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return BadRequest("--trace " + path + ": " + std::string(std::strerror(errno)));
  return std::unique_ptr<SpanLog>(new SpanLog(loop, fd));
}

SpanLog::~SpanLog() { close(fd_); }

void SpanLog::Add(std::string_view span, std::string_view of, WallTime begin, WallTime end) {
  std::string line = fmt::format("{{\"span\":\"{}\"", span);
  if (!of.empty()) {
    line += ",\"of\":";
    meta::AppendJsonString(of, line);
  }
  line += fmt::format(",\"begin\":{},\"end\":{}}}\n", begin.micros(), end.micros());
  // One write of a short line to a file that is open for appending is one line.
  static_cast<void>(write(fd_, line.data(), line.size()) == 0);
}

}  // namespace berth::app
