// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/query.h"

#include <string>

#include "base/strings.h"

namespace berth::apiserver {

Result<bool> QueryBool(const Query& query, std::string_view name) {
  if (!query.Has(name)) return false;
  const std::string value = ToLower(query.Get(name));
  if (value.empty() || value == "true" || value == "1" || value == "t") return true;
  if (value == "false" || value == "0" || value == "f") return false;
  return BadRequest("query parameter " + std::string(name) + "=" + Quote(value) +
                    " is neither true nor false");
}

Result<std::optional<int64_t>> QueryCount(const Query& query, std::string_view name) {
  const std::string_view text = query.Get(name);
  if (text.empty()) return std::optional<int64_t>();
  const auto number = ParseInt(text);
  if (!number || *number < 0) {
    return BadRequest("query parameter " + std::string(name) + "=" + Quote(text) +
                      " is not a whole number of at least 0");
  }
  return number;
}

}  // namespace berth::apiserver
