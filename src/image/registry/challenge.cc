// SPDX-License-Identifier: Apache-2.0
#include "image/registry/challenge.h"

#include <algorithm>

#include "base/strings.h"
#include "meta/json.h"
#include "net/url.h"

namespace berth::image {
namespace {

constexpr size_t kTokenBytesMax = 64 << 10;

// Takes `key="value"` or `key=value` off the front, with the comma behind it. A comma inside of
// quotes is part of the value: scopes have them.
std::pair<std::string, std::string> TakeParameter(std::string_view& text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    text = {};
    return {};
  }
  std::pair<std::string, std::string> parameter;
  parameter.first = ToLower(Trim(text.substr(0, equals)));
  text.remove_prefix(equals + 1);
  if (text.starts_with('"')) {
    text.remove_prefix(1);
    const size_t end = std::min(text.find('"'), text.size());
    parameter.second = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    text.remove_prefix(std::min(text.find(','), text.size()));
  } else {
    const size_t end = std::min(text.find(','), text.size());
    parameter.second = Trim(text.substr(0, end));
    text.remove_prefix(end);
  }
  if (text.starts_with(',')) text.remove_prefix(1);
  return parameter;
}

}  // namespace

Challenge ParseChallenge(std::string_view header) {
  header = Trim(header);
  const size_t space = std::min(header.find(' '), header.size());
  const std::string_view scheme = header.substr(0, space);
  Challenge challenge;
  if (EqualsIgnoreCase(scheme, "basic")) challenge.kind = Challenge::Kind::kBasic;
  if (EqualsIgnoreCase(scheme, "bearer")) challenge.kind = Challenge::Kind::kBearer;
  for (std::string_view rest = header.substr(space); !rest.empty();) {
    const auto [key, value] = TakeParameter(rest);
    if (key == "realm") challenge.realm = value;
    if (key == "service") challenge.service = value;
    if (key == "scope") challenge.scope = value;
  }
  return challenge;
}

Result<std::string> TokenUrl(const Challenge& challenge, std::string_view repository) {
  const auto url = net::ParseUrl(challenge.realm);
  if (!url.ok() || url->scheme != "https") {
    return BadRequest("realm " + Quote(challenge.realm) + " of the registry is no https URL");
  }
  net::Query query;
  if (!challenge.service.empty()) query.Add("service", challenge.service);
  query.Add("scope",
            challenge.scope.empty() ? "repository:" + std::string(repository) + ":pull"
                                    : challenge.scope);
  return challenge.realm + (url->query.empty() ? "?" : "&") + query.Encode();
}

Result<std::string> ParseToken(std::string_view json) {
  const auto root = meta::ParseJson(json, kTokenBytesMax);
  if (!root.ok()) return BadRequest("the answer with the token is not JSON");
  for (const std::string_view key : {"token", "access_token"}) {
    const std::string_view token = root->GetString({key});
    const bool is_clean = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
    if (!token.empty() && is_clean) return std::string(token);
  }
  return BadRequest("there is no token in the answer of the registry's realm");
}

}  // namespace berth::image
