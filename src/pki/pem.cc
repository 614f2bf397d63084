// SPDX-License-Identifier: Apache-2.0
#include "pki/pem.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace berth::pki {

std::string PemEncode(std::string_view label, std::string_view der) {
  constexpr size_t kLine = 64;
  const std::string base64 = Base64Encode(der);
  std::string text = fmt::format("-----BEGIN {}-----\n", label);
  for (size_t at = 0; at < base64.size(); at += kLine) {
    text += base64.substr(at, kLine);
    text += '\n';
  }
  text += fmt::format("-----END {}-----\n", label);
  return text;
}

Result<std::vector<std::string>> PemDecode(std::string_view label, std::string_view text) {
  const std::string begin = fmt::format("-----BEGIN {}-----", label);
  const std::string end = fmt::format("-----END {}-----", label);
  std::vector<std::string> blocks;
  for (size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin)) {
    text.remove_prefix(at + begin.size());
    const size_t stop = text.find(end);
    if (stop == std::string_view::npos) {
      return BadRequest(fmt::format("PEM block {} number {} has no end", label, blocks.size() + 1));
    }
    std::string base64;
    for (char c : text.substr(0, stop)) {
      if (c != '\n' && c != '\r' && c != ' ' && c != '\t') base64 += c;
    }
    auto der = Base64Decode(base64);
    if (!der) {
      return BadRequest(
          fmt::format("PEM block {} number {} is not base64", label, blocks.size() + 1));
    }
    blocks.push_back(*std::move(der));
    text.remove_prefix(stop + end.size());
  }
  return blocks;
}

}  // namespace berth::pki
