// SPDX-License-Identifier: Apache-2.0
#include "cli/transport.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace berth::cli {
namespace {

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// Escapes for a URL; `kept` stays as it is.
std::string Escaped(std::string_view text, std::string_view kept) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (IsUnreserved(c) || kept.contains(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<uint8_t>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace

std::string TargetOf(const Request& request) {
  std::string out = Escaped(request.path, "/:");
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    out += separator;
    out += Escaped(name, "");
    out += '=';
    out += Escaped(value, "");
    separator = '&';
  }
  return out;
}

}  // namespace berth::cli
