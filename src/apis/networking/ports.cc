// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/ports.h"

#include <string>

namespace berth::apis::networking {
namespace {

constexpr std::string_view kRange = "must be between 1 and 65535, inclusive";

bool IsPort(int32_t port) { return port >= 1 && port <= kPortMax; }

}  // namespace

void CheckPortRange(int32_t port,
                    std::optional<int32_t> end_port,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  if (!IsPort(port)) errors.Invalid(path.Child("port"), std::to_string(port), kRange);
  if (!end_port) return;
  if (!IsPort(*end_port)) {
    errors.Invalid(path.Child("endPort"), std::to_string(*end_port), kRange);
  } else if (*end_port < port) {
    errors.Invalid(path.Child("endPort"),
                   std::to_string(*end_port),
                   "must be greater than or equal to `port` " + std::to_string(port));
  }
}

}  // namespace berth::apis::networking
