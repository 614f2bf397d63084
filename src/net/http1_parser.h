// SPDX-License-Identifier: Apache-2.0
// Http1Parser reads one HTTP/1.1 message from bytes as they arrive. Stricter than the RFC where
// leniency has been used to smuggle requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace berth::net {

inline constexpr size_t kHeaderBytesMax = 64 * 1024;
inline constexpr size_t kHeaderFieldsMax = 256;

struct HttpLimits {
  size_t header_bytes = kHeaderBytesMax;
  uint64_t body_bytes = 3 * 1024 * 1024;
};

// What stands above the body.
struct HttpHead {
  std::string method;  // requests
  std::string target;  // requests; in origin form
  int status = 0;      // answers
  Headers headers;
  bool is_http10 = false;
  bool keep_alive = true;
  bool chunked = false;
  std::optional<uint64_t> content_length;
};

class Http1Parser {
 public:
  enum class Kind : uint8_t { kRequest, kResponse, kResponseWithoutBody };

  Http1Parser(Kind kind, HttpLimits limits);
  ~Http1Parser();

  // Takes what it can from the front of `data` and says how much; call again with the rest and more
  // behind it. 0 means that more is needed.
  Result<size_t> Feed(std::string_view data);
  // The connection ended: ok if that is how this message ends.
  Status FinishAtEnd();

  bool head_done() const;
  bool done() const;
  // REQUIRES: head_done().
  HttpHead& head();
  // What was decoded of the body and not yet taken.
  std::string& body();

  // After Feed failed: the status that a server answers with (400, 413, 431, 501 or 505).
  int error_status() const { return error_status_; }

 private:
  class Body;
  Result<size_t> FeedHead(std::string_view data);
  Result<size_t> LookEarly(std::string_view data);
  Status Fail(int status, std::string message);

  const HttpLimits limits_;
  std::unique_ptr<Body> parser_;
  size_t scanned_ = 0;    // of the head, searched for its end
  size_t looked_at_ = 0;  // of the head, found to be harmless
  int error_status_ = 0;
};

// "Upgrade, keep-alive" has the token "upgrade".
bool HasToken(std::string_view list, std::string_view token);

}  // namespace berth::net
