// SPDX-License-Identifier: Apache-2.0
// HTTP messages as our code sees them. No library type appears here; Beast stays inside
// net/http_*.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "rt/task.h"

namespace berth::net {

struct Header {
  std::string name;
  std::string value;
};

// Header fields in order of arrival; names compare without case.
class Headers {
 public:
  std::string_view Get(std::string_view name) const;  // the first one; "" if absent
  std::vector<std::string_view> GetAll(std::string_view name) const;
  bool Has(std::string_view name) const;
  void Set(std::string_view name, std::string value);  // replaces all of that name
  void Add(std::string_view name, std::string value);
  void Remove(std::string_view name);
  const std::vector<Header>& all() const { return fields_; }

 private:
  std::vector<Header> fields_;
};

// Who is at the other end of a connection, as far as TLS knows.
struct Peer {
  std::string address;  // "127.0.0.1:4242"
  // DER of the client certificate that the handshake verified against the client CA; empty without
  // one. An expired, foreign or broken certificate ends the handshake, it never arrives here.
  std::string certificate_der;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // "/api/v1/namespaces?limit=5", as sent
  Headers headers;
  std::string body;  // whole, within the server's limit; capacity has simdjson's padding behind it
  Peer peer;
};

// The body of a streaming answer. Write() returns when the bytes are handed to TLS: that is the
// back-pressure. A slow reader fails with Timeout after the server's write limit; a gone one with
// Unavailable.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  // Sends the parts as one chunk in as few TLS records as possible.
  virtual rt::Task<Status> Write(std::vector<Bytes> parts) = 0;
  // Ok until the peer is known to be gone.
  virtual bool peer_gone() const = 0;
};

// A message connection after an upgrade to WebSocket.
class WebSocket {
 public:
  enum class Kind : uint8_t { kText, kBinary };
  struct Message {
    Kind kind = Kind::kBinary;
    std::string data;
  };
  virtual ~WebSocket() = default;
  virtual rt::Task<Result<Message>> Receive() = 0;  // Unavailable once closed
  virtual rt::Task<Status> Send(Message message) = 0;
  virtual rt::Task<Status> Close(uint16_t code, std::string reason) = 0;
};

struct HttpResponse {
  int status = 200;
  Headers headers;
  std::vector<Bytes> body;  // sent with Content-Length
  // If set, `body` is ignored, the answer is chunked and this runs until it returns; a non-ok end
  // cuts the connection, so that the client notices. It runs after the handler's frame is gone:
  // what it captures, it owns. The same holds for `websocket`.
  std::function<rt::Task<Status>(BodyWriter&)> stream;
  // If set and the request asked for it, answers 101 with `Sec-WebSocket-Protocol` taken from
  // `headers`.
  std::function<rt::Task<Status>(WebSocket&)> websocket;
};

// Turns a request into an answer. Runs on the server's loop; several requests are in progress at
// once.
using HttpHandler = std::function<rt::Task<HttpResponse>(HttpRequest)>;

}  // namespace berth::net
