// SPDX-License-Identifier: Apache-2.0
// VolumeClass: what a volume can do.
#pragma once

#include <string>

#include "apis/core/resources.h"
#include "meta/kind.h"

namespace berth::apis::storage {

inline constexpr std::string_view kResizeStatic = "Static";
inline constexpr std::string_view kResizeExpandOnly = "ExpandOnly";

struct VolumeClass {
  meta::ObjectMeta metadata;
  core::ResourceList capabilities;
  std::string resize_policy;
};
BERTH_DESCRIBE(VolumeClass,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeClass",
               "What volumes of this class can do.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(capabilities,
                           "capabilities",
                           "tps (bytes per second) and iops (operations per second), both greater "
                           "than zero, and whatever else a provider knows. Cannot change."),
               BERTH_FIELD(resize_policy,
                           "resizePolicy",
                           "Static: volumes keep their size. ExpandOnly: they may grow.",
                           {.values = {"Static", "ExpandOnly"}, .fallback = "\"Static\""}))

extern const meta::KindInfo kVolumeClassKind;
inline const meta::KindInfo& BerthKind(meta::Tag<VolumeClass>) { return kVolumeClassKind; }

}  // namespace berth::apis::storage
