// SPDX-License-Identifier: Apache-2.0
// An HttpClient talks HTTP/1.1 to one server, over TLS, TCP or a unix socket, and keeps connections
// for the next request. On-loop only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "net/address_policy.h"
#include "net/http.h"
#include "net/tls.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::net {

struct HttpClientOptions {
  // "https://host:8443", "http://host:8080" or "unix:///run/x.sock". A path in the url is ignored.
  std::string url;
  std::shared_ptr<const TlsContext> tls;  // required by https
  std::string server_name;                // what the certificate must name; "": the url's host
  Duration connect_timeout = Duration::Seconds(10);  // with the TLS handshake
  Duration write_timeout = Duration::Seconds(30);    // a server that takes nothing
  Duration idle_timeout = Duration::Seconds(90);     // below the server's: it must not be the first
  size_t idle_max = 16;                              // kept connections
  size_t connections_max = 256;  // at once, streams included; more requests wait
  size_t websocket_message_max = 16 * 1024 * 1024;
  AddressPolicy allows_address = {};  // of the url's host
};

struct HttpClientRequest {
  std::string method = "GET";
  std::string target = "/";
  Headers headers;
  std::vector<Bytes> body;
};

struct HttpClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

struct SendOptions {
  Duration deadline = Duration::Seconds(30);
  uint64_t body_max = 64ULL * 1024 * 1024;
};

// An answer whose body is read as it arrives. Destroying it cuts the connection. The client
// outlives it.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  virtual int status() const = 0;
  virtual const Headers& headers() const = 0;
  // The next bytes of the body, as many as there are; "" at its orderly end. Unavailable if the
  // connection is cut; Cancelled. Waits as long as it takes.
  virtual rt::Task<Result<std::string>> Read() = 0;
};

class HttpClient {
 public:
  // BadRequest if the url is none, or https without a TLS context.
  static Result<std::unique_ptr<HttpClient>> New(rt::AsioLoop& loop, HttpClientOptions options);
  // REQUIRES: no request, stream or WebSocket is in progress.
  ~HttpClient();

  // Sends a request and reads the whole answer, whatever its status. Timeout after the deadline;
  // Unavailable if the server cannot be reached or the connection breaks, with the server's name
  // and the reason; RequestTooLarge if the answer is. A request on a kept connection that turns out
  // to be closed is sent again on a fresh one if its method is idempotent.
  rt::Task<Result<HttpClientResponse>> Send(HttpClientRequest request, SendOptions options = {});

  // Sends a request and reads the head of the answer; the deadline is for that.
  rt::Task<Result<std::unique_ptr<HttpStream>>> Open(HttpClientRequest request,
                                                     Duration deadline = Duration::Seconds(30));

  // Upgrades to a WebSocket; the request's method is GET. An answer other than 101 becomes an error
  // with its status' reason and the start of its body.
  rt::Task<Result<std::unique_ptr<WebSocket>>> OpenWebSocket(
      HttpClientRequest request, Duration deadline = Duration::Seconds(30));

  // Makes sure that a connection stands, a kept one or a new one, which the next request uses. What
  // fails here was not sent. Unavailable or Timeout with the server's name. REQUIRES: idle_max > 0.
  rt::Task<Status> Reach();

  // New connections use this context; kept ones are dropped.
  void SetTls(std::shared_ptr<const TlsContext> tls);
  // Drops kept connections.
  void DropIdle();

 private:
  class Body;
  explicit HttpClient(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::net
