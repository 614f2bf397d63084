// SPDX-License-Identifier: Apache-2.0
// Policy as objects: what Roles, ClusterRoles and their bindings mean to the Authorizer, and the
// default roles as objects to create.
#pragma once

#include <optional>
#include <vector>

#include "apiserver/authz/authorizer.h"
#include "apiserver/authz/policy.h"
#include "meta/kind.h"
#include "meta/object.h"
#include "meta/scheme.h"

namespace berth::apiserver {

// The four kinds to watch: Role, ClusterRole, RoleBinding, ClusterRoleBinding.
std::vector<const meta::KindInfo*> PolicyKinds();
bool IsPolicyKind(const meta::KindInfo& kind);
bool IsRoleKind(const meta::KindInfo& kind);

// REQUIRES: IsRoleKind, or one of the bindings.
RolePolicy RolePolicyOf(const meta::Object& role);
Binding BindingOf(const meta::Object& binding);

// Watch events of the policy kinds. An object that is being deleted grants until it is gone, as in
// Kubernetes.
void OnPolicyChanged(Authorizer& authorizer, const meta::Object& object);
void OnPolicyDeleted(Authorizer& authorizer, const meta::Object& object);

// The default ClusterRoles and ClusterRoleBindings (default_roles.h), to be created at start if
// they are missing.
std::vector<meta::Object> DefaultPolicy(const meta::Scheme& scheme);
// `current` completed by what `wanted` (of DefaultPolicy) has and it lacks; nullopt if there is
// nothing to do, or if its annotation forbids it.
std::optional<meta::Object> CompletePolicy(const meta::Scheme& scheme,
                                           const meta::Object& current,
                                           const meta::Object& wanted);

}  // namespace berth::apiserver
