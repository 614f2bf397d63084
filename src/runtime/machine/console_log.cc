// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/console_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
  ino_t file = 0;  // of which it is; 0 if there is none
  off_t next = 0;
  off_t gone = 0;  // bytes before it that were cut off (console_log_cut.h)
};

// Where data begins at or behind `at`. All of it is data to a file system that cannot tell.
off_t DataFrom(int fd, off_t at, off_t end) {
  const off_t data = lseek(fd, at, SEEK_DATA);
  if (data >= 0) return data;
  return errno == ENXIO ? end : at;
}

std::string ReadAt(int fd, off_t at, size_t wanted) {
  std::string bytes(wanted, '\0');
  size_t have = 0;
  while (have < wanted) {
    const ssize_t count =
        pread(fd, bytes.data() + have, wanted - have, at + static_cast<off_t>(have));
    if (count <= 0) break;
    have += static_cast<size_t>(count);
  }
  bytes.resize(have);
  return bytes;
}

void ReadPiece(int fd, off_t at, off_t end, size_t bytes_max, Piece& piece) {
  while (at < end) {
    const off_t data = DataFrom(fd, at, end);
    piece.gone += data - at;
    at = data;
    const auto wanted = std::min(bytes_max, static_cast<size_t>(end - at));
    piece.bytes = ReadAt(fd, at, wanted);
    // Cut off while it was read, what came are zeros.
    if (DataFrom(fd, at, end) == at) break;
  }
  piece.next = at + static_cast<off_t>(piece.bytes.size());
}

// What stands in the log from `at` on, at most `bytes_max`; from the beginning if it is shorter by
// now, or another file than `file`. Nothing if there is none.
Piece ReadFrom(const std::string& path, ino_t file, off_t at, size_t bytes_max) {
  Piece piece;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return piece;
  struct stat status = {};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    const bool is_other = file != 0 && file != status.st_ino;
    if (is_other || at > status.st_size) at = 0;
    piece.file = status.st_ino;
    ReadPiece(fd, at, status.st_size, bytes_max, piece);
  }
  close(fd);
  return piece;
}

Piece ReadTail(const LogRequest& request) {
  struct stat status = {};
  if (lstat(request.path.c_str(), &status) != 0) return {};
  const off_t begin = std::max<off_t>(status.st_size - static_cast<off_t>(kLogTailMax), 0);
  Piece piece = ReadFrom(request.path, status.st_ino, begin, kLogTailMax);
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
        file_(tail.file),
        at_(tail.next) {}

  rt::Task<Result<std::optional<iri::AttachFrame>>> Read() override {
    while (bytes_.empty() && gone_ == 0 && request_.follow && !closed_.is_set()) {
      // Asked before the last look: what it said before its end is not missed.
      const bool is_over = is_over_();
      const auto read = [this]() -> Result<Piece> {
        return ReadFrom(request_.path, file_, at_, iri::kAttachFrameBytesMax);
      };
      CO_TRY(Piece more, co_await files_.Run("machines.log", read));
      file_ = more.file;
      at_ = more.next;
      gone_ = more.gone;
      bytes_ = std::move(more.bytes);
      if (!bytes_.empty() || gone_ > 0) break;
      if (is_over) request_.follow = false;
      if (!request_.follow) break;
      const Status waited = co_await rt::WithDeadline(closed_.Wait(), kPause);
      if (waited.Is(Reason::kCancelled)) co_return waited;
    }
    if (closed_.is_set() || ended_) co_return std::optional<iri::AttachFrame>();
    iri::AttachFrame frame;
    if (gone_ > 0) {
      frame.channel = Channel::kErrors;
      frame.data = fmt::format("\n[{} bytes of the log are gone]\n", std::exchange(gone_, 0));
      co_return std::optional<iri::AttachFrame>(std::move(frame));
    }
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
  ino_t file_ = 0;     // in which they were
  off_t at_ = 0;
  off_t gone_ = 0;  // before them, and not yet told
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
