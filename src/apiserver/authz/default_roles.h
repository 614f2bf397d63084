// SPDX-License-Identifier: Apache-2.0
// The roles that every cluster has, made from the kinds that are served:
//
//   cluster-admin               everything; bound to system:masters
//   admin, edit, view           for a namespace (or the cluster): all of it with roles; its
//   objects;
//                               reading without Secrets
//   system:discovery            finding out what is served; bound to everyone authenticated
//   system:basic-user           asking about oneself; bound to everyone authenticated
//   system:public-info-viewer   health and version; bound to everyone
//   system:monitoring           metrics; bound to the group of that name
//   berth:scheduler             deciding where things are: bindings; bound to nobody
//   berth:lifecycle             that, and ending what was lost; bound to nobody
//   berth:class-reader, berth:pool-reader   for tenants who choose classes or look at pools
//
// At start they are made or completed: rights and subjects that are missing are added, additions of
// the operator stay. A role annotated rbac.authorization.kubernetes.io/autoupdate=false is left
// alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/authz/policy.h"
#include "meta/scheme.h"

namespace berth::apiserver {

inline constexpr std::string_view kAutoUpdateAnnotation =
    "rbac.authorization.kubernetes.io/autoupdate";
inline constexpr std::string_view kBootstrapLabel = "kubernetes.io/bootstrapping";
inline constexpr std::string_view kBootstrapLabelValue = "rbac-defaults";

struct DefaultRole {
  std::string name;
  std::vector<PolicyRule> rules;
};

struct DefaultBinding {
  std::string name;  // also of the role
  std::vector<Subject> subjects;
};

std::vector<DefaultRole> DefaultRoles(const meta::Scheme& scheme);
std::vector<DefaultBinding> DefaultBindings();

// `current` with the rights of `wanted` that it lacks; nullopt if it lacks none.
std::optional<std::vector<PolicyRule>> CompleteRules(const std::vector<PolicyRule>& current,
                                                     const std::vector<PolicyRule>& wanted,
                                                     const meta::Scheme& scheme);

}  // namespace berth::apiserver
