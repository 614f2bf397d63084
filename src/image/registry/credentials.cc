// SPDX-License-Identifier: Apache-2.0
#include "image/registry/credentials.h"

#include "base/strings.h"
#include "meta/json.h"

namespace berth::image {
namespace {

constexpr size_t kConfigBytesMax = 64 << 10;

// "https://registry.example:5000/v1/" -> "registry.example:5000".
std::string HostOf(std::string_view key) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  }
  return ToLower(key.substr(0, key.find('/')));
}

}  // namespace

std::string Credentials::BasicHeader() const {
  return empty() ? std::string() : "Basic " + Base64Encode(user + ":" + password);
}

Result<Credentials> CredentialsFor(std::string_view docker_config, std::string_view registry) {
  const auto root = meta::ParseJson(docker_config, kConfigBytesMax);
  // The parser's error may quote what stands there.
  if (!root.ok()) return BadRequest("credentials of registries are not JSON");
  const meta::Value* const entries = root->Find("auths");
  if (entries == nullptr || !entries->is_object()) {
    return BadRequest("credentials of registries have no object \"auths\"");
  }
  for (const meta::Value::Member& entry : entries->members()) {
    if (HostOf(entry.key) != registry) continue;
    Credentials found{.user = std::string(entry.value.GetString({"username"})),
                      .password = std::string(entry.value.GetString({"password"}))};
    const std::string_view both = entry.value.GetString({"auth"});
    if (both.empty()) return found;
    const auto decoded = Base64Decode(both);
    const size_t colon = decoded.has_value() ? decoded->find(':') : std::string::npos;
    if (colon == std::string::npos) {
      return BadRequest("credentials of registry " + Quote(entry.key) +
                        ": auth is not user:password in base64");
    }
    found.user = decoded->substr(0, colon);
    found.password = decoded->substr(colon + 1);
    return found;
  }
  return Credentials();
}

}  // namespace berth::image
