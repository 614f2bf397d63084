// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/pull_secret.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "image/reference.h"
#include "meta/json.h"
#include "meta/value.h"

namespace berth::gateway {
namespace {

constexpr std::string_view kEntry = ".dockerconfigjson";
constexpr size_t kBytesMax = size_t{64} * 1024;

// "https://registry.example:5000/v1/" -> "registry.example:5000".
std::string HostOf(std::string_view key) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  }
  return ToLower(key.substr(0, key.find('/')));
}

}  // namespace

std::vector<std::string> RegistriesOf(const std::vector<std::string>& images) {
  std::set<std::string> registries;
  for (const std::string& name : images) {
    const auto reference = image::ParseReference(name);
    if (reference.ok() && !reference->registry.empty()) registries.insert(reference->registry);
  }
  return {registries.begin(), registries.end()};
}

Result<std::string> PullSecretFor(const apis::k8s::Secret& secret,
                                  const std::vector<std::string>& registries) {
  const std::string name = "secret " + secret.metadata.name;
  if (secret.type != apis::k8s::kSecretDockerConfigJson) {
    return BadRequest(name + " is of type " + secret.type + ", not " +
                      std::string(apis::k8s::kSecretDockerConfigJson));
  }
  const auto entry = secret.data.find(std::string(kEntry));
  if (entry == secret.data.end()) return BadRequest(name + " has no entry " + std::string(kEntry));
  if (entry->second.bytes.size() > kBytesMax) {
    return BadRequest(name + ": entry " + std::string(kEntry) + " has " +
                      std::to_string(entry->second.bytes.size()) + " bytes, the limit is " +
                      std::to_string(kBytesMax));
  }
  const auto root = meta::ParseJson(entry->second.bytes);
  // The parser's error may quote what stands there.
  const meta::Value* auths = root.ok() ? root->Find("auths") : nullptr;
  if (auths == nullptr || !auths->is_object()) {
    return BadRequest(name + ": entry " + std::string(kEntry) + " is no JSON with an object auths");
  }
  meta::Value kept = meta::Value::Object();
  for (const auto& member : auths->members()) {
    if (std::ranges::find(registries, HostOf(member.key)) == registries.end()) continue;
    kept.Set(member.key, member.value);
  }
  if (kept.members().empty()) return std::string();
  meta::Value out = meta::Value::Object();
  out.Set("auths", std::move(kept));
  return meta::WriteJson(out);
}

}  // namespace berth::gateway
