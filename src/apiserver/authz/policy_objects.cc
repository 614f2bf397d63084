// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/policy_objects.h"

#include <algorithm>
#include <string>
#include <utility>

#include "apis/k8s/role.h"
#include "apis/k8s/role_binding.h"
#include "apiserver/authz/default_roles.h"

namespace berth::apiserver {
namespace {

namespace k8s = apis::k8s;

SubjectKind SubjectKindOf(const std::string& kind) {
  if (kind == k8s::kSubjectUser) return SubjectKind::kUser;
  if (kind == k8s::kSubjectGroup) return SubjectKind::kGroup;
  return SubjectKind::kServiceAccount;  // whatever else there may be matches nobody
}

Binding MakeBinding(const std::vector<k8s::Subject>& subjects,
                    const k8s::RoleRef& role,
                    const std::string& namespace_) {
  Binding binding;
  binding.role = {role.kind == "Role" ? namespace_ : "", role.name};
  for (const auto& subject : subjects) {
    binding.subjects.push_back({.kind = SubjectKindOf(subject.kind),
                                .name = subject.name,
                                .namespace_ = subject.namespace_});
  }
  return binding;
}

PolicyKey KeyOf(const meta::Object& object) {
  return {object.metadata().namespace_, object.metadata().name};
}

meta::ObjectMeta DefaultMetadata(const std::string& name) {
  meta::ObjectMeta metadata;
  metadata.name = name;
  metadata.labels[std::string(kBootstrapLabel)] = kBootstrapLabelValue;
  metadata.annotations[std::string(kAutoUpdateAnnotation)] = "true";
  return metadata;
}

k8s::Subject SubjectObject(const Subject& subject) {
  const auto kind = subject.kind == SubjectKind::kUser ? k8s::kSubjectUser : k8s::kSubjectGroup;
  return {.kind = std::string(kind), .api_group = std::string(kRbacGroup), .name = subject.name};
}

// Labels and annotations that are missing; what an operator has set stays.
bool CompleteMetadata(meta::ObjectMeta& metadata, const meta::ObjectMeta& wanted) {
  const size_t before = metadata.labels.size() + metadata.annotations.size();
  metadata.labels.insert(wanted.labels.begin(), wanted.labels.end());
  metadata.annotations.insert(wanted.annotations.begin(), wanted.annotations.end());
  return metadata.labels.size() + metadata.annotations.size() != before;
}

bool CompleteRole(const meta::Scheme& scheme,
                  k8s::ClusterRole& role,
                  const k8s::ClusterRole& wanted) {
  auto rules = CompleteRules(role.rules, wanted.rules, scheme);
  if (!rules) return false;
  role.rules = *std::move(rules);
  return true;
}

bool CompleteBinding(k8s::ClusterRoleBinding& binding, const k8s::ClusterRoleBinding& wanted) {
  // The role of a binding cannot change: another one in its place is the operator's wish.
  if (!(binding.role_ref == wanted.role_ref)) return false;
  const size_t before = binding.subjects.size();
  for (const auto& subject : wanted.subjects) {
    if (std::ranges::find(binding.subjects, subject) == binding.subjects.end()) {
      binding.subjects.push_back(subject);
    }
  }
  return binding.subjects.size() != before;
}

}  // namespace

std::vector<const meta::KindInfo*> PolicyKinds() {
  return {&k8s::kRoleKind,
          &k8s::kClusterRoleKind,
          &k8s::kRoleBindingKind,
          &k8s::kClusterRoleBindingKind};
}

bool IsPolicyKind(const meta::KindInfo& kind) {
  return IsRoleKind(kind) || &kind == &k8s::kRoleBindingKind ||
         &kind == &k8s::kClusterRoleBindingKind;
}

bool IsRoleKind(const meta::KindInfo& kind) {
  return &kind == &k8s::kRoleKind || &kind == &k8s::kClusterRoleKind;
}

RolePolicy RolePolicyOf(const meta::Object& role) {
  if (&role.kind() == &k8s::kRoleKind) return {.rules = role.as<k8s::Role>().rules};
  const auto& cluster_role = role.as<k8s::ClusterRole>();
  RolePolicy policy{.rules = cluster_role.rules, .labels = cluster_role.metadata.labels};
  if (cluster_role.aggregation_rule) {
    policy.aggregates = cluster_role.aggregation_rule->cluster_role_selectors;
  }
  return policy;
}

Binding BindingOf(const meta::Object& object) {
  if (&object.kind() == &k8s::kRoleBindingKind) {
    const auto& binding = object.as<k8s::RoleBinding>();
    return MakeBinding(binding.subjects, binding.role_ref, binding.metadata.namespace_);
  }
  const auto& binding = object.as<k8s::ClusterRoleBinding>();
  return MakeBinding(binding.subjects, binding.role_ref, "");
}

void OnPolicyChanged(Authorizer& authorizer, const meta::Object& object) {
  if (IsRoleKind(object.kind())) {
    authorizer.SetRole(KeyOf(object), RolePolicyOf(object));
  } else {
    authorizer.SetBinding(KeyOf(object), BindingOf(object));
  }
}

void OnPolicyDeleted(Authorizer& authorizer, const meta::Object& object) {
  if (IsRoleKind(object.kind())) {
    authorizer.RemoveRole(KeyOf(object));
  } else {
    authorizer.RemoveBinding(KeyOf(object));
  }
}

std::vector<meta::Object> DefaultPolicy(const meta::Scheme& scheme) {
  std::vector<meta::Object> objects;
  for (auto& role : DefaultRoles(scheme)) {
    k8s::ClusterRole object;
    object.metadata = DefaultMetadata(role.name);
    object.rules = std::move(role.rules);
    objects.push_back(meta::Object::Of(k8s::kClusterRoleKind, std::move(object)));
  }
  for (const auto& binding : DefaultBindings()) {
    k8s::ClusterRoleBinding object;
    object.metadata = DefaultMetadata(binding.name);
    object.role_ref = {
        .api_group = std::string(kRbacGroup), .kind = "ClusterRole", .name = binding.name};
    for (const auto& subject : binding.subjects) object.subjects.push_back(SubjectObject(subject));
    objects.push_back(meta::Object::Of(k8s::kClusterRoleBindingKind, std::move(object)));
  }
  return objects;
}

std::optional<meta::Object> CompletePolicy(const meta::Scheme& scheme,
                                           const meta::Object& current,
                                           const meta::Object& wanted) {
  const auto& annotations = current.metadata().annotations;
  auto update = annotations.find(std::string(kAutoUpdateAnnotation));
  if (update != annotations.end() && update->second == "false") return std::nullopt;
  meta::Object completed = current;
  bool changed = CompleteMetadata(completed.metadata(), wanted.metadata());
  if (&current.kind() == &k8s::kClusterRoleKind) {
    changed |=
        CompleteRole(scheme, completed.as<k8s::ClusterRole>(), wanted.as<k8s::ClusterRole>());
  } else {
    changed |= CompleteBinding(completed.as<k8s::ClusterRoleBinding>(),
                               wanted.as<k8s::ClusterRoleBinding>());
  }
  if (!changed) return std::nullopt;
  return completed;
}

}  // namespace berth::apiserver
