// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/authorizer.h"

#include <fmt/core.h>

#include <algorithm>

namespace berth::apiserver {
namespace {

constexpr std::string_view kMasters = "system:masters";

std::string_view SubjectKindName(SubjectKind kind) {
  switch (kind) {
    case SubjectKind::kUser: return "User";
    case SubjectKind::kGroup: return "Group";
    case SubjectKind::kServiceAccount: return "ServiceAccount";
  }
  return "";
}

}  // namespace

Status ForbiddenStatus(const Identity& identity, const RequestInfo& request) {
  if (!request.is_resource) {
    return Forbidden(fmt::format("forbidden: User {} cannot {} path {}",
                                 Quote(identity.user),
                                 request.verb,
                                 Quote(request.path)));
  }
  std::string subject = request.resource;
  if (!request.group.empty()) subject += "." + request.group;
  if (!request.name.empty()) subject += " " + Quote(request.name);
  std::string resource = request.resource;
  if (!request.subresource.empty()) resource += "/" + request.subresource;
  const std::string where = request.namespace_.empty()
                                ? "at the cluster scope"
                                : "in the namespace " + Quote(request.namespace_);
  return Forbidden(fmt::format("{} is forbidden: User {} cannot {} resource {} in API group {} {}",
                               subject,
                               Quote(identity.user),
                               request.verb,
                               Quote(resource),
                               Quote(request.group),
                               where))
      .WithObject({.group = request.group, .kind = request.resource, .name = request.name});
}

template <class Visit>
bool Authorizer::VisitScope(const ScopeIndex& scope, const Identity& identity, Visit visit) {
  if (auto found = scope.users.find(identity.user); found != scope.users.end()) {
    for (const BoundRole* bound : found->second) {
      if (visit(Grant{bound, SubjectKind::kUser, identity.user})) return true;
    }
  }
  for (const auto& group : identity.groups) {
    auto found = scope.groups.find(group);
    if (found == scope.groups.end()) continue;
    for (const BoundRole* bound : found->second) {
      if (visit(Grant{bound, SubjectKind::kGroup, group})) return true;
    }
  }
  return false;
}

template <class Visit>
bool Authorizer::VisitGrants(const Identity& identity,
                             std::string_view namespace_,
                             Visit visit) const {
  auto cluster = scopes_.find(std::string_view());
  if (cluster != scopes_.end() && VisitScope(cluster->second, identity, visit)) return true;
  if (namespace_.empty()) return false;
  auto scope = scopes_.find(namespace_);
  return scope != scopes_.end() && VisitScope(scope->second, identity, visit);
}

bool Authorizer::FindGrant(const Identity& identity,
                           const RequestInfo& request,
                           Grant& grant) const {
  const uint32_t verb_bit = CompiledRule::VerbBit(request.verb);
  const std::string_view scope =
      request.is_resource ? std::string_view(request.namespace_) : std::string_view();
  return VisitGrants(identity, scope, [&](const Grant& candidate) {
    const auto& rules = candidate.bound->role->compiled;
    const bool allowed = std::ranges::any_of(
        rules, [&](const auto& rule) { return rule.Allows(request, verb_bit); });
    if (allowed) grant = candidate;
    return allowed;
  });
}

bool Authorizer::Allows(const Identity& identity, const RequestInfo& request) const {
  return AllowsByRoles(identity, request) ||
         (pools_ != nullptr && pools_->Allows(identity, request));
}

bool Authorizer::AllowsByRoles(const Identity& identity, const RequestInfo& request) const {
  if (identity.InGroup(kMasters)) return true;
  Grant grant;
  return FindGrant(identity, request, grant);
}

Status Authorizer::Check(const Identity& identity, const RequestInfo& request) const {
  return Allows(identity, request) ? OkStatus() : ForbiddenStatus(identity, request);
}

Decision Authorizer::Decide(const Identity& identity, const RequestInfo& request) const {
  if (identity.InGroup(kMasters)) {
    return {.allowed = true, .reason = "the group system:masters may do everything"};
  }
  Grant grant;
  if (!FindGrant(identity, request, grant)) {
    if (pools_ == nullptr || !pools_->Allows(identity, request)) return {};
    return {.allowed = true, .reason = "a pool may reach what is bound to it"};
  }
  const auto& [key, binding, role] = *grant.bound;
  const bool is_cluster = key.namespace_.empty();
  return {.allowed = true,
          .reason = fmt::format("RBAC: allowed by {} {} of {} {} to {} {}",
                                is_cluster ? "ClusterRoleBinding" : "RoleBinding",
                                Quote(is_cluster ? key.name : key.name + "/" + key.namespace_),
                                binding.role.namespace_.empty() ? "ClusterRole" : "Role",
                                Quote(binding.role.name),
                                SubjectKindName(grant.kind),
                                Quote(grant.subject))};
}

std::vector<PolicyRule> Authorizer::RulesOf(const Identity& identity,
                                            std::string_view namespace_) const {
  std::vector<PolicyRule> rules;
  if (identity.InGroup(kMasters)) {
    rules.push_back({.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}});
    rules.push_back({.verbs = {"*"}, .non_resource_urls = {"*"}});
  }
  VisitGrants(identity, namespace_, [&](const Grant& grant) {
    const auto& more = grant.bound->role->rules;
    rules.insert(rules.end(), more.begin(), more.end());
    return false;
  });
  return rules;
}

