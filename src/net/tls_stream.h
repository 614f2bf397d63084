// SPDX-License-Identifier: Apache-2.0
// TLS over a socket: OpenSSL works on the descriptor itself, so a connection holds no buffers of
// ours and an idle one none of OpenSSL's (about 14 KB in all).
#pragma once

#include <memory>
#include <string>

#include "net/handshake_lane.h"
#include "net/stream.h"
#include "net/tls.h"

struct ssl_st;  // OpenSSL's SSL

namespace berth::net {

class TlsStream final : public Stream {
 public:
  // Takes the descriptor over and does the handshake within `limit`. Unavailable says why it
  // failed; on the client side with the server's name (IsTrustFailure tells them apart).
  static rt::Task<Result<std::unique_ptr<Stream>>> Accept(rt::AsioLoop* loop,
                                                          int fd,
                                                          std::shared_ptr<const TlsContext> context,
                                                          Duration limit,
                                                          HandshakeLane* lane = nullptr);
  // `server_name` is what the certificate must name: a host or a numeric address.
  static rt::Task<Result<std::unique_ptr<Stream>>> Connect(
      rt::AsioLoop* loop,
      int fd,
      std::shared_ptr<const TlsContext> context,
      std::string server_name,
      Duration limit);

  ~TlsStream() override;
  void Shutdown() override;
  std::string peer_certificate_der() const override;
  CertificateState peer_certificate_state() const override;
  std::string peer_subject_hash() const override;
  std::string alpn() const override;

 private:
  TlsStream(rt::AsioLoop& loop, int fd, std::shared_ptr<const TlsContext> context);
  Status SetServerName(const std::string& name);
  rt::Task<Status> Handshake(Duration limit, HandshakeLane* lane);
  rt::Task<Result<int>> HandshakeStep(HandshakeLane::Passage* passage);
  Status HandshakeError();
  IoResult TryRead(std::span<char> into) override;
  IoResult TryWrite(std::span<const std::string_view> parts, size_t offset) override;
  IoResult TryPeek() override;
  bool HasBuffered() const override;
  IoResult Judge(int returned, size_t bytes) const;

  std::shared_ptr<const TlsContext> context_;
  ssl_st* ssl_;
  std::string server_name_;  // of a client's stream
  bool plain_http_ = false;  // the peer spoke HTTP instead of TLS
  bool broken_ = false;      // no close_notify after a fatal error
};

}  // namespace berth::net
