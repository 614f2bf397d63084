// SPDX-License-Identifier: Apache-2.0
// What Berth's runtimes say about an object beyond the interface.
#pragma once

#include <string_view>

#include "iri/object.h"

namespace berth::iri {

// Annotations of a volume that cannot be made: why, for people; and the reason in one word if it is
// its image.
inline constexpr std::string_view kProblemAnnotation = "berth.dev/problem";
inline constexpr std::string_view kImageProblemAnnotation = "berth.dev/image-problem";
// Types of a machine's conditions. The second is "False" while the machine lacks a secret that it
// was created with; nothing is said of one that lacks none.
inline constexpr std::string_view kImageReadyCondition = "ImageReady";
inline constexpr std::string_view kSecretsReadyCondition = "SecretsReady";
inline constexpr std::string_view kSecretsMissingReason = "SecretsMissing";

// "" if there is none.
inline std::string_view AnnotationOf(const ObjectMetadata& metadata, std::string_view key) {
  const auto found = metadata.annotations.find(key);
  return found == metadata.annotations.end() ? std::string_view() : found->second;
}

}  // namespace berth::iri
