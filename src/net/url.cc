// SPDX-License-Identifier: Apache-2.0
#include "net/url.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace berth::net {
namespace {

constexpr std::string_view kHex = "0123456789ABCDEF";

bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUnreserved(char c) {
  return IsAlpha(c) || IsDigit(c) || c == '-' || c == '_' || c == '.' || c == '~';
}

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> Decode(std::string_view text, char plus) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += plus;
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = HexValue(text[i + 1]);
      const int low = HexValue(text[i + 2]);
      if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

std::optional<uint16_t> ParsePort(std::string_view text) {
  const auto port = ParseUint(text);
  if (!port.has_value() || *port == 0 || *port > 65'535) return std::nullopt;
  return static_cast<uint16_t>(*port);
}

bool IsHostCharacter(char c) { return IsUnreserved(c) || c == ':'; }

uint16_t DefaultPort(std::string_view scheme) {
  if (scheme == "https") return 443;
  return scheme == "http" ? 80 : 0;
}

Status BadUrl(std::string_view text, std::string_view why) {
  return BadRequest(fmt::format("url {}: {}", Quote(text.substr(0, 128)), why));
}

}  // namespace

std::string FormatHostPort(std::string_view host, uint16_t port) {
  const bool brackets = host.find(':') != std::string_view::npos;
  return brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string Url::authority() const { return FormatHostPort(host, port); }

std::string Url::target() const { return query.empty() ? path : path + "?" + query; }

Result<HostPort> ParseHostPort(std::string_view text, uint16_t default_port) {
  const auto bad = [text](std::string_view why) {
    return BadRequest(fmt::format("address {}: {}", Quote(text.substr(0, 128)), why));
  };
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return bad("a bracket is not closed");
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (host.find(':') == std::string_view::npos) return bad("brackets are for IPv6 addresses");
  } else {
    const size_t colon = text.find(':');
    if (colon != text.rfind(':')) return bad("an IPv6 address needs brackets, as in [::1]:8443");
    host = text.substr(0, colon);
    if (colon != std::string_view::npos) port = text.substr(colon);
  }
  if (host.empty() || host.size() > 253) return bad("the host has 1 to 253 characters");
  for (const char c : host) {
    if (!IsHostCharacter(c)) return bad("the host has a character that hosts do not have");
  }
  HostPort result{.host = ToLower(host), .port = default_port};
  if (!port.empty()) {
    if (port[0] != ':') return bad("a port follows its host after a colon");
    const auto number = ParsePort(port.substr(1));
    if (!number.has_value()) return bad("the port is a number from 1 to 65535");
    result.port = *number;
  }
  if (result.port == 0) return bad("a port is missing, as in host:8443");
  return result;
}

Result<Url> ParseUrl(std::string_view text) {
  if (text.size() > kUrlBytesMax) {
    return BadUrl(text, fmt::format("{} bytes, the limit is {}", text.size(), kUrlBytesMax));
  }
  for (const char c : text) {
    if (c <= ' ' || c == 0x7f) return BadUrl(text, "it has a space or a control character");
  }
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos) return BadUrl(text, "a scheme is missing, as in https://");
  Url url;
  url.scheme = ToLower(text.substr(0, colon));
  std::string_view rest = text.substr(colon + 3);
  rest = rest.substr(0, rest.find('#'));
  if (url.scheme == "unix") {
    if (!rest.starts_with('/')) return BadUrl(text, "a unix url is unix:///absolute/path");
    url.path = rest;
    return url;
  }
  if (DefaultPort(url.scheme) == 0) {
    return BadUrl(text, fmt::format("scheme {} is not http, https or unix", Quote(url.scheme)));
  }
  const size_t end = rest.find_first_of("/?");
  const std::string_view authority = rest.substr(0, end);
  if (authority.find('@') != std::string_view::npos) {
    return BadUrl("(hidden)", "credentials do not belong into a url");
  }
  const auto where = ParseHostPort(authority, DefaultPort(url.scheme));
  if (!where.ok()) return where.status().Wrap("url");
  url.host = where->host;
  url.port = where->port;
  const Target target = end == std::string_view::npos ? Target{} : SplitTarget(rest.substr(end));
  url.path = target.path.empty() ? "/" : target.path;
  url.query = target.query;
  return url;
}

std::string PercentEncode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<uint8_t>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::optional<std::string> PercentDecode(std::string_view text) { return Decode(text, '+'); }

Result<Query> Query::Parse(std::string_view query) {
  Query result;
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    if (pair.empty()) continue;
    if (result.pairs_.size() == kQueryPairsMax) {
      return BadRequest(fmt::format("query: more than {} parameters", kQueryPairsMax));
    }
    const size_t equals = pair.find('=');
    auto name = Decode(pair.substr(0, equals), ' ');
    auto value = equals == std::string_view::npos ? std::optional<std::string>("")
                                                  : Decode(pair.substr(equals + 1), ' ');
    if (!name.has_value() || !value.has_value()) {
      return BadRequest(
          fmt::format("query: {} has a broken percent escape", Quote(pair.substr(0, 128))));
    }
    result.pairs_.push_back({.name = *std::move(name), .value = *std::move(value)});
  }
  return result;
}

std::string_view Query::Get(std::string_view name) const {
  for (const Pair& pair : pairs_) {
    if (pair.name == name) return pair.value;
  }
  return {};
}

bool Query::Has(std::string_view name) const {
  for (const Pair& pair : pairs_) {
    if (pair.name == name) return true;
  }
  return false;
}

std::vector<std::string_view> Query::GetAll(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Pair& pair : pairs_) {
    if (pair.name == name) values.push_back(pair.value);
  }
  return values;
}

void Query::Add(std::string_view name, std::string_view value) {
  pairs_.push_back({.name = std::string(name), .value = std::string(value)});
}

std::string Query::Encode() const {
  std::string out;
  for (const Pair& pair : pairs_) {
    if (!out.empty()) out += '&';
    out += PercentEncode(pair.name);
    out += '=';
    out += PercentEncode(pair.value);
  }
  return out;
}

Target SplitTarget(std::string_view target) {
  const size_t question = target.find('?');
  if (question == std::string_view::npos) return {.path = target, .query = {}};
  return {.path = target.substr(0, question), .query = target.substr(question + 1)};
}

}  // namespace berth::net
