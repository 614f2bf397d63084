// SPDX-License-Identifier: Apache-2.0
// Query parameters with a meaning: numbers and booleans as Kubernetes' clients send them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "net/url.h"

namespace berth::apiserver {

using net::Query;

// "true", "1", "t" and a name without a value are true; absent is false.
Result<bool> QueryBool(const Query& query, std::string_view name);
// A whole number of at least zero; nullopt if absent or empty.
Result<std::optional<int64_t>> QueryCount(const Query& query, std::string_view name);

}  // namespace berth::apiserver
