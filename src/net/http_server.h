// SPDX-License-Identifier: Apache-2.0
// HttpServer serves HTTP/1.1 (and WebSocket upgrades) over TLS, or plainly if no TLS context is
// given. All on one loop: a handler per request, cancelled when its client goes away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"
#include "net/http1_parser.h"
#include "net/stream.h"
#include "net/tls.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::net {

// Serves connections of another protocol on the port of an HttpServer. On-loop only.
class OtherProtocol {
 public:
  virtual ~OtherProtocol() = default;
  // Until the connection ends, or is cancelled.
  virtual rt::Task<Status> Serve(std::unique_ptr<Stream> stream) = 0;
  // Nothing new is taken; what is in progress ends soon.
  virtual void Drain() = 0;
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";      // numeric
  uint16_t port = 0;                      // 0: the kernel chooses
  std::shared_ptr<const TlsContext> tls;  // null: plain HTTP
  // For clients with whom ALPN has agreed on "h2": those that do not ask for HTTP/1.1 too, if the
  // TLS context names that one first. Outlives the server; null: there is none.
  OtherProtocol* h2 = nullptr;

  // The words of what is refused before there is a request for the handler, as 400, 408, 413 or
  // 431: only headers and body count. Empty: plain text.
  std::function<HttpResponse(int status, const std::string& message)> refusal;
  HttpLimits limits;
  // 10,000 connections * about 20 KB = 200 MB, twice the fleet of 5,000 poollets.
  size_t connections_max = 10'000;
  // When there are more, the connection that has been idle for longest is given up for the newest.
  // Many clients may be behind one address, but not all places are for one.
  size_t connections_per_address_max = 8'000;
  // Handshakes that are not done; when there are more, the oldest is given up for the newest, so
  // that peers that say nothing keep nobody out.
  size_t handshakes_max = 2'000;
  Duration handshake_timeout = Duration::Seconds(10);
  Duration header_timeout = Duration::Seconds(10);  // from the first byte to the end of the head
  Duration body_timeout = Duration::Seconds(60);
  // Of bodies that are being read (BodyBudget): 85 of the largest.
  size_t body_bytes_max = size_t{256} * 1024 * 1024;
  Duration idle_timeout = Duration::Minutes(3);    // between two requests
  Duration write_timeout = Duration::Seconds(30);  // a peer that takes nothing
  Duration drain_timeout = Duration::Seconds(5);   // how long Stop() waits for requests in progress
  size_t websocket_message_max = 1024 * 1024;
};

class HttpServer {
 public:
  // Listens and serves until Stop(). Unavailable if the address cannot be had. On-loop only.
  static Result<std::unique_ptr<HttpServer>> Start(rt::AsioLoop& loop,
                                                   HttpServerOptions options,
                                                   HttpHandler handler);
  // REQUIRES: Stop() was awaited.
  ~HttpServer();

  // "127.0.0.1:35071": where it listens.
  const std::string& address() const;
  uint16_t port() const;
  size_t connections() const;

  // New connections use this context; those in progress keep theirs.
  void SetTls(std::shared_ptr<const TlsContext> tls);

  // Stops listening, closes idle connections, cancels streaming answers and WebSockets, lets other
  // requests finish for the drain timeout, then cancels them too. Always ok.
  rt::Task<Status> Stop();

 private:
  class Body;
  explicit HttpServer(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::net
