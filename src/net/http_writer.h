// SPDX-License-Identifier: Apache-2.0
// Heads of HTTP/1.1 messages as bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "net/http.h"

namespace berth::net {

enum class Framing : uint8_t {
  kLength,    // Content-Length
  kChunked,   // Transfer-Encoding: chunked
  kUntilEnd,  // HTTP/1.0: the body ends with the connection
  kNone,      // no body by the status itself, and no length: 1xx, 204, 304
};

struct ResponseHead {
  int status = 200;
  const Headers* headers = nullptr;
  Framing framing = Framing::kLength;
  size_t length = 0;
  std::string_view date;  // "" for none
  bool keep_alive = true;
};
// Fields that say how the message is framed come from here; the same fields in `headers` are left
// out. Line breaks inside values become spaces: nothing in a value can start a new line.
std::string FormatResponseHead(const ResponseHead& head);

struct RequestHead {
  std::string_view method;
  std::string_view target;
  std::string_view host;  // "" if headers have one
  const Headers* headers = nullptr;
  std::optional<size_t> length;  // Content-Length, if there is a body
};
std::string FormatRequestHead(const RequestHead& head);

// "Sat, 22 Aug 2026 10:00:00 GMT", as Date and Last-Modified have it.
std::string FormatHttpDate(WallTime time);

}  // namespace berth::net
