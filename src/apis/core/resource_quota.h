// SPDX-License-Identifier: Apache-2.0
// ResourceQuota: how much a namespace may use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apis/core/resources.h"
#include "meta/kind.h"

namespace berth::apis::core {

inline constexpr std::string_view kScopeMachineClass = "MachineClass";
inline constexpr std::string_view kScopeVolumeClass = "VolumeClass";
inline constexpr std::string_view kScopeBucketClass = "BucketClass";

inline constexpr std::string_view kScopeIn = "In";
inline constexpr std::string_view kScopeNotIn = "NotIn";
inline constexpr std::string_view kScopeExists = "Exists";
inline constexpr std::string_view kScopeDoesNotExist = "DoesNotExist";

struct ResourceScopeSelectorRequirement {
  std::string scope_name;
  std::string operator_;
  std::vector<std::string> values;
  bool operator==(const ResourceScopeSelectorRequirement&) const = default;
};
BERTH_DESCRIBE(
    ResourceScopeSelectorRequirement,
    "com.github.ironcore-dev.ironcore.api.core.v1alpha1.ResourceScopeSelectorRequirement",
    "A condition on the class of an object.",
    BERTH_FIELD(scope_name,
                "scopeName",
                "Which kind of class: MachineClass, VolumeClass or BucketClass.",
                {.required = true, .values = {"MachineClass", "VolumeClass", "BucketClass"}}),
    BERTH_FIELD(operator_,
                "operator",
                "In, NotIn, Exists or DoesNotExist.",
                {.required = true, .values = {"In", "NotIn", "Exists", "DoesNotExist"}}),
    BERTH_FIELD(values, "values", "Names of classes, for In and NotIn."))

struct ResourceScopeSelector {
  std::vector<ResourceScopeSelectorRequirement> match_expressions;
  bool operator==(const ResourceScopeSelector&) const = default;
};
BERTH_DESCRIBE(ResourceScopeSelector,
               "com.github.ironcore-dev.ironcore.api.core.v1alpha1.ResourceScopeSelector",
               "Which objects count; all conditions must hold.",
               BERTH_FIELD(match_expressions, "matchExpressions", "The conditions."))

struct ResourceQuotaSpec {
  ResourceList hard;
  std::optional<ResourceScopeSelector> scope_selector;
  bool operator==(const ResourceQuotaSpec&) const = default;
};
BERTH_DESCRIBE(ResourceQuotaSpec,
               "com.github.ironcore-dev.ironcore.api.core.v1alpha1.ResourceQuotaSpec",
               "The limits.",
               BERTH_FIELD(hard,
                           "hard",
                           "Limits by name: requests.cpu, requests.memory, requests.storage, "
                           "requests.tps, requests.iops, and count/ of machines, volumes and "
                           "buckets with their groups."),
               BERTH_FIELD(scope_selector, "scopeSelector", "Which objects count; absent: all."))

struct ResourceQuotaStatus {
  ResourceList hard;
  ResourceList used;
  bool operator==(const ResourceQuotaStatus&) const = default;
};
BERTH_DESCRIBE(ResourceQuotaStatus,
               "com.github.ironcore-dev.ironcore.api.core.v1alpha1.ResourceQuotaStatus",
               "What is used of the limits.",
               BERTH_FIELD(hard, "hard", "Limits in force."),
               BERTH_FIELD(used, "used", "What is used."))

struct ResourceQuota {
  meta::ObjectMeta metadata;
  ResourceQuotaSpec spec;
  ResourceQuotaStatus status;
};
BERTH_DESCRIBE(ResourceQuota,
               "com.github.ironcore-dev.ironcore.api.core.v1alpha1.ResourceQuota",
               "How much a namespace may use.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The limits."),
               BERTH_FIELD(status, "status", "What is used; written by the system."))

extern const meta::KindInfo kResourceQuotaKind;
inline const meta::KindInfo& BerthKind(meta::Tag<ResourceQuota>) { return kResourceQuotaKind; }

}  // namespace berth::apis::core
