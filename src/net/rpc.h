// SPDX-License-Identifier: Apache-2.0
// Calls between our own processes: unary calls and streams of messages, in gRPC's terms but
// without gRPC. Messages are bytes here; whoever calls or serves encodes them. Two bodies pass
// net/conformance: net/h2 speaks gRPC's wire protocol over HTTP/2 and TLS, net/sim is a simulated
// network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/tls.h"
#include "rt/task.h"

namespace berth::net {

// Who is at the other end, as far as the transport knows.
struct RpcPeer {
  std::string address;
  std::string certificate_der;  // signed by the server's client CA; "" without one
  // kExpired only where the server marks: everything about the certificate is right but its time.
  CertificateState certificate_state = CertificateState::kNone;
  // A handler that learns from the call itself whose it is, by a token, says so: until then a peer
  // without a certificate has a small share of what the server spares. Only for such peers, and on
  // servers that count; empty otherwise. Called on the handler's loop, while the call lasts.
  std::function<void(std::string user)> introduce = {};
};

// One long, ordered exchange of messages. Reliable until it breaks; what was queued when it broke
// may or may not have arrived.
class MessageStream {
 public:
  virtual ~MessageStream() = default;

  // The next message. nullopt: the other side has sent its last and all is well. An error is the
  // status that the server ended with, or Unavailable if the connection is lost. A message is
  // asked of the peer only when somebody reads: a slow reader slows its peer, nobody else. One
  // reader at a time; a cancelled read loses nothing.
  virtual rt::Task<Result<std::optional<std::string>>> Read() = 0;

  // Queues a message. Everything that is queued in one turn of the loop leaves in one write. False
  // if the outbox is full or the stream is over; the message is dropped then.
  [[nodiscard]] virtual bool TryWrite(std::string message) = 0;
  // Waits while the outbox is full. Unavailable once the stream is over.
  virtual rt::Task<Status> Write(std::string message) = 0;
  virtual size_t outbox_bytes() const = 0;

  // No more messages from us, after those that are queued. On a server the handler's return value
  // does this.
  virtual void WritesDone() = 0;
  // Breaks the stream off at once; what is queued is lost. The peer sees `why` where the transport
  // can carry it, Unavailable otherwise. Idempotent.
  virtual void Abort(Status why) = 0;
};

// What a handler is told about a call.
struct RpcCall {
  std::string method;  // "/berth.agent.v1.AgentService/Connect"
  std::map<std::string, std::string, std::less<>> metadata;  // names in lower case
  std::optional<Time> deadline;
  RpcPeer peer;
};

// A handler is cancelled when its client is gone, its deadline has passed or the server drains.
using UnaryHandler =
    std::function<rt::Task<Result<std::string>>(RpcCall call, std::string request)>;
// Whether a caller may ask at all. Runs where handlers do.
using Admission = std::function<rt::Task<Status>(RpcCall call)>;
// The stream lives until the handler returns; its status ends the call.
using StreamHandler = std::function<rt::Task<Status>(RpcCall call, MessageStream& stream)>;

struct RpcLimits {
  size_t message_bytes_max = 4 * 1024 * 1024;  // of one message, either way
  size_t outbox_bytes_max = 8 * 1024 * 1024;   // queued and not yet taken by the peer
};

// What a server serves. Filled before it starts.
struct RpcRoutes {
  struct Unary {
    UnaryHandler handler;
    RpcLimits limits;
    Admission admit = {};  // asked before the request is read; empty: everybody may
  };
  struct Stream {
    StreamHandler handler;
    RpcLimits limits;
  };
  std::map<std::string, Unary, std::less<>> unary;
  std::map<std::string, Stream, std::less<>> streams;  // server, client and bidirectional alike
};

// A running server of either body; how it is started is the body's own (net/h2, net/sim).
class RpcServer {
 public:
  virtual ~RpcServer() = default;  // REQUIRES: Stop() was awaited.
  // "host:port" as a dialer takes it.
  virtual const std::string& address() const = 0;
  // Takes no new calls, cancels streams (their clients see Unavailable), lets unary calls finish
  // within the body's drain time, closes all connections. Always ok. Idempotent.
  virtual rt::Task<Status> Stop() = 0;
};

struct RpcOptions {
  std::optional<Duration> deadline;  // of the whole call
  std::map<std::string, std::string, std::less<>> metadata;
  RpcLimits limits;
};

// One connection to a server, for any number of calls. On-loop only.
class RpcChannel {
 public:
  virtual ~RpcChannel() = default;

  // The answer, or the server's error; Unavailable if the connection is lost: the call may or may
  // not have been carried out.
  virtual rt::Task<Result<std::string>> Call(std::string method,
                                             std::string request,
                                             RpcOptions options) = 0;
  // Opens a stream; does not wait for the server's first word. The stream must not outlive the
  // channel.
  virtual rt::Task<Result<std::unique_ptr<MessageStream>>> Open(std::string method,
                                                                RpcOptions options) = 0;
  // False once the connection is lost or the server drains: dial again.
  virtual bool usable() const = 0;
  // Breaks off what is in progress and closes the connection. Idempotent; awaited before the
  // channel is destroyed.
  virtual rt::Task<Status> Close() = 0;
};

// What a client shows and trusts.
struct RpcCredentials {
  std::string ca_pem;           // of the server; "" only with `ca_pin`
  std::string ca_pin;           // "sha256:<hex>" of the server's CA certificate, DER; "" for none
  std::string certificate_pem;  // "" for none
  std::string key_pem;
  bool operator==(const RpcCredentials&) const = default;
};

class RpcDialer {
 public:
  virtual ~RpcDialer() = default;
  // Connects to "host:port" within `limit`. Unauthorized if one of the two does not trust the
  // other, with the reason; Unavailable if nobody answers.
  virtual rt::Task<Result<std::unique_ptr<RpcChannel>>> Dial(std::string address,
                                                             RpcCredentials credentials,
                                                             Duration limit) = 0;
};

}  // namespace berth::net
