// SPDX-License-Identifier: Apache-2.0
// Role and ClusterRole: what may be done. Bindings (role_binding.h) say by whom.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "meta/kind.h"
#include "meta/label_selector.h"

namespace berth::apis::k8s {

inline constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";
inline constexpr std::string_view kRbacAll = "*";

struct PolicyRule {
  std::vector<std::string> verbs;
  std::vector<std::string> api_groups;
  std::vector<std::string> resources;
  std::vector<std::string> resource_names;
  std::vector<std::string> non_resource_urls;
  bool operator==(const PolicyRule&) const = default;
};
BERTH_DESCRIBE(PolicyRule,
               "io.k8s.api.rbac.v1.PolicyRule",
               "Verbs that are allowed on resources, or on paths that are no resources.",
               BERTH_FIELD(verbs,
                           "verbs",
                           "Verbs that are allowed: get, list, watch, create, update, patch, "
                           "delete, deletecollection; * for all.",
                           {.always = true, .list_type = "atomic"}),
               BERTH_FIELD(api_groups,
                           "apiGroups",
                           "Groups of the resources; an empty text is the core group, * is every "
                           "group.",
                           {.list_type = "atomic"}),
               BERTH_FIELD(resources,
                           "resources",
                           "Plural names; machines/status is a subresource, * is everything.",
                           {.list_type = "atomic"}),
               BERTH_FIELD(resource_names,
                           "resourceNames",
                           "Only objects with these names; empty for all.",
                           {.list_type = "atomic"}),
               BERTH_FIELD(non_resource_urls,
                           "nonResourceURLs",
                           "Paths such as /healthz; a final * matches the rest. ClusterRole only.",
                           {.list_type = "atomic"}))

struct Role {
  meta::ObjectMeta metadata;
  std::vector<PolicyRule> rules;
};
BERTH_DESCRIBE(Role,
               "io.k8s.api.rbac.v1.Role",
               "What may be done in one namespace.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(rules,
                           "rules",
                           "Everything that is allowed; nothing is denied.",
                           {.list_type = "atomic"}))

struct AggregationRule {
  std::vector<meta::LabelSelector> cluster_role_selectors;
  bool operator==(const AggregationRule&) const = default;
};
BERTH_DESCRIBE(AggregationRule,
               "io.k8s.api.rbac.v1.AggregationRule",
               "Collects the rules of other ClusterRoles.",
               BERTH_FIELD(cluster_role_selectors,
                           "clusterRoleSelectors",
                           "Roles that match any of these give their rules.",
                           {.list_type = "atomic"}))

struct ClusterRole {
  meta::ObjectMeta metadata;
  std::vector<PolicyRule> rules;
  std::optional<AggregationRule> aggregation_rule;
};
BERTH_DESCRIBE(ClusterRole,
               "io.k8s.api.rbac.v1.ClusterRole",
               "What may be done in the whole cluster, or wherever a RoleBinding says so.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(rules,
                           "rules",
                           "Everything that is allowed; nothing is denied.",
                           {.list_type = "atomic"}),
               BERTH_FIELD(aggregation_rule,
                           "aggregationRule",
                           "Other roles whose rules are collected here; rules is then written by "
                           "the system."))

extern const meta::KindInfo kRoleKind;
extern const meta::KindInfo kClusterRoleKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Role>) { return kRoleKind; }
inline const meta::KindInfo& BerthKind(meta::Tag<ClusterRole>) { return kClusterRoleKind; }

}  // namespace berth::apis::k8s
