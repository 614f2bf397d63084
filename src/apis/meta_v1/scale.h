// SPDX-License-Identifier: Apache-2.0
// autoscaling/v1 Scale: the subresource of kinds with replicas.
#pragma once

#include <cstdint>
#include <string>

#include "meta/object_meta.h"

namespace berth::apis::meta_v1 {

struct ScaleSpec {
  int32_t replicas = 0;
  bool operator==(const ScaleSpec&) const = default;
};
BERTH_DESCRIBE(ScaleSpec,
               "io.k8s.api.autoscaling.v1.ScaleSpec",
               "How many are wanted.",
               BERTH_FIELD(replicas, "replicas", "How many are wanted."))

struct ScaleStatus {
  int32_t replicas = 0;
  std::string selector;
  bool operator==(const ScaleStatus&) const = default;
};
BERTH_DESCRIBE(ScaleStatus,
               "io.k8s.api.autoscaling.v1.ScaleStatus",
               "How many there are.",
               BERTH_FIELD(replicas, "replicas", "How many there are.", {.always = true}),
               BERTH_FIELD(selector, "selector", "Label selector of what is counted."))

struct Scale {
  std::string kind;
  std::string api_version;
  meta::ObjectMeta metadata;
  ScaleSpec spec;
  ScaleStatus status;
  bool operator==(const Scale&) const = default;
};
BERTH_DESCRIBE(Scale,
               "io.k8s.api.autoscaling.v1.Scale",
               "How many copies of something there are and should be.",
               BERTH_FIELD(kind, "kind", "Scale."),
               BERTH_FIELD(api_version, "apiVersion", "autoscaling/v1."),
               BERTH_FIELD(metadata, "metadata", "Metadata of the object that is scaled."),
               BERTH_FIELD(spec, "spec", "How many are wanted."),
               BERTH_FIELD(status, "status", "How many there are."))

}  // namespace berth::apis::meta_v1