std::shared_ptr<Authorizer::RoleSlot> Authorizer::SlotFor(const PolicyKey& key) {
  auto& slot = roles_[key];
  if (!slot) slot = std::make_shared<RoleSlot>();
  return slot;
}

void Authorizer::SetRole(const PolicyKey& key, RolePolicy policy) {
  auto slot = SlotFor(key);
  if (!slot->policy.aggregates.empty()) --aggregating_;
  slot->exists = true;
  slot->policy = std::move(policy);
  slot->policy.rules = Canonical(slot->policy.rules, scheme_);
  if (!key.namespace_.empty()) {
    // A Role has a namespace, so it never grants paths, and it aggregates nothing.
    for (auto& rule : slot->policy.rules) rule.non_resource_urls.clear();
    slot->policy.aggregates.clear();
  }
  if (!slot->policy.aggregates.empty()) ++aggregating_;
  slot->rules = slot->policy.rules;
  Compile(*slot);
  if (key.namespace_.empty()) Aggregate();
}

void Authorizer::RemoveRole(const PolicyKey& key) {
  auto found = roles_.find(key);
  if (found == roles_.end()) return;
  if (!found->second->policy.aggregates.empty()) --aggregating_;
  *found->second = RoleSlot();
  if (found->second.use_count() == 1) roles_.erase(found);
  if (key.namespace_.empty()) Aggregate();
}

void Authorizer::Compile(RoleSlot& slot) {
  slot.compiled.clear();
  slot.compiled.reserve(slot.rules.size());
  for (const auto& rule : slot.rules) slot.compiled.emplace_back(rule);
}

// Few roles aggregate, and ClusterRoles change rarely: working all of them out anew is simplest.
void Authorizer::Aggregate() {
  if (aggregating_ == 0) return;
  // ClusterRoles come first in the map: their namespace is empty.
  std::vector<RoleSlot*> cluster_roles;
  for (const auto& [key, slot] : roles_) {
    if (!key.namespace_.empty()) break;
    if (slot->exists) cluster_roles.push_back(slot.get());
  }
  for (RoleSlot* role : cluster_roles) {
    if (role->policy.aggregates.empty()) continue;
    // A role that is selected may itself select others; each counts once, so circles end.
    std::vector<const RoleSlot*> selected = {role};
    for (size_t i = 0; i < selected.size(); ++i) {
      for (const auto& text : selected[i]->policy.aggregates) {
        auto selector = meta::Selector::From(text);
        if (!selector.ok()) continue;
        for (const RoleSlot* other : cluster_roles) {
          const bool known = std::ranges::find(selected, other) != selected.end();
          if (!known && selector->Matches(other->policy.labels)) selected.push_back(other);
        }
      }
    }
    role->rules.clear();
    for (const RoleSlot* part : selected) {
      role->rules.insert(role->rules.end(), part->policy.rules.begin(), part->policy.rules.end());
    }
    Compile(*role);
  }
}

const std::vector<PolicyRule>* Authorizer::FindRole(const PolicyKey& key) const {
  auto found = roles_.find(key);
  return found != roles_.end() && found->second->exists ? &found->second->rules : nullptr;
}

void Authorizer::SetBinding(const PolicyKey& key, Binding binding) {
  RemoveBinding(key);
  auto bound = std::make_unique<BoundRole>();
  bound->key = key;
  bound->role = SlotFor(binding.role);
  bound->binding = std::move(binding);
  Index(*bound);
  bindings_[key] = std::move(bound);
}

void Authorizer::RemoveBinding(const PolicyKey& key) {
  auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  Unindex(*found->second);
  const PolicyKey role = found->second->binding.role;
  bindings_.erase(found);
  // A place without a role and without bindings is of no use any more.
  auto slot = roles_.find(role);
  if (slot != roles_.end() && !slot->second->exists && slot->second.use_count() == 1) {
    roles_.erase(slot);
  }
}

void Authorizer::Index(const BoundRole& bound) {
  ScopeIndex& scope = scopes_[bound.key.namespace_];
  for (const auto& subject : bound.binding.subjects) {
    if (subject.kind == SubjectKind::kServiceAccount) continue;
    auto& side = subject.kind == SubjectKind::kUser ? scope.users : scope.groups;
    BoundRoles& list = side[subject.name];
    if (std::ranges::find(list, &bound) == list.end()) list.push_back(&bound);
  }
}

void Authorizer::Unindex(const BoundRole& bound) {
  auto scope = scopes_.find(bound.key.namespace_);
  if (scope == scopes_.end()) return;
  for (const auto& subject : bound.binding.subjects) {
    if (subject.kind == SubjectKind::kServiceAccount) continue;
    auto& side = subject.kind == SubjectKind::kUser ? scope->second.users : scope->second.groups;
    auto found = side.find(subject.name);
    if (found == side.end()) continue;
    std::erase(found->second, &bound);
    if (found->second.empty()) side.erase(found);
  }
  if (scope->second.users.empty() && scope->second.groups.empty()) scopes_.erase(scope);
}

}  // namespace berth::apiserver
