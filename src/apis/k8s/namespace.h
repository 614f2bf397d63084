// SPDX-License-Identifier: Apache-2.0
// Namespace: a space of names.
#pragma once

#include <string>
#include <vector>

#include "meta/kind.h"

namespace berth::apis::k8s {

inline constexpr std::string_view kNamespaceActive = "Active";
inline constexpr std::string_view kNamespaceTerminating = "Terminating";
inline constexpr std::string_view kDefaultNamespace = "default";

struct NamespaceSpec {
  std::vector<std::string> finalizers;
  bool operator==(const NamespaceSpec&) const = default;
};
BERTH_DESCRIBE(NamespaceSpec,
               "io.k8s.api.core.v1.NamespaceSpec",
               "Who must agree before the namespace goes.",
               BERTH_FIELD(finalizers,
                           "finalizers",
                           "Parties that clean up the namespace's contents. Changed through the "
                           "subresource finalize only.",
                           {.list_type = "atomic"}))

struct NamespaceCondition {
  std::string type;
  std::string status;
  WallTime last_transition_time;
  std::string reason;
  std::string message;
  bool operator==(const NamespaceCondition&) const = default;
};
BERTH_DESCRIBE(NamespaceCondition,
               "io.k8s.api.core.v1.NamespaceCondition",
               "One aspect of the namespace's end.",
               BERTH_FIELD(type, "type", "What the condition is about.", {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."),
               BERTH_FIELD(reason, "reason", "One word for programs."),
               BERTH_FIELD(message, "message", "A sentence for people."))

struct NamespaceStatus {
  std::string phase;
  std::vector<NamespaceCondition> conditions;
  bool operator==(const NamespaceStatus&) const = default;
};
BERTH_DESCRIBE(NamespaceStatus,
               "io.k8s.api.core.v1.NamespaceStatus",
               "Whether the namespace is in use or on its way out.",
               BERTH_FIELD(phase,
                           "phase",
                           "Active, or Terminating while its contents are removed.",
                           {.values = {"Active", "Terminating"}, .fallback = "\"Active\""}),
               BERTH_FIELD(conditions,
                           "conditions",
                           "What still keeps a terminating namespace.",
                           {.merge_key = "type", .list_type = "map", .list_keys = {"type"}}))

struct Namespace {
  meta::ObjectMeta metadata;
  NamespaceSpec spec;
  NamespaceStatus status;
};
BERTH_DESCRIBE(Namespace,
               "io.k8s.api.core.v1.Namespace",
               "A space in which names are unique, and which goes with all that is in it.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "Who must agree before the namespace goes."),
               BERTH_FIELD(status, "status", "What is happening; written by the system."))

extern const meta::KindInfo kNamespaceKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Namespace>) { return kNamespaceKind; }

}  // namespace berth::apis::k8s
