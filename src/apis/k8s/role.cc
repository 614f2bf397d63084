// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/role.h"

#include <array>
#include <span>

#include "apis/core/rules.h"
#include "base/strings.h"

namespace berth::apis::k8s {
namespace {

enum class UrlRules : uint8_t { kRefused, kAllowed };

void CheckRule(const PolicyRule& rule,
               UrlRules urls,
               const meta::FieldPath& path,
               meta::FieldErrors& errors) {
  if (rule.verbs.empty()) {
    errors.Required(path.Child("verbs"), "verbs must contain at least one value");
  }
  if (!rule.non_resource_urls.empty()) {
    const std::string text = Join(rule.non_resource_urls, ",");
    if (urls == UrlRules::kRefused) {
      errors.Invalid(path.Child("nonResourceURLs"),
                     text,
                     "namespaced rules cannot apply to non-resource URLs");
    }
    if (!rule.api_groups.empty() || !rule.resources.empty() || !rule.resource_names.empty()) {
      errors.Invalid(path.Child("nonResourceURLs"),
                     text,
                     "rules cannot apply to both regular resources and non-resource URLs");
    }
    return;
  }
  if (rule.api_groups.empty()) {
    errors.Required(path.Child("apiGroups"), "resource rules must supply at least one api group");
  }
  if (rule.resources.empty()) {
    errors.Required(path.Child("resources"), "resource rules must supply at least one resource");
  }
}

void CheckRules(std::span<const PolicyRule> rules, UrlRules urls, meta::FieldErrors& errors) {
  for (size_t i = 0; i < rules.size(); ++i) {
    CheckRule(rules[i], urls, meta::FieldPath("rules").Index(i), errors);
  }
}

void ValidateRole(const Role& object, meta::FieldErrors& errors) {
  CheckRules(object.rules, UrlRules::kRefused, errors);
}

void ValidateClusterRole(const ClusterRole& object, meta::FieldErrors& errors) {
  CheckRules(object.rules, UrlRules::kAllowed, errors);
  if (!object.aggregation_rule) return;
  const auto& selectors = object.aggregation_rule->cluster_role_selectors;
  const meta::FieldPath path = meta::FieldPath("aggregationRule").Child("clusterRoleSelectors");
  if (selectors.empty()) {
    errors.Required(path, "at least one clusterRoleSelector required if aggregationRule is set");
  }
  for (size_t i = 0; i < selectors.size(); ++i) {
    core::CheckSelector(selectors[i], path.Index(i), errors);
  }
}

template <class T>
std::string NameCell(const T& object) {
  return object.metadata.name;
}
template <class T>
std::string CreatedAtCell(const T& object) {
  return FormatRfc3339(object.metadata.creation_timestamp);
}

template <class T>
struct Columns {
  static constexpr std::array<meta::Column, 2> kAll = {{
      {.name = "Name",
       .doc = "Name of the role.",
       .cell = meta::Hook<&NameCell<T>>,
       .format = "name"},
      {.name = "Created At", .doc = "When it was made.", .cell = meta::Hook<&CreatedAtCell<T>>},
  }};
};

}  // namespace

constinit const meta::KindInfo kRoleKind = {
    .group = kRbacGroup,
    .version = "v1",
    .kind = "Role",
    .plural = "roles",
    .singular = "role",
    .scope = meta::Scope::kNamespaced,
    .name_rule = meta::NameRule::kPathSegment,
    .type = &meta::TypeInfoOf<Role>(),
    .columns = Columns<Role>::kAll,
    .column_frame = meta::ColumnFrame::kNone,
    .validate = meta::Hook<&ValidateRole>,
};

constinit const meta::KindInfo kClusterRoleKind = {
    .group = kRbacGroup,
    .version = "v1",
    .kind = "ClusterRole",
    .plural = "clusterroles",
    .singular = "clusterrole",
    .scope = meta::Scope::kCluster,
    .name_rule = meta::NameRule::kPathSegment,
    .type = &meta::TypeInfoOf<ClusterRole>(),
    .columns = Columns<ClusterRole>::kAll,
    .column_frame = meta::ColumnFrame::kNone,
    .validate = meta::Hook<&ValidateClusterRole>,
};

}  // namespace berth::apis::k8s
