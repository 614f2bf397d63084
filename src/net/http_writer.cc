// SPDX-License-Identifier: Apache-2.0
#include "net/http_writer.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <iterator>

#include "base/strings.h"
#include "net/status_map.h"

namespace berth::net {
namespace {

bool IsTokenCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  for (const char c : text) {
    if (!IsTokenCharacter(c)) return false;
  }
  return !text.empty();
}

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  if (!IsToken(name)) return;
  out += name;
  out += ": ";
  for (const char c : value) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    out += control && c != '\t' ? ' ' : c;
  }
  out += "\r\n";
}

bool IsFraming(std::string_view name) {
  return EqualsIgnoreCase(name, "Content-Length") || EqualsIgnoreCase(name, "Transfer-Encoding");
}

}  // namespace

std::string FormatResponseHead(const ResponseHead& head) {
  std::string out;
  out.reserve(256);
  fmt::format_to(
      std::back_inserter(out), "HTTP/1.1 {} {}\r\n", head.status, HttpPhrase(head.status));
  const bool upgrades = head.status == 101;
  for (const Header& field : head.headers->all()) {
    if (IsFraming(field.name)) continue;
    if (!upgrades && EqualsIgnoreCase(field.name, "Connection")) continue;
    AppendField(out, field.name, field.value);
  }
  if (!head.date.empty()) AppendField(out, "Date", head.date);
  switch (head.framing) {
    case Framing::kLength:
      fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", head.length);
      break;
    case Framing::kChunked: out += "Transfer-Encoding: chunked\r\n"; break;
    case Framing::kUntilEnd:
    case Framing::kNone: break;
  }
  if (!head.keep_alive && !upgrades) out += "Connection: close\r\n";
  out += "\r\n";
  return out;
}

std::string FormatRequestHead(const RequestHead& head) {
  std::string out;
  out.reserve(256);
  fmt::format_to(std::back_inserter(out), "{} {} HTTP/1.1\r\n", head.method, head.target);
  if (!head.headers->Has("Host")) AppendField(out, "Host", head.host);
  for (const Header& field : head.headers->all()) {
    if (!IsFraming(field.name)) AppendField(out, field.name, field.value);
  }
  if (head.length.has_value()) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", *head.length);
  }
  out += "\r\n";
  return out;
}

std::string FormatHttpDate(WallTime time) {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = time.seconds();
  std::tm civil{};
  ::gmtime_r(&seconds, &civil);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                     kDays[static_cast<size_t>(civil.tm_wday)],
                     civil.tm_mday,
                     kMonths[static_cast<size_t>(civil.tm_mon)],
                     civil.tm_year + 1900,
                     civil.tm_hour,
                     civil.tm_min,
                     civil.tm_sec);
}

}  // namespace berth::net
