// SPDX-License-Identifier: Apache-2.0
// ConfigMap: configuration as entries.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "meta/kind.h"

namespace berth::apis::k8s {

struct ConfigMap {
  meta::ObjectMeta metadata;
  std::optional<bool> immutable;
  std::map<std::string, std::string> data;
  std::map<std::string, meta::Base64> binary_data;
};
BERTH_DESCRIBE(ConfigMap,
               "io.k8s.api.core.v1.ConfigMap",
               "Configuration as entries.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(immutable,
                           "immutable",
                           "True: the entries cannot change any more, and neither can this."),
               BERTH_FIELD(data, "data", "Entries that are text.", {.longest = meta::kNoLimit}),
               BERTH_FIELD(binary_data, "binaryData", "Entries that are not text, in base64."))

extern const meta::KindInfo kConfigMapKind;
inline const meta::KindInfo& BerthKind(meta::Tag<ConfigMap>) { return kConfigMapKind; }

}  // namespace berth::apis::k8s
