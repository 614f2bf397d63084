// SPDX-License-Identifier: Apache-2.0
// URLs and queries as HTTP requests carry them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::net {

inline constexpr size_t kUrlBytesMax = 16 * 1024;
// A request line has at most 64 KB; more pairs than this are an attack, not a question.
inline constexpr size_t kQueryPairsMax = 256;

// "https://user@host:8443/path?query#fragment" taken apart. Userinfo is refused: credentials in
// URLs end in logs.
struct Url {
  std::string scheme;  // lower case: "http", "https", "unix"
  std::string host;    // lower case, an IPv6 address without brackets; "" for unix
  uint16_t port = 0;   // the scheme's default if none is written
  std::string path;    // as written, "/" if empty
  std::string query;   // as written, without "?"

  // "host:port", with brackets around an IPv6 address.
  std::string authority() const;
  // What goes into the request line: path and query.
  std::string target() const;
};
Result<Url> ParseUrl(std::string_view text);

struct HostPort {
  std::string host;
  uint16_t port = 0;
};
// "host:port", "[::1]:port"; without a port `default_port` counts, 0 means that one is required.
Result<HostPort> ParseHostPort(std::string_view text, uint16_t default_port);
std::string FormatHostPort(std::string_view host, uint16_t port);

// Everything but unreserved characters becomes %XX: fit for one path segment or one query value.
std::string PercentEncode(std::string_view text);
// Decodes %XX; nullopt for a broken escape or an encoded NUL. '+' stays '+'.
std::optional<std::string> PercentDecode(std::string_view text);

// The pairs of a query, decoded ('+' is a space there), in order.
class Query {
 public:
  struct Pair {
    std::string name;
    std::string value;
  };
  // BadRequest for a broken escape or more than kQueryPairsMax pairs.
  static Result<Query> Parse(std::string_view query);

  std::string_view Get(std::string_view name) const;  // the first one; "" if absent
  bool Has(std::string_view name) const;
  std::vector<std::string_view> GetAll(std::string_view name) const;
  void Add(std::string_view name, std::string_view value);
  const std::vector<Pair>& pairs() const { return pairs_; }
  // "a=1&b=x%20y", without "?".
  std::string Encode() const;

 private:
  std::vector<Pair> pairs_;
};

// A request target split at its first '?'. The path is not decoded: a router decodes segment by
// segment, so that %2F does not make a new segment.
struct Target {
  std::string_view path;
  std::string_view query;
};
Target SplitTarget(std::string_view target);

}  // namespace berth::net
