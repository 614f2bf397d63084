// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/role_binding.h"

#include <array>

#include "apis/core/rules.h"
#include "apis/k8s/role.h"
#include "base/strings.h"
#include "meta/names.h"

namespace berth::apis::k8s {
namespace {

constexpr std::string_view kRole = "Role";
constexpr std::string_view kClusterRole = "ClusterRole";

template <class Binding>
void SetDefaults(Binding& object) {
  if (object.role_ref.api_group.empty()) object.role_ref.api_group = kRbacGroup;
  for (Subject& subject : object.subjects) {
    const bool is_ours = subject.kind == kSubjectUser || subject.kind == kSubjectGroup;
    if (is_ours && subject.api_group.empty()) subject.api_group = kRbacGroup;
  }
}

void CheckRoleRef(const RoleRef& role,
                  const std::vector<std::string_view>& kinds,
                  meta::FieldErrors& errors) {
  const meta::FieldPath path("roleRef");
  if (role.api_group != kRbacGroup) {
    errors.NotSupported(path.Child("apiGroup"), role.api_group, {kRbacGroup});
  }
  if (std::ranges::find(kinds, role.kind) == kinds.end()) {
    errors.NotSupported(path.Child("kind"), role.kind, kinds);
  }
  if (role.name.empty()) {
    errors.Required(path.Child("name"));
  } else {
    meta::AddProblems(path.Child("name"), role.name, meta::PathSegmentProblems(role.name), errors);
  }
}

void CheckSubject(const Subject& subject,
                  meta::Scope scope,
                  const meta::FieldPath& path,
                  meta::FieldErrors& errors) {
  if (subject.kind == kSubjectServiceAccount) {
    if (!subject.name.empty()) core::CheckSubdomainName(subject.name, path.Child("name"), errors);
    if (!subject.api_group.empty()) {
      errors.NotSupported(path.Child("apiGroup"), subject.api_group, {""});
    }
    if (scope == meta::Scope::kCluster && subject.namespace_.empty()) {
      errors.Required(path.Child("namespace"));
    }
  } else if (subject.kind == kSubjectUser || subject.kind == kSubjectGroup) {
    if (subject.api_group != kRbacGroup) {
      errors.NotSupported(path.Child("apiGroup"), subject.api_group, {kRbacGroup});
    }
  } else if (!subject.kind.empty()) {
    errors.NotSupported(
        path.Child("kind"), subject.kind, {kSubjectServiceAccount, kSubjectUser, kSubjectGroup});
  }
}

template <class Binding, meta::Scope S>
void Validate(const Binding& object, meta::FieldErrors& errors) {
  if constexpr (S == meta::Scope::kCluster) {
    CheckRoleRef(object.role_ref, {kClusterRole}, errors);
  } else {
    CheckRoleRef(object.role_ref, {kRole, kClusterRole}, errors);
  }
  for (size_t i = 0; i < object.subjects.size(); ++i) {
    CheckSubject(object.subjects[i], S, meta::FieldPath("subjects").Index(i), errors);
  }
}

template <class Binding>
void ValidateUpdate(const Binding& now, const Binding& before, meta::FieldErrors& errors) {
  if (now.role_ref == before.role_ref) return;
  errors.Invalid(meta::FieldPath("roleRef"),
                 now.role_ref.kind + "/" + now.role_ref.name,
                 "cannot change roleRef");
}

template <class Binding>
std::string RoleCell(const Binding& object) {
  return object.role_ref.kind + "/" + object.role_ref.name;
}

std::string NamesOf(const std::vector<Subject>& subjects, std::string_view kind) {
  std::vector<std::string> names;
  for (const Subject& subject : subjects) {
    if (subject.kind != kind) continue;
    const bool is_account = kind == kSubjectServiceAccount;
    names.push_back(is_account ? subject.namespace_ + "/" + subject.name : subject.name);
  }
  return Join(names, ", ");
}
template <class Binding>
std::string UsersCell(const Binding& object) {
  return NamesOf(object.subjects, kSubjectUser);
}
template <class Binding>
std::string GroupsCell(const Binding& object) {
  return NamesOf(object.subjects, kSubjectGroup);
}
template <class Binding>
std::string AccountsCell(const Binding& object) {
  return NamesOf(object.subjects, kSubjectServiceAccount);
}

template <class Binding>
struct Columns {
  static constexpr std::array<meta::Column, 4> kAll = {{
      {.name = "Role", .doc = "The role that is given.", .cell = meta::Hook<&RoleCell<Binding>>},
      {.name = "Users",
       .doc = "Users who get it.",
       .priority = 1,
       .cell = meta::Hook<&UsersCell<Binding>>},
      {.name = "Groups",
       .doc = "Groups that get it.",
       .priority = 1,
       .cell = meta::Hook<&GroupsCell<Binding>>},
      {.name = "ServiceAccounts",
       .doc = "Service accounts that get it.",
       .priority = 1,
       .cell = meta::Hook<&AccountsCell<Binding>>},
  }};
};

}  // namespace

constinit const meta::KindInfo kRoleBindingKind = {
    .group = kRbacGroup,
    .version = "v1",
    .kind = "RoleBinding",
    .plural = "rolebindings",
    .singular = "rolebinding",
    .scope = meta::Scope::kNamespaced,
    .name_rule = meta::NameRule::kPathSegment,
    .type = &meta::TypeInfoOf<RoleBinding>(),
    .columns = Columns<RoleBinding>::kAll,
    .set_defaults = meta::Hook<&SetDefaults<RoleBinding>>,
    .validate = meta::Hook<&Validate<RoleBinding, meta::Scope::kNamespaced>>,
    .validate_update = meta::Hook<&ValidateUpdate<RoleBinding>>,
};

constinit const meta::KindInfo kClusterRoleBindingKind = {
    .group = kRbacGroup,
    .version = "v1",
    .kind = "ClusterRoleBinding",
    .plural = "clusterrolebindings",
    .singular = "clusterrolebinding",
    .scope = meta::Scope::kCluster,
    .name_rule = meta::NameRule::kPathSegment,
    .type = &meta::TypeInfoOf<ClusterRoleBinding>(),
    .columns = Columns<ClusterRoleBinding>::kAll,
    .set_defaults = meta::Hook<&SetDefaults<ClusterRoleBinding>>,
    .validate = meta::Hook<&Validate<ClusterRoleBinding, meta::Scope::kCluster>>,
    .validate_update = meta::Hook<&ValidateUpdate<ClusterRoleBinding>>,
};

}  // namespace berth::apis::k8s
