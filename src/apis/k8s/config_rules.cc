// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/config_rules.h"

#include "meta/names.h"

namespace berth::apis::k8s {

void CheckConfigKey(std::string_view key, const meta::FieldPath& path, meta::FieldErrors& errors) {
  meta::AddProblems(path.Key(key), key, meta::ConfigKeyProblems(key), errors);
}

void CheckStaysImmutable(std::optional<bool> now,
                         std::optional<bool> before,
                         meta::FieldErrors& errors) {
  if (before.value_or(false) && !now.value_or(false)) {
    errors.Forbidden(meta::FieldPath("immutable"), kImmutableIsSet);
  }
}

}  // namespace berth::apis::k8s
