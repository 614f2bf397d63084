// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/impersonation.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kPrefix = "impersonate-";
constexpr std::string_view kExtraPrefix = "impersonate-extra-";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Keys of extras are escaped like parts of a path; a stray % stays as it is, as in Kubernetes.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
                         HexDigit(text[i + 2]) >= 0;
    out +=
        escaped ? static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2])) : text[i];
    if (escaped) i += 2;
  }
  return out;
}

// What the headers ask for, unchecked; nullopt if they ask for nothing.
Result<std::optional<Identity>> ReadHeaders(std::span<const net::Header> headers) {
  Identity wanted;
  size_t users = 0;
  size_t uids = 0;
  bool any = false;
  for (const auto& [name, value] : headers) {
    const std::string key = ToLower(name);
    if (!key.starts_with(kPrefix)) continue;
    any = true;
    if (key == "impersonate-user") {
      wanted.user = value;
      ++users;
    } else if (key == "impersonate-group") {
      wanted.groups.push_back(value);
    } else if (key == "impersonate-uid") {
      wanted.uid = value;
      ++uids;
    } else if (key.starts_with(kExtraPrefix) && key.size() > kExtraPrefix.size()) {
      wanted.extra[Unescape(key.substr(kExtraPrefix.size()))].push_back(value);
    } else {
      return BadRequest(fmt::format("header {} is not known", Quote(name)));
    }
  }
  if (!any) return std::optional<Identity>();
  if (users != 1 || uids > 1 || wanted.user.empty()) {
    return BadRequest(
        "impersonation needs exactly one Impersonate-User and at most one Impersonate-Uid");
  }
  return std::optional<Identity>(std::move(wanted));
}

}  // namespace

RequestInfo ImpersonationRequest(std::string_view resource, std::string_view name) {
  const bool is_core = resource == "users" || resource == "groups";
  RequestInfo request{.is_resource = true,
                      .verb = "impersonate",
                      .group = is_core ? "" : "authentication.k8s.io",
                      .version = "v1",
                      .resource = std::string(resource),
                      .name = std::string(name)};
  const size_t slash = resource.find('/');
  if (slash != std::string_view::npos) {
    request.resource = resource.substr(0, slash);
    request.subresource = resource.substr(slash + 1);
  }
  return request;
}

Result<std::optional<Identity>> Impersonate(const Authorizer& authorizer,
                                            const Identity& sender,
                                            std::span<const net::Header> headers) {
  TRY(auto wanted, ReadHeaders(headers));
  if (!wanted) return wanted;
  auto check = [&](std::string_view resource, std::string_view name) {
    return authorizer.Check(sender, ImpersonationRequest(resource, name));
  };
  TRY_STATUS(check("users", wanted->user));
  for (const auto& group : wanted->groups) TRY_STATUS(check("groups", group));
  if (!wanted->uid.empty()) TRY_STATUS(check("uids", wanted->uid));
  for (const auto& [key, values] : wanted->extra) {
    for (const auto& value : values) TRY_STATUS(check("userextras/" + key, value));
  }
  // Somebody who is impersonated counts as authenticated, but for the one who never is.
  const bool is_anonymous = wanted->user == "system:anonymous";
  const char* own = is_anonymous ? "system:unauthenticated" : "system:authenticated";
  if (!wanted->InGroup(own)) wanted->groups.emplace_back(own);
  return wanted;
}

}  // namespace berth::apiserver
