// SPDX-License-Identifier: Apache-2.0
// What Secret and ConfigMap have in common.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "meta/field_errors.h"

namespace berth::apis::k8s {

inline constexpr size_t kConfigBytesMax = size_t{1} << 20;  // of all values together
inline constexpr std::string_view kImmutableIsSet = "field is immutable when `immutable` is set";

// The syntax of an entry's name, reported at path[key].
void CheckConfigKey(std::string_view key, const meta::FieldPath& path, meta::FieldErrors& errors);
// `immutable` cannot be taken back.
void CheckStaysImmutable(std::optional<bool> now,
                         std::optional<bool> before,
                         meta::FieldErrors& errors);

}  // namespace berth::apis::k8s
