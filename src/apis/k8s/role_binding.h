// SPDX-License-Identifier: Apache-2.0
// RoleBinding and ClusterRoleBinding: who may do what a role allows.
#pragma once

#include <string>
#include <vector>

#include "meta/kind.h"

namespace berth::apis::k8s {

inline constexpr std::string_view kSubjectUser = "User";
inline constexpr std::string_view kSubjectGroup = "Group";
inline constexpr std::string_view kSubjectServiceAccount = "ServiceAccount";

struct Subject {
  std::string kind;
  std::string api_group;
  std::string name;
  std::string namespace_;
  bool operator==(const Subject&) const = default;
};
BERTH_DESCRIBE_ATOMIC(
    Subject,
    "io.k8s.api.rbac.v1.Subject",
    "Someone who may do something.",
    BERTH_FIELD(kind, "kind", "User, Group or ServiceAccount.", {.required = true}),
    BERTH_FIELD(api_group,
                "apiGroup",
                "rbac.authorization.k8s.io for users and groups, empty for "
                "service accounts; filled in when absent."),
    BERTH_FIELD(name, "name", "Name of the user or group.", {.required = true}),
    BERTH_FIELD(namespace_, "namespace", "Namespace of a service account."))

struct RoleRef {
  std::string api_group;
  std::string kind;
  std::string name;
  bool operator==(const RoleRef&) const = default;
};
BERTH_DESCRIBE_ATOMIC(
    RoleRef,
    "io.k8s.api.rbac.v1.RoleRef",
    "Names a role.",
    BERTH_FIELD(api_group, "apiGroup", "rbac.authorization.k8s.io.", {.always = true}),
    BERTH_FIELD(kind, "kind", "Role or ClusterRole.", {.always = true}),
    BERTH_FIELD(name, "name", "Name of the role.", {.always = true}))

struct RoleBinding {
  meta::ObjectMeta metadata;
  std::vector<Subject> subjects;
  RoleRef role_ref;
};
BERTH_DESCRIBE(RoleBinding,
               "io.k8s.api.rbac.v1.RoleBinding",
               "Gives a role's permissions in one namespace.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(subjects, "subjects", "Who gets them.", {.list_type = "atomic"}),
               BERTH_FIELD(role_ref,
                           "roleRef",
                           "A Role in the same namespace, or a ClusterRole. Cannot change.",
                           {.always = true}))

struct ClusterRoleBinding {
  meta::ObjectMeta metadata;
  std::vector<Subject> subjects;
  RoleRef role_ref;
};
BERTH_DESCRIBE(ClusterRoleBinding,
               "io.k8s.api.rbac.v1.ClusterRoleBinding",
               "Gives a role's permissions in the whole cluster.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(subjects, "subjects", "Who gets them.", {.list_type = "atomic"}),
               BERTH_FIELD(role_ref, "roleRef", "A ClusterRole. Cannot change.", {.always = true}))

extern const meta::KindInfo kRoleBindingKind;
extern const meta::KindInfo kClusterRoleBindingKind;
inline const meta::KindInfo& BerthKind(meta::Tag<RoleBinding>) { return kRoleBindingKind; }
inline const meta::KindInfo& BerthKind(meta::Tag<ClusterRoleBinding>) {
  return kClusterRoleBindingKind;
}

}  // namespace berth::apis::k8s
