// SPDX-License-Identifier: Apache-2.0
// The Authorizer says whether an identity may do what a request asks for, by RBAC: roles hold
// rules, bindings give roles to users and groups, and whatever no rule grants is denied. The group
// system:masters may do everything.
//
// Policy is indexed by subject and kept up to date by watch events; a check costs about a
// microsecond. API groups compare in canonical form on both sides, so an alias domain never grants
// more or less. Not safe for several threads: it belongs to the API server's loop.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/authz/policy.h"
#include "apiserver/authz/pool_authorizer.h"
#include "apiserver/identity.h"
#include "base/status.h"
#include "base/strings.h"
#include "meta/scheme.h"

namespace berth::apiserver {

struct Decision {
  bool allowed = false;
  std::string reason;  // RBAC: allowed by RoleBinding "b/default" of Role "r" to User "u"
};

class Authorizer {
 public:
  explicit Authorizer(const meta::Scheme& scheme) : scheme_(scheme) {}
  Authorizer(const Authorizer&) = delete;
  Authorizer& operator=(const Authorizer&) = delete;

  // Pools have rights beyond roles from now on. `pools` outlives the authorizer.
  void UsePools(const PoolAuthorizer& pools) { pools_ = &pools; }
  const PoolAuthorizer* pools() const { return pools_; }

  // `request.group` is canonical, as the router makes it.
  bool Allows(const Identity& identity, const RequestInfo& request) const;
  // Without the rights of pools.
  bool AllowsByRoles(const Identity& identity, const RequestInfo& request) const;
  // Ok, or Forbidden in Kubernetes' words.
  Status Check(const Identity& identity, const RequestInfo& request) const;
  // The same with the reason, for reviews.
  Decision Decide(const Identity& identity, const RequestInfo& request) const;

  // All rules that apply to the identity in a namespace, canonical; "" is the cluster.
  std::vector<PolicyRule> RulesOf(const Identity& identity, std::string_view namespace_) const;

  // Policy as it is now. A ClusterRole that aggregates grants at once what the roles that it
  // selects grant; nothing has to copy their rules first.
  void SetRole(const PolicyKey& key, RolePolicy policy);
  void SetRole(const PolicyKey& key, std::vector<PolicyRule> rules) {
    SetRole(key, RolePolicy{.rules = std::move(rules)});
  }
  void RemoveRole(const PolicyKey& key);
  void SetBinding(const PolicyKey& key, Binding binding);
  void RemoveBinding(const PolicyKey& key);
  // The canonical rules of a role with what it aggregates; null if there is none.
  const std::vector<PolicyRule>* FindRole(const PolicyKey& key) const;

  const meta::Scheme& scheme() const { return scheme_; }

 private:
  // A role, or the place where one would be: bindings may name roles that do not exist.
  struct RoleSlot {
    bool exists = false;
    RolePolicy policy;              // as given, rules canonical
    std::vector<PolicyRule> rules;  // with what it aggregates
    std::vector<CompiledRule> compiled;
  };
  struct BoundRole {
    PolicyKey key;  // of the binding
    Binding binding;
    std::shared_ptr<RoleSlot> role;
  };
  template <class T>
  using ByText = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;
  using BoundRoles = std::vector<const BoundRole*>;
  // Who is bound in one namespace, or in the cluster ("").
  struct ScopeIndex {
    ByText<BoundRoles> users;
    ByText<BoundRoles> groups;
  };
  struct Grant {
    const BoundRole* bound = nullptr;
    SubjectKind kind = SubjectKind::kUser;
    std::string_view subject;
  };

  // Calls visit(grant) for every binding that names the identity, until it returns true.
  template <class Visit>
  bool VisitGrants(const Identity& identity, std::string_view namespace_, Visit visit) const;
  template <class Visit>
  static bool VisitScope(const ScopeIndex& scope, const Identity& identity, Visit visit);
  bool FindGrant(const Identity& identity, const RequestInfo& request, Grant& grant) const;
  std::shared_ptr<RoleSlot> SlotFor(const PolicyKey& key);
  static void Compile(RoleSlot& slot);
  void Aggregate();
  void Index(const BoundRole& bound);
  void Unindex(const BoundRole& bound);

  const meta::Scheme& scheme_;
  const PoolAuthorizer* pools_ = nullptr;
  std::map<PolicyKey, std::shared_ptr<RoleSlot>> roles_;
  std::map<PolicyKey, std::unique_ptr<BoundRole>> bindings_;
  ByText<ScopeIndex> scopes_;
  size_t aggregating_ = 0;  // how many roles aggregate others
};

// User "x" cannot list resource "machines" in API group "compute.ironcore.dev" in the namespace
// "d".
Status ForbiddenStatus(const Identity& identity, const RequestInfo& request);

}  // namespace berth::apiserver
