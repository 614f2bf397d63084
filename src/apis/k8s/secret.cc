// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/secret.h"

#include "apis/core/rules.h"
#include "apis/k8s/config_rules.h"

namespace berth::apis::k8s {
namespace {

void SetDefaults(Secret& object) {
  for (auto& [key, text] : object.string_data) object.data[key].bytes = std::move(text);
  object.string_data.clear();
}

void CheckEntry(const Secret& object, std::string_view key, meta::FieldErrors& errors) {
  if (!object.data.contains(std::string(key))) {
    errors.Required(meta::FieldPath("data").Key(key), "secrets of type " + object.type);
  }
}

void CheckType(const Secret& object, meta::FieldErrors& errors) {
  if (object.type == kSecretTls) {
    CheckEntry(object, "tls.crt", errors);
    CheckEntry(object, "tls.key", errors);
  } else if (object.type == kSecretSshAuth) {
    CheckEntry(object, "ssh-privatekey", errors);
  } else if (object.type == kSecretDockerConfig) {
    CheckEntry(object, ".dockercfg", errors);
  } else if (object.type == kSecretDockerConfigJson) {
    CheckEntry(object, ".dockerconfigjson", errors);
  } else if (object.type == kSecretBasicAuth && !object.data.contains("password")) {
    CheckEntry(object, "username", errors);
  }
}

void Validate(const Secret& object, meta::FieldErrors& errors) {
  const meta::FieldPath data("data");
  size_t bytes = 0;
  for (const auto& [key, value] : object.data) {
    CheckConfigKey(key, data, errors);
    bytes += value.bytes.size();
  }
  if (bytes > kConfigBytesMax) errors.TooLong(data, bytes, kConfigBytesMax);
  CheckType(object, errors);
}

void ValidateUpdate(const Secret& now, const Secret& before, meta::FieldErrors& errors) {
  if (now.type != before.type) {
    errors.Invalid(meta::FieldPath("type"), now.type, core::kFieldIsImmutable);
  }
  CheckStaysImmutable(now.immutable, before.immutable, errors);
  if (before.immutable.value_or(false) && now.data != before.data) {
    errors.Forbidden(meta::FieldPath("data"), kImmutableIsSet);
  }
}

std::string TypeCell(const Secret& object) { return object.type; }
std::string DataCell(const Secret& object) { return std::to_string(object.data.size()); }

constexpr meta::Column kColumns[] = {
    {.name = "Type", .doc = "What the entries mean.", .cell = meta::Hook<&TypeCell>},
    {.name = "Data",
     .type = "integer",
     .doc = "How many entries there are.",
     .cell = meta::Hook<&DataCell>},
};
constexpr std::string_view kSelectors[] = {"type"};

}  // namespace

constinit const meta::KindInfo kSecretKind = {
    .group = "",
    .version = "v1",
    .kind = "Secret",
    .plural = "secrets",
    .singular = "secret",
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<Secret>(),
    .field_selectors = kSelectors,
    .columns = kColumns,
    .set_defaults = meta::Hook<&SetDefaults>,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::k8s
