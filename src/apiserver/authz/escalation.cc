// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/escalation.h"

#include <fmt/core.h>

#include "apiserver/authz/covers.h"
#include "apiserver/authz/impersonation.h"
#include "base/strings.h"
#include "pki/token.h"

namespace berth::apiserver {
namespace {

// A message lists at most this many missing rights.
constexpr size_t kMissingShown = 20;

std::string_view RoleResource(const PolicyKey& role) {
  return role.namespace_.empty() ? "clusterroles" : "roles";
}

RequestInfo RoleRequest(std::string_view verb, const PolicyKey& role, std::string namespace_) {
  return {.is_resource = true,
          .verb = std::string(verb),
          .group = std::string(kRbacGroup),
          .version = "v1",
          .namespace_ = std::move(namespace_),
          .resource = std::string(RoleResource(role)),
          .name = role.name};
}

Status Escalation(const Identity& identity,
                  std::string_view resource,
                  const std::string& name,
                  const std::vector<PolicyRule>& missing) {
  std::vector<std::string> groups;
  for (const auto& group : identity.groups) groups.push_back(Quote(group));
  std::string message = fmt::format(
      "{}.{} {} is forbidden: user {} (groups=[{}]) is attempting to grant RBAC permissions not "
      "currently held:",
      resource,
      kRbacGroup,
      Quote(name),
      Quote(identity.user),
      Join(groups, " "));
  for (size_t i = 0; i < missing.size() && i < kMissingShown; ++i) {
    message += "\n" + FormatRule(missing[i]);
  }
  if (missing.size() > kMissingShown) {
    message += fmt::format("\nand {} more", missing.size() - kMissingShown);
  }
  return Forbidden(std::move(message))
      .WithObject({.group = std::string(kRbacGroup), .kind = std::string(resource), .name = name});
}

}  // namespace

Status CheckRoleWrite(const Authorizer& authorizer,
                      const Identity& identity,
                      const PolicyKey& key,
                      const std::vector<PolicyRule>& rules) {
  if (authorizer.Allows(identity, RoleRequest("escalate", key, key.namespace_))) {
    return OkStatus();
  }
  TRY(auto missing,
      Uncovered(authorizer.RulesOf(identity, key.namespace_),
                Canonical(rules, authorizer.scheme())));
  if (missing.empty()) return OkStatus();
  return Escalation(identity, RoleResource(key), key.name, missing);
}

Status CheckBindingWrite(const Authorizer& authorizer,
                         const Identity& identity,
                         const PolicyKey& key,
                         const Binding& binding) {
  // The right to bind counts where the binding is: a RoleBinding gives a ClusterRole's rights in
  // its own namespace only.
  if (authorizer.Allows(identity, RoleRequest("bind", binding.role, key.namespace_))) {
    return OkStatus();
  }
  const auto* rules = authorizer.FindRole(binding.role);
  const auto resource = RoleResource(binding.role);
  if (rules == nullptr) {
    return NotFound(
               fmt::format("{}.{} {} not found", resource, kRbacGroup, Quote(binding.role.name)))
        .WithObject({.group = std::string(kRbacGroup),
                     .kind = std::string(resource),
                     .name = binding.role.name});
  }
  TRY(auto missing, Uncovered(authorizer.RulesOf(identity, key.namespace_), *rules));
  if (missing.empty()) return OkStatus();
  return Escalation(
      identity, key.namespace_.empty() ? "clusterrolebindings" : "rolebindings", key.name, missing);
}

Status CheckTokenWrite(const Authorizer& authorizer,
                       const Identity& identity,
                       std::string_view name,
                       const std::map<std::string, std::string>& data) {
  auto record = pki::ParseTokenSecret(name, data);
  if (!record.ok()) return record.status().Wrap("secret " + Quote(name));
  TRY_STATUS(authorizer.Check(identity, ImpersonationRequest("users", record->user)));
  for (const auto& group : record->groups) {
    TRY_STATUS(authorizer.Check(identity, ImpersonationRequest("groups", group)));
  }
  return OkStatus();
}

}  // namespace berth::apiserver
