// SPDX-License-Identifier: Apache-2.0
// Secret: a small amount of confidential data.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "meta/kind.h"

namespace berth::apis::k8s {

inline constexpr std::string_view kSecretOpaque = "Opaque";
inline constexpr std::string_view kSecretTls = "kubernetes.io/tls";
inline constexpr std::string_view kSecretBasicAuth = "kubernetes.io/basic-auth";
inline constexpr std::string_view kSecretSshAuth = "kubernetes.io/ssh-auth";
inline constexpr std::string_view kSecretDockerConfig = "kubernetes.io/dockercfg";
inline constexpr std::string_view kSecretDockerConfigJson = "kubernetes.io/dockerconfigjson";

struct Secret {
  meta::ObjectMeta metadata;
  std::optional<bool> immutable;
  std::map<std::string, meta::Base64> data;
  std::map<std::string, std::string> string_data;
  std::string type;
};
BERTH_DESCRIBE(Secret,
               "io.k8s.api.core.v1.Secret",
               "A small amount of confidential data.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(immutable,
                           "immutable",
                           "True: data cannot change any more, and neither can this."),
               BERTH_FIELD(data, "data", "The entries, in base64."),
               BERTH_FIELD(string_data,
                           "stringData",
                           "Entries as plain text, for writing only: they are moved to data.",
                           {.longest = meta::kNoLimit}),
               BERTH_FIELD(type,
                           "type",
                           "What the entries mean; some types need certain entries. Cannot "
                           "change.",
                           {.fallback = "\"Opaque\""}))

extern const meta::KindInfo kSecretKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Secret>) { return kSecretKind; }

}  // namespace berth::apis::k8s
