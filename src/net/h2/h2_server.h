// SPDX-License-Identifier: Apache-2.0
// H2Server serves RpcRoutes to gRPC clients over HTTP/2 and TLS 1.3, all on one loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/acceptor.h"
#include "net/h2/h2_limits.h"
#include "net/owned_fd.h"
#include "net/rpc.h"
#include "net/tls.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::net {

struct H2ServerOptions {
  std::string address = "127.0.0.1";  // numeric
  uint16_t port = 0;                  // 0: the kernel chooses
  // A socket that listens already (net/socket.h), instead of address and port.
  std::shared_ptr<OwnedFd> listener;
  // Made by NewH2ServerTls, or with "h2" as its only ALPN name.
  std::shared_ptr<const TlsContext> tls;
  H2Limits limits;

  // 10,000 sessions * 60 KB = 600 MB, twice the fleet of 5,000 hosts. With one more, one makes way:
  // of nobody or without a call for some time, in a handshake, or new and without a call.
  size_t connections_max = 10'000;
  // Handshakes that are not done; when there are more, the oldest of the address that has most is
  // given up for the newest, so that peers that say nothing keep nobody out. All of 5,000 hosts may
  // come back at once.
  size_t handshakes_max = 5'000;
  // All hosts of a site may be behind one address.
  size_t connections_per_address_max = 10'000;
  // A host that joins has no certificate yet, and needs none for longer than one call. Who is in a
  // handshake is not counted: nobody knows who that will be.
  AnonymousLimits anonymous;
  // A host has one connection, and a new one before the old is noticed to be dead.
  size_t connections_per_identity_max = 64;
  Duration handshake_timeout = Duration::Seconds(10);
  // kWhenOpened: who connects waits with the kernel, at no cost, until Open().
  Acceptor::Doors doors = Acceptor::Doors::kOpen;
  Duration drain_timeout = Duration::Seconds(5);  // how long Stop() waits for unary calls
};

// The TLS context of such a server. `options.alpn` is ignored. For clients that pin the CA,
// `certificate_pem` holds the CA's certificate behind the leaf.
Result<std::shared_ptr<const TlsContext>> NewH2ServerTls(TlsServerOptions options);

class H2Server final : public RpcServer {
 public:
  // Listens and serves until Stop(). Unavailable if the address cannot be had; BadRequest without
  // TLS. On-loop only.
  static Result<std::unique_ptr<H2Server>> Start(rt::AsioLoop& loop,
                                                 H2ServerOptions options,
                                                 RpcRoutes routes);
  ~H2Server() override;

  const std::string& address() const override;
  uint16_t port() const;
  size_t connections() const;
  void Open();
  // New connections use this context; those in progress keep theirs.
  void SetTls(std::shared_ptr<const TlsContext> tls);
  rt::Task<Status> Stop() override;

 private:
  class Body;
  explicit H2Server(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::net
