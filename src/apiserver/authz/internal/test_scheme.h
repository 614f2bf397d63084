// SPDX-License-Identifier: Apache-2.0
// A few kinds in two domains, for the tests of this library.
#pragma once

#include "apiserver/authz/authorizer.h"
#include "meta/scheme.h"

namespace berth::apiserver {

inline constexpr meta::ScalePaths kTestScale = {};
inline constexpr meta::KindInfo kTestMachine = {.group = "compute",
                                                .naming = meta::GroupNaming::kDomain,
                                                .version = "v1alpha1",
                                                .kind = "Machine",
                                                .plural = "machines",
                                                .singular = "machine",
                                                .has_status = true,
                                                .scale = &kTestScale};
inline constexpr meta::KindInfo kTestClass = {.group = "compute",
                                              .naming = meta::GroupNaming::kDomain,
                                              .version = "v1alpha1",
                                              .kind = "MachineClass",
                                              .plural = "machineclasses",
                                              .singular = "machineclass",
                                              .scope = meta::Scope::kCluster};
inline constexpr meta::KindInfo kTestPool = {.group = "compute",
                                             .naming = meta::GroupNaming::kDomain,
                                             .version = "v1alpha1",
                                             .kind = "MachinePool",
                                             .plural = "machinepools",
                                             .singular = "machinepool",
                                             .scope = meta::Scope::kCluster,
                                             .has_status = true};
inline constexpr meta::KindInfo kTestVolume = {.group = "storage",
                                               .naming = meta::GroupNaming::kDomain,
                                               .version = "v1alpha1",
                                               .kind = "Volume",
                                               .plural = "volumes",
                                               .singular = "volume",
                                               .has_status = true};
inline constexpr meta::KindInfo kTestQuota = {.group = "core",
                                              .naming = meta::GroupNaming::kDomain,
                                              .version = "v1alpha1",
                                              .kind = "ResourceQuota",
                                              .plural = "resourcequotas",
                                              .singular = "resourcequota"};
inline constexpr meta::KindInfo kTestSecret = {
    .group = "", .version = "v1", .kind = "Secret", .plural = "secrets", .singular = "secret"};
inline constexpr meta::KindInfo kTestRole = {
    .group = kRbacGroup, .version = "v1", .kind = "Role", .plural = "roles", .singular = "role"};
inline constexpr const meta::KindInfo* kTestKinds[] = {
    &kTestMachine, &kTestClass, &kTestPool, &kTestVolume, &kTestQuota, &kTestSecret, &kTestRole};

inline const meta::Scheme& TestScheme() {
  static const meta::Scheme scheme(kTestKinds, {"ironcore.dev", "OpenKCM.dev"});
  return scheme;
}

inline Identity Someone(std::string user, std::vector<std::string> groups = {}) {
  groups.emplace_back("system:authenticated");
  return {.user = std::move(user), .groups = std::move(groups)};
}

// A request as the router would make it from a path of any domain.
inline RequestInfo Asking(std::string verb,
                          std::string_view group,
                          std::string resource,
                          std::string namespace_ = "",
                          std::string name = "",
                          std::string subresource = "") {
  return {.is_resource = true,
          .verb = std::move(verb),
          .group = TestScheme().CanonicalGroup(group),
          .requested_group = std::string(group),
          .version = "v1",
          .namespace_ = std::move(namespace_),
          .resource = std::move(resource),
          .subresource = std::move(subresource),
          .name = std::move(name)};
}

inline RequestInfo AskingPath(std::string verb, std::string path) {
  return {.verb = std::move(verb), .path = std::move(path)};
}

}  // namespace berth::apiserver
