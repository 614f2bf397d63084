// SPDX-License-Identifier: Apache-2.0
#include "net/stream.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace berth::net {
namespace {

// What a peer may still send after our last word: a 3 MB body that we refused, with some slack.
constexpr size_t kLingerBytesMax = 4 * 1024 * 1024;
constexpr Duration kLingerTimeMax = Duration::Seconds(2);
// As many as the kernel takes well at once; more parts need another call.
constexpr size_t kPartsPerCall = 64;

Status Gone(int error) {
  return Unavailable("connection lost: " + std::generic_category().message(error));
}

}  // namespace

Stream::~Stream() { ForgetCheck(); }

rt::Task<Status> Stream::WaitFor(Io want) {
  return want == Io::kWantRead ? socket_.Readable() : socket_.Writable();
}

rt::Task<Result<size_t>> Stream::Read(std::span<char> into) {
  CHECK(!into.empty());
  for (;;) {
    if (gone_) socket_.RearmWatch();
    // After a read that found the end of what there was: what has come meanwhile ends the wait at
    // once, for asking the socket looks. What a peek has taken from the socket does not.
    Io want = Io::kWantRead;
    if (!std::exchange(drained_, false) || HasBuffered()) {
      IoResult result = TryRead(into);
      drained_ = result.is_drained;
      if (result.io == Io::kDone) co_return result.bytes;
      if (result.io == Io::kEnd) co_return size_t{0};
      if (result.io == Io::kFailed) co_return result.error;
      want = result.io;
    }
    // The only place to wait: a frame has room for each.
    CO_TRY_STATUS(co_await WaitFor(want));
  }
}

rt::Task<Status> Stream::Write(std::span<const std::string_view> parts) {
  CHECK(!writing_) << "one writer at a time";
  if (write_broken_) co_return Unavailable("connection lost: an earlier write failed");
  size_t total = 0;
  for (const std::string_view part : parts) total += part.size();
  writing_ = true;
  Status status;
  for (size_t offset = 0; offset < total && status.ok();) {
    IoResult result = TryWrite(parts, offset);
    switch (result.io) {
      case Io::kDone: offset += result.bytes; break;
      case Io::kEnd:
      case Io::kFailed: status = result.error; break;
      case Io::kWantRead:
      case Io::kWantWrite:
        if (write_timeout_.has_value()) {
          socket_.SetWriteDeadline(loop().Now() + *write_timeout_);
        }
        status = co_await WaitFor(result.io);
        if (status.Is(Reason::kTimeout)) {
          status = Timeout("the peer takes nothing for " + FormatDuration(*write_timeout_));
        }
        break;
    }
  }
  writing_ = false;
  write_broken_ = !status.ok();
  co_return status;
}

rt::Task<Status> Stream::Linger() {
  Shutdown();
  ::shutdown(socket_.fd(), SHUT_WR);
  socket_.SetReadDeadline(loop().Now() + kLingerTimeMax);
  // Below TLS: nobody looks at these bytes.
  std::array<char, 16 * 1024> scratch;
  for (size_t taken = 0; taken < kLingerBytesMax;) {
    const ssize_t n = ::recv(socket_.fd(), scratch.data(), scratch.size(), 0);
    if (n == 0) break;
    if (n > 0) {
      taken += static_cast<size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) break;
    CO_TRY_STATUS(co_await socket_.Readable());
  }
  co_return OkStatus();
}

void Stream::WatchPeer(rt::Fn gone) {
  ForgetCheck();
  gone_ = std::move(gone);
  if (!gone_) {
    socket_.WatchReadable(nullptr);
    return;
  }
  socket_.WatchReadable([this] { CheckPeer(); });
  // A close that was read ahead together with the last bytes makes no further noise.
  if (HasBuffered()) check_ = loop().After("net.check_peer", Duration(), [this] { CheckPeer(); });
}

void Stream::ForgetCheck() {
  if (check_ != rt::TimerId()) loop().CancelTimer(std::exchange(check_, rt::TimerId()));
}

void Stream::CheckPeer() {
  if (!gone_) return;
  switch (TryPeek().io) {
    case Io::kWantRead:
    case Io::kWantWrite: socket_.RearmWatch(); return;
    case Io::kDone: return;  // the next request, early: it is read in its turn
    case Io::kEnd:
    case Io::kFailed: break;
  }
  rt::Fn gone = std::exchange(gone_, nullptr);
  gone();
}

void PlainStream::Shutdown() { ::shutdown(socket().fd(), SHUT_WR); }

Stream::IoResult PlainStream::TryRead(std::span<char> into) {
  for (;;) {
    const ssize_t n = ::recv(socket().fd(), into.data(), into.size(), 0);
    if (n > 0) return {.io = Io::kDone, .bytes = static_cast<size_t>(n)};
    if (n == 0) return {.io = Io::kEnd};
    if (errno == EAGAIN) return {.io = Io::kWantRead};
    if (errno != EINTR) return {.io = Io::kFailed, .error = Gone(errno)};
  }
}

Stream::IoResult PlainStream::TryWrite(std::span<const std::string_view> parts, size_t offset) {
  std::array<iovec, kPartsPerCall> vectors{};
  size_t count = 0;
  for (const std::string_view part : parts) {
    if (offset >= part.size()) {
      offset -= part.size();
      continue;
    }
    const std::string_view rest = part.substr(offset);
    offset = 0;
    vectors[count++] = {.iov_base = const_cast<char*>(rest.data()), .iov_len = rest.size()};
    if (count == vectors.size()) break;
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  for (;;) {
    const ssize_t n = ::sendmsg(socket().fd(), &message, MSG_NOSIGNAL);
    if (n >= 0) return {.io = Io::kDone, .bytes = static_cast<size_t>(n)};
    if (errno == EAGAIN) return {.io = Io::kWantWrite};
    if (errno != EINTR) return {.io = Io::kFailed, .error = Gone(errno)};
  }
}

Stream::IoResult PlainStream::TryPeek() {
  char byte = 0;
  for (;;) {
    const ssize_t n = ::recv(socket().fd(), &byte, 1, MSG_PEEK);
    if (n > 0) return {.io = Io::kDone, .bytes = 1};
    if (n == 0) return {.io = Io::kEnd};
    if (errno == EAGAIN) return {.io = Io::kWantRead};
    if (errno != EINTR) return {.io = Io::kFailed, .error = Gone(errno)};
  }
}

}  // namespace berth::net
