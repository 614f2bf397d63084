// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/config_map.h"

#include "apis/k8s/config_rules.h"

namespace berth::apis::k8s {
namespace {

void Validate(const ConfigMap& object, meta::FieldErrors& errors) {
  const meta::FieldPath data("data");
  const meta::FieldPath binary("binaryData");
  size_t bytes = 0;
  for (const auto& [key, value] : object.data) {
    CheckConfigKey(key, data, errors);
    bytes += value.size();
    if (object.binary_data.contains(key)) {
      errors.Invalid(data.Key(key), key, "duplicate of key present in binaryData");
    }
  }
  for (const auto& [key, value] : object.binary_data) {
    CheckConfigKey(key, binary, errors);
    bytes += value.bytes.size();
  }
  if (bytes > kConfigBytesMax) errors.TooLong(data, bytes, kConfigBytesMax);
}

void ValidateUpdate(const ConfigMap& now, const ConfigMap& before, meta::FieldErrors& errors) {
  CheckStaysImmutable(now.immutable, before.immutable, errors);
  if (!before.immutable.value_or(false)) return;
  if (now.data != before.data) errors.Forbidden(meta::FieldPath("data"), kImmutableIsSet);
  if (now.binary_data != before.binary_data) {
    errors.Forbidden(meta::FieldPath("binaryData"), kImmutableIsSet);
  }
}

std::string DataCell(const ConfigMap& object) {
  return std::to_string(object.data.size() + object.binary_data.size());
}

constexpr meta::Column kColumns[] = {
    {.name = "Data",
     .type = "integer",
     .doc = "How many entries there are.",
     .cell = meta::Hook<&DataCell>},
};
constexpr std::string_view kShortNames[] = {"cm"};

}  // namespace

constinit const meta::KindInfo kConfigMapKind = {
    .group = "",
    .version = "v1",
    .kind = "ConfigMap",
    .plural = "configmaps",
    .singular = "configmap",
    .short_names = kShortNames,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<ConfigMap>(),
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::k8s
