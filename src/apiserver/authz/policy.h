// SPDX-License-Identifier: Apache-2.0
// RBAC policy as values: rules, subjects, bindings, and what a rule matches. The meaning is exactly
// Kubernetes'.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apis/k8s/role.h"
#include "apiserver/identity.h"
#include "meta/label_selector.h"
#include "meta/scheme.h"

namespace berth::apiserver {

using apis::k8s::kRbacGroup;
using apis::k8s::PolicyRule;

enum class SubjectKind : uint8_t {
  kUser,
  kGroup,
  kServiceAccount,  // accepted, but nobody is one: Berth has tokens instead
};

struct Subject {
  SubjectKind kind = SubjectKind::kUser;
  std::string name;
  std::string namespace_;  // service accounts
  bool operator==(const Subject&) const = default;
};

// Names a Role or RoleBinding; an empty namespace means ClusterRole or ClusterRoleBinding.
struct PolicyKey {
  std::string namespace_;
  std::string name;
  auto operator<=>(const PolicyKey&) const = default;
};

// A RoleBinding or ClusterRoleBinding.
struct Binding {
  PolicyKey role;
  std::vector<Subject> subjects;
};

// What a Role or ClusterRole grants.
struct RolePolicy {
  std::vector<PolicyRule> rules;
  // ClusterRoles only: others select this one by its labels, and it grants what those that it
  // selects do.
  std::map<std::string, std::string> labels;
  std::vector<meta::LabelSelector> aggregates;
};

// The rule with every API group in its canonical form, without repetitions.
PolicyRule Canonical(const PolicyRule& rule, const meta::Scheme& scheme);
std::vector<PolicyRule> Canonical(const std::vector<PolicyRule>& rules, const meta::Scheme& scheme);

// A canonical rule made ready to be asked often.
class CompiledRule {
 public:
  explicit CompiledRule(const PolicyRule& rule);
  // `verb_bit` is VerbBit(request.verb): the caller computes it once for many rules.
  bool Allows(const RequestInfo& request, uint32_t verb_bit) const;
  static uint32_t VerbBit(std::string_view verb);

 private:
  bool AllowsVerb(std::string_view verb, uint32_t bit) const;
  bool AllowsGroup(std::string_view group) const;
  bool AllowsResource(std::string_view resource, std::string_view subresource) const;
  bool AllowsName(std::string_view name) const;
  bool AllowsPath(std::string_view path) const;

  uint32_t verb_bits_ = 0;
  bool any_group_ = false;
  bool any_resource_ = false;
  std::vector<std::string> other_verbs_;  // those without a bit
  std::vector<std::string> groups_;
  std::vector<std::string> resources_;
  std::vector<std::string> names_;
  std::vector<std::string> urls_;
};

// {APIGroups:["compute.ironcore.dev"], Resources:["machines"], Verbs:["get"]}, as Kubernetes prints
// rules in messages.
std::string FormatRule(const PolicyRule& rule);

}  // namespace berth::apiserver
