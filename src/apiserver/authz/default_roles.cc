// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/default_roles.h"

#include <algorithm>
#include <map>

#include "apiserver/authz/covers.h"

namespace berth::apiserver {
namespace {

using Texts = std::vector<std::string>;

const Texts kRead = {"get", "list", "watch"};
const Texts kWrite = {"create", "delete", "deletecollection", "patch", "update"};
const Texts kReadWrite = {
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};

bool IsRbac(const meta::KindInfo& kind) { return kind.group == kRbacGroup; }
bool IsSecret(const meta::KindInfo& kind) { return kind.group.empty() && kind.plural == "secrets"; }
// Limits that a tenant has to live with.
bool IsQuota(const meta::KindInfo& kind) { return kind.plural == "resourcequotas"; }
bool IsClass(const meta::KindInfo& kind) {
  return kind.scope == meta::Scope::kCluster && kind.plural.ends_with("classes");
}
bool IsPool(const meta::KindInfo& kind) {
  return kind.scope == meta::Scope::kCluster && kind.plural.ends_with("pools");
}

// Talks to a guest, and so may change it.
bool IsConversation(std::string_view subresource) {
  return subresource == "console" || subresource == "exec" || subresource == "portforward";
}

// Collects resources by group, so that a role has one rule per group.
class RuleBuilder {
 public:
  explicit RuleBuilder(const meta::Scheme& scheme) : scheme_(scheme) {}

  void Add(const meta::KindInfo& kind, std::string_view subresource = {}) {
    std::string resource(kind.plural);
    if (!subresource.empty()) resource.append("/").append(subresource);
    Texts& resources = by_group_[scheme_.GroupOf(kind)];
    if (std::ranges::find(resources, resource) == resources.end()) {
      resources.push_back(std::move(resource));
    }
  }

  void AppendTo(std::vector<PolicyRule>& rules, const Texts& verbs) const {
    for (const auto& [group, resources] : by_group_) {
      PolicyRule rule{.verbs = verbs, .api_groups = {group}, .resources = resources};
      std::ranges::sort(rule.resources);
      rules.push_back(std::move(rule));
    }
  }

