// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/escalation.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "apis/k8s/priority_class.h"
#include "apis/k8s/secret.h"
#include "apis/placement.h"
#include "apis/storage/volume.h"
#include "apiserver/authz/covers.h"
#include "apiserver/authz/impersonation.h"
#include "apiserver/authz/internal/asked_machine.h"
#include "apiserver/authz/policy_objects.h"
#include "apiserver/authz/restricted_taints.h"
#include "apiserver/authz/servers_own.h"
#include "base/strings.h"
#include "pki/join_token.h"
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

RequestInfo PoolRequest(const Authorizer& authorizer,
                        std::string_view verb,
                        const meta::KindInfo& placeable,
                        const std::string& pool) {
  const meta::KindInfo& kind = apis::PoolKindOf(placeable);
  return {.is_resource = true,
          .verb = std::string(verb),
          .group = authorizer.scheme().GroupOf(kind),
          .version = std::string(kind.version),
          .resource = std::string(kind.plural),
          .name = pool};
}

// The priority class that a machine, or a set's template, names.
std::string PriorityClassOf(const meta::Object* object) {
  const apis::compute::MachineSpec* machine = AskedMachine(object);
  if (machine == nullptr || !machine->placement) return "";
  return machine->placement->priority_class_name;
}

// The pools that volumes which are made for a machine are to go to.
std::set<std::string> TemplatePoolsOf(const meta::Object* object) {
  std::set<std::string> pools;
  const apis::compute::MachineSpec* machine = AskedMachine(object);
  if (machine == nullptr) return pools;
  for (const apis::compute::MachineVolume& volume : machine->volumes) {
    if (!volume.ephemeral || !volume.ephemeral->volume_template) continue;
    const auto& pool = volume.ephemeral->volume_template->spec.volume_pool_ref;
    if (pool) pools.insert(pool->name);
  }
  return pools;
}

bool HasPlacementFinalizer(const meta::Object& object) {
  const auto& finalizers = object.metadata().finalizers;
  return std::ranges::find(finalizers, apis::kPlacementFinalizer) != finalizers.end();
}

// Whether the two differ in nothing but what the garbage collector and finalizers change.
bool OnlyLetsGo(const meta::Object& before, const meta::Object& after) {
  meta::Object same = after;
  same.metadata().finalizers = before.metadata().finalizers;
  same.metadata().owner_references = before.metadata().owner_references;
  same.metadata().managed_fields = before.metadata().managed_fields;
  same.metadata().resource_version = before.metadata().resource_version;
  same.metadata().generation = before.metadata().generation;
  return same == before;
}

bool IsJoinToken(const meta::Object* object) {
  if (object == nullptr || &object->kind() != &apis::k8s::kSecretKind) return false;
  const auto& secret = object->as<apis::k8s::Secret>();
  return secret.type == pki::kJoinTokenSecretType &&
         secret.metadata.namespace_ == pki::kTokenNamespace;
}

std::map<std::string, std::string> TokenDataOf(const apis::k8s::Secret& secret) {
  std::map<std::string, std::string> data;
  for (const auto& [key, value] : secret.data) data[key] = value.bytes;
  for (const auto& [key, value] : secret.string_data) data[key] = value;
  return data;
}

}  // namespace

Status CheckRoleWrite(const Authorizer& authorizer,
                      const Identity& identity,
                      const PolicyKey& key,
                      const RolePolicy& policy) {
  if (authorizer.Allows(identity, RoleRequest("escalate", key, key.namespace_))) {
    return OkStatus();
  }
  std::vector<PolicyRule> wanted = Canonical(policy.rules, authorizer.scheme());
  if (!policy.aggregates.empty()) {
    wanted = {{.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}},
              {.verbs = {"*"}, .non_resource_urls = {"*"}}};
  }
  TRY(auto missing, Uncovered(authorizer.RulesOf(identity, key.namespace_), wanted));
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

Status CheckPoolChoice(const Authorizer& authorizer,
                       const Identity& identity,
                       const meta::Object* before,
                       const meta::Object& after) {
  const std::set<std::string> known = TemplatePoolsOf(before);
  for (const std::string& pool : TemplatePoolsOf(&after)) {
    if (known.contains(pool)) continue;
    TRY_STATUS(authorizer.Check(identity,
                                PoolRequest(authorizer, "bind", apis::storage::kVolumeKind, pool)));
  }
  if (!apis::IsPlaceable(after.kind())) return OkStatus();
  const auto& chosen = apis::PoolRefOf(after);
  // A changed reference is refused by the kind's own rules.
  if (!chosen || (before != nullptr && apis::PoolRefOf(*before))) return OkStatus();
  return authorizer.Check(identity, PoolRequest(authorizer, "bind", after.kind(), chosen->name));
}

Status CheckPriorityChoice(const Authorizer& authorizer,
                           const Identity& identity,
                           const meta::Object* before,
                           const meta::Object& after) {
  const std::string chosen = PriorityClassOf(&after);
  if (chosen.empty() || chosen == PriorityClassOf(before)) return OkStatus();
  const meta::KindInfo& kind = apis::k8s::kPriorityClassKind;
  return authorizer.Check(identity,
                          {.is_resource = true,
                           .verb = "use",
                           .group = authorizer.scheme().GroupOf(kind),
                           .version = std::string(kind.version),
                           .resource = std::string(kind.plural),
                           .name = chosen});
}

Status CheckLettingGo(const Authorizer& authorizer,
                      const Identity& identity,
                      const meta::Object& object) {
  if (!apis::IsPlaceable(object.kind()) || !apis::IsBound(object)) return OkStatus();
  return authorizer.Check(
      identity, PoolRequest(authorizer, "fence", object.kind(), apis::PlacementOf(object)->pool));
}

Status CheckPrivilegedWrite(const Authorizer& authorizer,
                            const Identity& identity,
                            const meta::Object* before,
                            const meta::Object& after) {
  const meta::KindInfo* kind = &after.kind();
  TRY_STATUS(CheckPriorityChoice(authorizer, identity, before, after));
  TRY_STATUS(CheckRestrictedTaints(authorizer, identity, before, after));
  TRY_STATUS(CheckPoolChoice(authorizer, identity, before, after));
  if (apis::IsPlaceable(*kind)) {
    if (before != nullptr && HasPlacementFinalizer(*before) && !HasPlacementFinalizer(after)) {
      return CheckLettingGo(authorizer, identity, *before);
    }
    return OkStatus();
  }
  if (IsJoinToken(before) || IsJoinToken(&after)) {
    return CheckAdministers(authorizer, identity, after);
  }
  const bool is_policy = IsPolicyKind(*kind);
  const bool is_token = kind == &apis::k8s::kSecretKind &&
                        after.as<apis::k8s::Secret>().type == pki::kTokenSecretType;
  if (!is_policy && !is_token) return OkStatus();
  if (before != nullptr && OnlyLetsGo(*before, after)) return OkStatus();
  if (is_token) {
    const auto& secret = after.as<apis::k8s::Secret>();
    return CheckTokenWrite(authorizer, identity, secret.metadata.name, TokenDataOf(secret));
  }
  const PolicyKey key{after.metadata().namespace_, after.metadata().name};
  if (IsRoleKind(*kind)) {
    return CheckRoleWrite(authorizer, identity, key, RolePolicyOf(after));
  }
  return CheckBindingWrite(authorizer, identity, key, BindingOf(after));
}

}  // namespace berth::apiserver
