// SPDX-License-Identifier: Apache-2.0
// One connection of an HttpServer: reads a request, runs its handler, writes the answer, again.
//
//   idle ──first byte──► reading ──whole request──► handling ──answer──► writing ──► idle
//     │                     │                          │ peer gone: the handler is cancelled
//     └── drain, timeout ───┴── 400, 408, 413, 503 ────┴──────────────► closed
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/body_budget.h"
#include "net/http.h"
#include "net/http1_parser.h"
#include "net/http_server.h"
#include "net/stream.h"
#include "rt/child_context.h"
#include "rt/task.h"

namespace berth::net {

// What the connections of a server share.
struct HttpShared {
  const HttpServerOptions& options;
  const HttpHandler& handler;
  BodyBudget& bodies;
  // The Date of now.
  std::function<std::string_view()> date;
  bool draining = false;
};

class HttpConnection {
 public:
  HttpConnection(HttpShared& shared, Stream& stream);

  // Serves until the connection ends. Never fails for what the peer does.
  rt::Task<Status> Run();

  // True while a request is read or a plain answer is made: what a drain waits for.
  bool busy() const { return state_ == State::kBusy; }
  // Between two requests, or before the first.
  bool idle() const { return state_ == State::kIdle; }

 private:
  enum class State : uint8_t { kIdle, kBusy, kStreaming };
  class ChunkWriter;
  // What the answer must know of its request.
  struct Asked {
    bool is_head = false;
    bool is_http10 = false;
    bool keep_alive = true;
    std::string websocket_key;  // "" if no WebSocket was asked for, or not rightly
  };

  // Each gives false when the connection is to be closed. They are kept out of line so that each
  // has a frame of its own, freed when it ends: merged by the optimiser they cost 23 KB per
  // connection, idle or not.
  rt::Task<Result<bool>> WaitForRequest();
  [[gnu::noinline]] rt::Task<Result<bool>> ServeOne();
  [[gnu::noinline]] rt::Task<Result<bool>> ReadHead(Http1Parser* parser);
  [[gnu::noinline]] rt::Task<Result<bool>> ReadBody(Http1Parser* parser, std::string* body);
  [[gnu::noinline]] rt::Task<Result<bool>> ReadChunkedBody(Http1Parser* parser,
                                                           std::string* body,
                                                           BodyBudget::Body* counted);
  [[gnu::noinline]] rt::Task<Result<bool>> ReadSizedBody(size_t size,
                                                         std::string* body,
                                                         BodyBudget::Body* counted);
  rt::Task<Result<bool>> ReadMore();
  [[gnu::noinline]] rt::Task<Result<bool>> Answer(Asked asked, HttpRequest request);
  [[gnu::noinline]] rt::Task<Result<bool>> WriteWhole(const Asked* asked,
                                                      const HttpResponse* response);
  [[gnu::noinline]] rt::Task<Result<bool>> WriteStream(const Asked* asked,
                                                       const HttpResponse* response,
                                                       rt::ChildContext* child);
  [[gnu::noinline]] rt::Task<Result<bool>> ServeWebSocket(const Asked* asked,
                                                          const HttpResponse* response,
                                                          rt::ChildContext* child);
  // Answers with an error and closes.
  [[gnu::noinline]] rt::Task<Result<bool>> Refuse(int status, std::string message);
  rt::Task<Status> WriteText(std::string text);
  bool KeepAlive(const Asked& asked) const;
  Time Soon(Duration limit) const { return stream_.loop().Now() + limit; }

  HttpShared& shared_;
  Stream& stream_;
  const Peer peer_;
  State state_ = State::kIdle;
  std::string inbox_;  // read, not yet used
  bool peer_gone_ = false;
};

}  // namespace berth::net
