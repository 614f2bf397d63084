// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/secrets.h"

#include <utility>

#include "base/strings.h"

namespace berth::cli {

using meta::Value;

Resource SecretResource() {
  return {.group = "",
          .version = "v1",
          .plural = "secrets",
          .singular = "secret",
          .kind = "Secret",
          .namespaced = true};
}

const std::string& TokenNamespace() {
  static const std::string kName(pki::kTokenNamespace);
  return kName;
}

Value SecretValue(const pki::TokenSecret& secret, std::string_view type) {
  Value metadata = Value::Object();
  metadata.Set("name", secret.name);
  metadata.Set("namespace", TokenNamespace());
  Value data = Value::Object();
  for (const auto& [key, bytes] : secret.data) data.Set(key, Base64Encode(bytes));
  Value out = Value::Object();
  out.Set("apiVersion", "v1");
  out.Set("kind", "Secret");
  out.Set("metadata", std::move(metadata));
  out.Set("type", std::string(type));
  out.Set("data", std::move(data));
  return out;
}

Status StoreSecret(Api& api, const Value& secret) {
  const std::string path = PathOf(SecretResource(), TokenNamespace());
  auto stored = api.Post(path, secret);
  if (stored.ok() || !stored.status().Is(Reason::kNotFound)) return stored.status();
  // The namespace is made at the server's first start, but somebody may have deleted it.
  Value metadata = Value::Object();
  metadata.Set("name", TokenNamespace());
  Value space = Value::Object();
  space.Set("apiVersion", "v1");
  space.Set("kind", "Namespace");
  space.Set("metadata", std::move(metadata));
  auto made = api.Post("/api/v1/namespaces", space);
  if (!made.ok() && !made.status().Is(Reason::kAlreadyExists)) return made.status();
  return api.Post(path, secret).status();
}

}  // namespace berth::cli
