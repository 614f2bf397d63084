// SPDX-License-Identifier: Apache-2.0
// Ports and ranges of ports.
#pragma once

#include <cstdint>
#include <optional>

#include "meta/field_errors.h"

namespace berth::apis::networking {

inline constexpr int32_t kPortMax = 65535;

// `port` and, if given, `endPort` below path: valid numbers, the end not before the beginning.
void CheckPortRange(int32_t port,
                    std::optional<int32_t> end_port,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors);

}  // namespace berth::apis::networking
