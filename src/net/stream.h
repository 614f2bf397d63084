// SPDX-License-Identifier: Apache-2.0
// A Stream is an ordered run of bytes in both directions over one connection: plain (PlainStream)
// or TLS (TlsStream). One reader and one writer at a time. On-loop only; destroying it closes the
// connection at once.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "net/socket.h"
#include "net/tls.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::net {

class Stream {
 public:
  Stream(rt::AsioLoop& loop, int fd) : socket_(loop, fd) {}
  virtual ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // At least one byte, or 0 at the orderly end. `into` is touched only in the turn in which the
  // read ends, so connections of one loop may share it. Unavailable if the peer is gone, Timeout,
  // or Cancelled; a cancelled read has taken nothing.
  rt::Task<Result<size_t>> Read(std::span<char> into);

  // Writes all parts, gathered into as few records and system calls as possible. The parts and what
  // they view live until it ends. Timeout when the peer takes nothing for the write timeout. After
  // a failure, Cancelled included, the stream takes no more writes.
  rt::Task<Status> Write(std::span<const std::string_view> parts);

  // Tells the peer that nothing follows. Does not wait for the peer.
  virtual void Shutdown() = 0;
  // Shutdown, then takes what the peer still sends and throws it away, within bounds, so that an
  // answer given in the middle of a request is not destroyed by a reset.
  rt::Task<Status> Linger();

  // Reads end with Timeout at that time; nullopt: never.
  void SetReadDeadline(std::optional<Time> deadline) { socket_.SetReadDeadline(deadline); }
  // A write that makes no progress for this long ends with Timeout; nullopt: never.
  void SetWriteTimeout(std::optional<Duration> timeout) { write_timeout_ = timeout; }

  // Calls `gone` once, in a turn of its own, when the peer has closed or reset the connection while
  // nobody reads. Bytes that arrive are left alone, and end the watch. An empty fn ends it too.
  void WatchPeer(rt::Fn gone);

  // False if the peer is gone or has sent something: a kept connection that is not quiet is not
  // used again. REQUIRES: nobody reads.
  bool IsQuiet() { return TryPeek().io == Io::kWantRead; }

  std::string peer_address() const { return PeerAddress(socket_.fd()); }
  // The DER of the peer's verified certificate; "" without one.
  virtual std::string peer_certificate_der() const { return {}; }
  virtual CertificateState peer_certificate_state() const { return CertificateState::kNone; }
  // Something short that is the same for all certificates of one subject; "" without one.
  virtual std::string peer_subject_hash() const { return {}; }
  // What ALPN agreed on; "" without.
  virtual std::string alpn() const { return {}; }
  rt::AsioLoop& loop() const { return socket_.loop(); }

 protected:
  enum class Io : uint8_t { kDone, kWantRead, kWantWrite, kEnd, kFailed };
  struct IoResult {
    Io io = Io::kDone;
    size_t bytes = 0;
    Status error;
    bool is_drained = false;  // of a read: there is probably no more, it is not worth to look
  };
  // One attempt, without blocking.
  virtual IoResult TryRead(std::span<char> into) = 0;
  // Writes from `offset` of the parts' concatenation.
  virtual IoResult TryWrite(std::span<const std::string_view> parts, size_t offset) = 0;
  // kDone: bytes wait to be read. kWantRead: none. kEnd, kFailed: the peer is gone.
  virtual IoResult TryPeek() = 0;
  // True if bytes may be waiting above the socket, which then never becomes readable for them.
  virtual bool HasBuffered() const { return false; }

  rt::Task<Status> WaitFor(Io want);
  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }

 private:
  void CheckPeer();
  void ForgetCheck();

  Socket socket_;
  std::optional<Duration> write_timeout_;
  rt::Fn gone_;
  rt::TimerId check_;     // of a peer check that the socket will not ask for
  bool drained_ = false;  // by the last read
  bool writing_ = false;
  bool write_broken_ = false;
};

// Bytes as they are, over TCP, a unix socket or a socket pair.
class PlainStream final : public Stream {
 public:
  PlainStream(rt::AsioLoop& loop, int fd) : Stream(loop, fd) {}
  void Shutdown() override;

 private:
  IoResult TryRead(std::span<char> into) override;
  IoResult TryWrite(std::span<const std::string_view> parts, size_t offset) override;
  IoResult TryPeek() override;
};

}  // namespace berth::net
