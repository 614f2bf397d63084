// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/console_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "rt/deadline.h"
#include "rt/event.h"

namespace berth::runtime {
namespace {

using Channel = iri::AttachFrame::Channel;

struct Piece {
  std::string bytes;
  off_t next = 0;
};

// What stands in the file from `at` on, at most `bytes_max`; from the beginning if it is shorter by
// now. Nothing if there is none.
Piece ReadFrom(const std::string& path, off_t at, size_t bytes_max) {
  Piece piece;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return piece;
  const off_t end = lseek(fd, 0, SEEK_END);
  if (at > end) at = 0;
  const auto wanted = std::min(bytes_max, static_cast<size_t>(std::max<off_t>(end - at, 0)));
  piece.bytes.resize(wanted);
  size_t have = 0;
  while (have < wanted) {
    const ssize_t count =
        pread(fd, piece.bytes.data() + have, wanted - have, at + static_cast<off_t>(have));
    if (count <= 0) break;
    have += static_cast<size_t>(count);
  }
  piece.bytes.resize(have);
  piece.next = at + static_cast<off_t>(have);
  close(fd);
  return piece;
}

Piece ReadTail(const LogRequest& request) {
  struct stat status = {};
  if (lstat(request.path.c_str(), &status) != 0) return {};
  const off_t begin = std::max<off_t>(status.st_size - static_cast<off_t>(kLogTailMax), 0);
  Piece piece = ReadFrom(request.path, begin, kLogTailMax);
  piece.bytes = std::string(LastLines(piece.bytes, request.lines));
  return piece;
}

class LogStream final : public iri::AttachStream {
 public:
  LogStream(rt::BlockingPool& files, LogRequest request, std::function<bool()> is_over, Piece tail)
      : files_(files),
        request_(std::move(request)),
        is_over_(std::move(is_over)),
        bytes_(std::move(tail.bytes)),
        at_(tail.next) {}

  rt::Task<Result<std::optional<iri::AttachFrame>>> Read() override {
    while (bytes_.empty() && request_.follow && !closed_.is_set()) {
      // Asked before the last look: what it said before its end is not missed.
      const bool is_over = is_over_();
      const auto read = [this]() -> Result<Piece> {
        return ReadFrom(request_.path, at_, iri::kAttachFrameBytesMax);
      };
      CO_TRY(Piece more, co_await files_.Run("machines.log", read));
      at_ = more.next;
      bytes_ = std::move(more.bytes);
      if (!bytes_.empty()) break;
      if (is_over) request_.follow = false;
      if (!request_.follow) break;
      const Status waited = co_await rt::WithDeadline(closed_.Wait(), kPause);
      if (waited.Is(Reason::kCancelled)) co_return waited;
    }
    if (closed_.is_set() || ended_) co_return std::optional<iri::AttachFrame>();
    iri::AttachFrame frame;
    ended_ = bytes_.empty();
    frame.channel = ended_ ? Channel::kEnd : Channel::kOut;
    frame.data = ended_ ? "0" : bytes_.substr(0, iri::kAttachFrameBytesMax);
    if (!ended_) bytes_.erase(0, iri::kAttachFrameBytesMax);
    co_return std::optional<iri::AttachFrame>(std::move(frame));
  }
  rt::Task<Status> Write(iri::AttachFrame /*frame*/) override {
    co_return Unavailable("a log is only read");
  }
  rt::Task<Status> Close() override {
    closed_.Set();
    co_return OkStatus();
  }

 private:
  // Nobody tells of a file that grows.
  static constexpr Duration kPause = Duration::Millis(250);

  rt::BlockingPool& files_;
  LogRequest request_;
  const std::function<bool()> is_over_;
  std::string bytes_;  // read and not yet given away
  off_t at_ = 0;
  bool ended_ = false;
  rt::Event closed_;
};

}  // namespace

std::string_view LastLines(std::string_view text, size_t lines) {
  size_t begin = text.size();
  while (lines > 0 && begin > 0) {
    // The break at the end of a line belongs to it.
    const size_t found = begin < 2 ? std::string_view::npos : text.rfind('\n', begin - 2);
    begin = found == std::string_view::npos ? 0 : found + 1;
    --lines;
  }
  return text.substr(begin);
}

Result<LogRequest> LogRequestOf(std::string path, const iri::StringMap& options) {
  LogRequest request;
  request.path = std::move(path);
  if (const auto lines = options.find("tailLines"); lines != options.end()) {
    const auto count = ParseUint(lines->second);
    if (!count.has_value()) return BadRequest("tailLines " + Quote(lines->second));
    request.lines = *count;
  }
  const auto follow = options.find("follow");
  request.follow = follow != options.end() && follow->second == "true";
  return request;
}

rt::Task<Result<std::unique_ptr<iri::AttachStream>>> OpenLog(rt::BlockingPool* files,
                                                             LogRequest request,
                                                             std::function<bool()> is_over) {
  const auto read = [&request]() -> Result<Piece> { return ReadTail(request); };
  CO_TRY(Piece tail, co_await files->Run("machines.log", read));
  std::unique_ptr<iri::AttachStream> stream =
      std::make_unique<LogStream>(*files, std::move(request), std::move(is_over), std::move(tail));
  co_return stream;
}

}  // namespace berth::runtime
