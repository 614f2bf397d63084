// SPDX-License-Identifier: Apache-2.0
// What the body of a delete request may say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meta/field_errors.h"
#include "meta/type.h"

namespace berth::apis::meta_v1 {

inline constexpr std::string_view kPropagationOrphan = "Orphan";
inline constexpr std::string_view kPropagationBackground = "Background";
inline constexpr std::string_view kPropagationForeground = "Foreground";
inline constexpr std::string_view kDryRunAll = "All";

struct Preconditions {
  std::optional<std::string> uid;
  std::optional<std::string> resource_version;
  bool operator==(const Preconditions&) const = default;
};
BERTH_DESCRIBE(Preconditions,
               "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions",
               "What must hold, or nothing is deleted.",
               BERTH_FIELD(uid, "uid", "UID that the object must have."),
               BERTH_FIELD(resource_version,
                           "resourceVersion",
                           "State that the object must be in."))

struct DeleteOptions {
  std::string api_version;
  std::string kind;
  std::optional<int64_t> grace_period_seconds;
  std::optional<Preconditions> preconditions;
  std::optional<bool> orphan_dependents;
  std::optional<std::string> propagation_policy;
  std::vector<std::string> dry_run;
  bool operator==(const DeleteOptions&) const = default;
};
BERTH_DESCRIBE(
    DeleteOptions,
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "How an object is deleted.",
    BERTH_FIELD(api_version, "apiVersion", "v1, or the object's own API version."),
    BERTH_FIELD(kind, "kind", "DeleteOptions."),
    BERTH_FIELD(grace_period_seconds,
                "gracePeriodSeconds",
                "Seconds that the object may take to end; 0 for at once."),
    BERTH_FIELD(preconditions, "preconditions", "What must hold, or nothing is deleted."),
    BERTH_FIELD(orphan_dependents,
                "orphanDependents",
                "Deprecated: true is propagationPolicy Orphan, false is Background."),
    BERTH_FIELD(propagation_policy,
                "propagationPolicy",
                "What becomes of the objects that belong to this one. Background: they "
                "go after it. Foreground: they go before it. Orphan: they stay."),
    BERTH_FIELD(dry_run, "dryRun", "All: do everything except write.", {.list_type = "atomic"}))

// Known policies, not two of them, no negative time, known dry run.
void CheckDeleteOptions(const DeleteOptions& options, meta::FieldErrors& errors);

}  // namespace berth::apis::meta_v1
