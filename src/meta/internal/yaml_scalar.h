// SPDX-License-Identifier: Apache-2.0
// What an unquoted YAML word means.
#pragma once

#include <string>
#include <string_view>

#include "meta/value.h"

namespace berth::meta::internal {

// YAML 1.1 as go-yaml v2 reads it: null, booleans, integers, floats; all else is a string.
Value ResolvePlain(std::string_view text);
// Whether some reader of YAML would take the unquoted text for anything but a string.
bool NeedsQuotes(std::string_view text);

}  // namespace berth::meta::internal
