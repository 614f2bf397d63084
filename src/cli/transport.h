// SPDX-License-Identifier: Apache-2.0
// Transport carries requests to one API server. It is synchronous, because a command does one thing
// after another: the real body (cli/https) runs a loop inside each call, the fake answers from a
// table.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"

namespace berth::cli {

struct Request {
  std::string method = "GET";
  std::string path;                                        // "/api/v1/namespaces", not escaped
  std::vector<std::pair<std::string, std::string>> query;  // not escaped
  net::Headers headers;
  std::string body;
};

// Path and query as they go on the wire.
std::string TargetOf(const Request& request);

struct Response {
  int status = 200;
  net::Headers headers;
  std::string body;
};

// Several streaming answers, read as they come.
class Streams {
 public:
  struct Chunk {
    size_t stream = 0;  // index into the requests
    std::string bytes;  // empty: this stream has ended
  };
  virtual ~Streams() = default;
  // Waits for the next bytes of any stream. Timeout once `limit` has passed without any (no limit:
  // waits for ever), Unavailable when a connection breaks.
  virtual Result<Chunk> Next(std::optional<Duration> limit) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Unavailable or Timeout when there is no answer; whatever the server answers is a Response.
  virtual Result<Response> Send(Request request) = 0;
  // Sends all requests. One that is not answered with 200 fails the whole, with that answer decoded
  // as its error.
  virtual Result<std::unique_ptr<Streams>> Open(std::vector<Request> requests) = 0;
};

}  // namespace berth::cli
