// SPDX-License-Identifier: Apache-2.0
// Finds out where a JSON text is wrong, and why. simdjson only says that it is; this is the slow
// second look for the message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::meta::internal {

struct JsonFault {
  size_t offset = 0;
  std::string why;  // "" if nothing is wrong
};

JsonFault FindJsonFault(std::string_view json, size_t max_depth);

}  // namespace berth::meta::internal
