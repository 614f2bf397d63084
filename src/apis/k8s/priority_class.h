// SPDX-License-Identifier: Apache-2.0
// PriorityClass: how important a machine is against others, and whether it may be stopped for one
// that is more important.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "meta/kind.h"

namespace berth::apis::k8s {

// Annotation of a class: "true" lets its machines be stopped and put back into the queue when
// something more important has no place. An annotation, so that clients which know only
// Kubernetes' fields keep it.
inline constexpr std::string_view kPreemptibleAnnotation = "berth.dev/preemptible";

inline constexpr std::string_view kPreemptLowerPriority = "PreemptLowerPriority";
inline constexpr std::string_view kPreemptNever = "Never";

// Larger values are kept for what the system itself runs.
inline constexpr int32_t kPriorityMax = 1'000'000'000;
inline constexpr std::string_view kSystemPriorityPrefix = "system-";

struct PriorityClass {
  meta::ObjectMeta metadata;
  int32_t value = 0;
  bool global_default = false;
  std::string description;
  std::string preemption_policy;
};
BERTH_DESCRIBE(
    PriorityClass,
    "io.k8s.api.scheduling.v1.PriorityClass",
    "How important machines of this class are. The annotation berth.dev/preemptible: \"true\" lets "
    "them be stopped for more important ones; they then wait for another place.",
    BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
    BERTH_FIELD(value,
                "value",
                "The more, the more important; at most 1000000000. Cannot change.",
                {.always = true}),
    BERTH_FIELD(global_default,
                "globalDefault",
                "Whether machines that name no class get this one; at most one class says so."),
    BERTH_FIELD(description, "description", "When to use the class, for people."),
    BERTH_FIELD(preemption_policy,
                "preemptionPolicy",
                "PreemptLowerPriority: stops less important machines whose class is preemptible "
                "if there is no room. Never: waits. Cannot change.",
                {.values = {"PreemptLowerPriority", "Never"},
                 .fallback = "\"PreemptLowerPriority\""}))

extern const meta::KindInfo kPriorityClassKind;
inline const meta::KindInfo& BerthKind(meta::Tag<PriorityClass>) { return kPriorityClassKind; }

// Whether machines of the class may be stopped for others.
bool IsPreemptible(const PriorityClass& object);

}  // namespace berth::apis::k8s
