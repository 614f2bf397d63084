// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/continue_token.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"

namespace berth::apiserver {

namespace {

constexpr std::string_view kVersion = "1";

Status Malformed() {
  return BadRequest("continue key is not valid: it was not made by this server");
}

}  // namespace

// "1:<revision>:<key>" in the base64 alphabet of URLs.
std::string ContinueToken::Encode() const {
  std::string text =
      Base64Encode(std::string(kVersion) + ':' + std::to_string(revision.value) + ':' + after);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

Result<ContinueToken> ContinueToken::Decode(std::string_view text) {
  // A key is at most kMaxKeyBytes long; base64 adds a third.
  if (text.size() > 2 * store::kMaxKeyBytes) return Malformed();
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  const std::optional<std::string> plain = Base64Decode(standard);
  if (!plain) return Malformed();
  const std::string_view view = *plain;
  const size_t first = view.find(':');
  const size_t second = first == std::string_view::npos ? first : view.find(':', first + 1);
  if (second == std::string_view::npos || view.substr(0, first) != kVersion) return Malformed();
  const std::optional<int64_t> revision = ParseInt(view.substr(first + 1, second - first - 1));
  const std::string_view after = view.substr(second + 1);
  if (!revision || *revision < 0 || after.empty() || after.size() > store::kMaxKeyBytes) {
    return Malformed();
  }
  return ContinueToken{.revision = {*revision}, .after = std::string(after)};
}

Result<std::string> TokenOfThePresent(std::string_view expired) {
  TRY(ContinueToken token, ContinueToken::Decode(expired));
  token.revision = {};
  return token.Encode();
}

}  // namespace berth::apiserver