 private:
  const meta::Scheme& scheme_;
  std::map<std::string, Texts> by_group_;
};

// Rules with these verbs on all stored kinds that the predicate accepts.
template <class Predicate>
void AddKinds(const meta::Scheme& scheme,
              const Texts& verbs,
              Predicate accepts,
              std::vector<PolicyRule>& rules) {
  RuleBuilder builder(scheme);
  for (const meta::KindInfo* kind : scheme.kinds()) {
    if (kind->storage == meta::Storage::kStored && accepts(*kind)) builder.Add(*kind);
  }
  builder.AppendTo(rules, verbs);
}

void AddSubresources(const meta::Scheme& scheme,
                     std::vector<PolicyRule>& read,
                     std::vector<PolicyRule>& write) {
  RuleBuilder readable(scheme);
  RuleBuilder scalable(scheme);
  RuleBuilder spoken_to(scheme);
  for (const meta::KindInfo* kind : scheme.kinds()) {
    if (kind->storage != meta::Storage::kStored || IsRbac(*kind)) continue;
    if (kind->has_status) readable.Add(*kind, "status");
    for (const std::string_view subresource : kind->subresources) {
      if (subresource == "usage" || subresource == "log") readable.Add(*kind, subresource);
      if (IsConversation(subresource)) spoken_to.Add(*kind, subresource);
    }
    if (kind->scale != nullptr) readable.Add(*kind, "scale");
    if (kind->scale != nullptr && kind->scope == meta::Scope::kNamespaced) {
      scalable.Add(*kind, "scale");
    }
  }
  readable.AppendTo(read, {"get"});
  scalable.AppendTo(write, {"patch", "update"});
  spoken_to.AppendTo(write, {"create"});
}

std::vector<PolicyRule> ViewRules(const meta::Scheme& scheme) {
  std::vector<PolicyRule> rules;
  std::vector<PolicyRule> ignored;
  AddKinds(scheme, kRead, [](const auto& kind) { return !IsRbac(kind) && !IsSecret(kind); }, rules);
  AddSubresources(scheme, rules, ignored);
  // A question, although it is asked with a create.
  rules.push_back(
      {.verbs = {"create"}, .api_groups = {"berth.dev"}, .resources = {"placementreviews"}});
  return rules;
}

std::vector<PolicyRule> EditRules(const meta::Scheme& scheme) {
  std::vector<PolicyRule> rules = ViewRules(scheme);
  std::vector<PolicyRule> ignored;
  AddKinds(scheme, kRead, IsSecret, rules);
  auto writable = [](const auto& kind) {
    return kind.scope == meta::Scope::kNamespaced && !IsRbac(kind) && !IsQuota(kind);
  };
  AddKinds(scheme, kWrite, writable, rules);
  AddSubresources(scheme, ignored, rules);
  return rules;
}

std::vector<PolicyRule> AdminRules(const meta::Scheme& scheme) {
  std::vector<PolicyRule> rules = EditRules(scheme);
  rules.push_back({.verbs = kReadWrite,
                   .api_groups = {std::string(kRbacGroup)},
                   .resources = {"rolebindings", "roles"}});
  rules.push_back({.verbs = {"create"},
                   .api_groups = {"authorization.k8s.io"},
                   .resources = {"localsubjectaccessreviews"}});
  return rules;
}

template <class Predicate>
std::vector<PolicyRule> ReaderRules(const meta::Scheme& scheme, Predicate accepts) {
  std::vector<PolicyRule> rules;
  AddKinds(scheme, kRead, accepts, rules);
  return rules;
}

bool IsPlaceable(const meta::KindInfo& kind) {
  return std::ranges::find(kind.subresources, "binding") != kind.subresources.end();
}

// Who decides where things are: everything is read but secrets, and what is written are bindings,
// statuses, leases and events.
std::vector<PolicyRule> PlacementRules(const meta::Scheme& scheme) {
  std::vector<PolicyRule> rules = ViewRules(scheme);
  RuleBuilder bindings(scheme);
  RuleBuilder statuses(scheme);
  for (const meta::KindInfo* kind : scheme.kinds()) {
    if (IsPlaceable(*kind)) bindings.Add(*kind, "binding");
    const bool is_group = kind->plural == "machinegroups";
    if (IsPlaceable(*kind) || IsPool(*kind) || is_group) statuses.Add(*kind, "status");
  }
  bindings.AppendTo(rules, {"create", "delete"});
  statuses.AppendTo(rules, {"patch", "update"});
  rules.push_back({.verbs = {"create", "get", "patch", "update"},
                   .api_groups = {"coordination.k8s.io"},
                   .resources = {"leases"}});
  // By which it is elected (servers_own.h).
  rules.push_back({.verbs = {"administer"},
                   .api_groups = {"coordination.k8s.io"},
                   .resources = {"leases"},
                   .resource_names = {"scheduler"}});
  rules.push_back({.verbs = {"create", "patch", "update"},
                   .api_groups = {"", "events.k8s.io"},
                   .resources = {"events"}});
  return rules;
}

// Beyond that it deletes and replaces what was lost, and says that hosts are off.
std::vector<PolicyRule> LifecycleRules(const meta::Scheme& scheme) {
  std::vector<PolicyRule> rules = PlacementRules(scheme);
  AddKinds(scheme, kWrite, IsPlaceable, rules);
  AddKinds(scheme, {"bind", "fence"}, IsPool, rules);
  return rules;
}

// What IronCore gives to every poollet: bound to the identity of one pool, and only by an
// operator's word (`berth pool allow-legacy`).
std::vector<PolicyRule> LegacyRules(const meta::Scheme& scheme) {
  std::vector<PolicyRule> rules;
  const auto used_by_poollets = [](const meta::KindInfo& kind) {
    return kind.naming == meta::GroupNaming::kDomain && !IsQuota(kind);
  };
  AddKinds(scheme, kRead, used_by_poollets, rules);
  AddKinds(
      scheme,
      {"create", "delete", "patch", "update"},
      [&](const auto& kind) { return used_by_poollets(kind) && !IsClass(kind); },
      rules);
  RuleBuilder statuses(scheme);
  for (const meta::KindInfo* kind : scheme.kinds()) {
    if (kind->has_status && used_by_poollets(*kind)) statuses.Add(*kind, "status");
  }
  statuses.AppendTo(rules, {"get", "patch", "update"});
  AddKinds(scheme, {"create", "get", "list", "patch", "update", "watch"}, IsSecret, rules);
  rules.push_back({.verbs = {"create", "get", "list", "patch", "update", "watch"},
                   .api_groups = {"coordination.k8s.io"},
                   .resources = {"leases"}});
  rules.push_back({.verbs = {"create", "patch", "update"},
                   .api_groups = {"", "events.k8s.io"},
                   .resources = {"events"}});
  return rules;
}

PolicyRule Paths(Texts paths) { return {.verbs = {"get"}, .non_resource_urls = std::move(paths)}; }

}  // namespace

std::vector<DefaultRole> DefaultRoles(const meta::Scheme& scheme) {
  return {
      {"cluster-admin",
       {{.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}},
        {.verbs = {"*"}, .non_resource_urls = {"*"}}}},
      {"admin", AdminRules(scheme)},
      {"edit", EditRules(scheme)},
      {"view", ViewRules(scheme)},
      {"system:discovery",
       {Paths({"/api",
               "/api/*",
               "/apis",
               "/apis/*",
               "/healthz",
               "/healthz/*",
               "/livez",
               "/livez/*",
               "/openapi",
               "/openapi/*",
               "/readyz",
               "/readyz/*",
               "/version",
               "/version/"})}},
      {"system:basic-user",
       {{.verbs = {"create"},
         .api_groups = {"authorization.k8s.io"},
         .resources = {"selfsubjectaccessreviews", "selfsubjectrulesreviews"}},
        {.verbs = {"create"},
         .api_groups = {"authentication.k8s.io"},
         .resources = {"selfsubjectreviews"}}}},
      {"system:auth-delegator",
       {{.verbs = {"create"},
         .api_groups = {"authentication.k8s.io"},
         .resources = {"tokenreviews"}},
        {.verbs = {"create"},
         .api_groups = {"authorization.k8s.io"},
         .resources = {"subjectaccessreviews"}}}},
      {"system:public-info-viewer",
       {Paths({"/healthz",
               "/healthz/*",
               "/livez",
               "/livez/*",
               "/readyz",
               "/readyz/*",
               "/version",
               "/version/"})}},
      {"system:monitoring", {Paths({"/metrics", "/metrics/*"})}},
      {"berth:scheduler", PlacementRules(scheme)},
      {"berth:lifecycle", LifecycleRules(scheme)},
      {"berth:class-reader", ReaderRules(scheme, IsClass)},
      {"berth:pool-reader", ReaderRules(scheme, IsPool)},
      {"berth:legacy-poollet", LegacyRules(scheme)},
      {"berth:pool-bootstrapper",
       {{.verbs = {"create", "get", "list", "watch"},
         .api_groups = {"certificates.k8s.io"},
         .resources = {"certificatesigningrequests"}},
        {.verbs = {"create"},
         .api_groups = {"certificates.k8s.io"},
         .resources = {"certificatesigningrequests/machinepoolclient",
                       "certificatesigningrequests/volumepoolclient",
                       "certificatesigningrequests/bucketpoolclient"}}}},
  };
}

std::vector<DefaultBinding> DefaultBindings() {
  auto group = [](const char* name) { return Subject{.kind = SubjectKind::kGroup, .name = name}; };
  return {
      {"cluster-admin", {group("system:masters")}},
      {"system:discovery", {group("system:authenticated")}},
      {"system:basic-user", {group("system:authenticated")}},
      {"system:public-info-viewer",
       {group("system:authenticated"), group("system:unauthenticated")}},
      {"system:monitoring", {group("system:monitoring")}},
  };
}

std::optional<std::vector<PolicyRule>> CompleteRules(const std::vector<PolicyRule>& current,
                                                     const std::vector<PolicyRule>& wanted,
                                                     const meta::Scheme& scheme) {
  std::vector<PolicyRule> held = Canonical(current, scheme);
  std::vector<PolicyRule> completed = current;
  for (const auto& rule : Canonical(wanted, scheme)) {
    // Whole rules are added, not single rights: the role stays readable.
    auto missing = Uncovered(held, {rule});
    if (missing.ok() && missing->empty()) continue;
    completed.push_back(rule);
    held.push_back(rule);
  }
  if (completed.size() == current.size()) return std::nullopt;
  return completed;
}

}  // namespace berth::apiserver
