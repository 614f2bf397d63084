// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/policy.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace berth::apiserver {
namespace {

constexpr std::array<std::string_view, 14> kVerbs = {"get",
                                                     "list",
                                                     "watch",
                                                     "create",
                                                     "update",
                                                     "patch",
                                                     "delete",
                                                     "deletecollection",
                                                     "impersonate",
                                                     "bind",
                                                     "escalate",
                                                     "use",
                                                     "post",
                                                     "put"};
constexpr uint32_t kAllVerbs = ~uint32_t{0};

bool Contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

std::string FormatList(const std::vector<std::string>& list) {
  std::string text = "[";
  for (const auto& item : list) {
    if (text.size() > 1) text += ' ';
    text += Quote(item);
  }
  return text + "]";
}

}  // namespace

PolicyRule Canonical(const PolicyRule& rule, const meta::Scheme& scheme) {
  PolicyRule canonical = rule;
  canonical.api_groups.clear();
  for (const auto& group : rule.api_groups) {
    std::string name = scheme.CanonicalGroup(group);
    if (!Contains(canonical.api_groups, name)) canonical.api_groups.push_back(std::move(name));
  }
  return canonical;
}

std::vector<PolicyRule> Canonical(const std::vector<PolicyRule>& rules,
                                  const meta::Scheme& scheme) {
  std::vector<PolicyRule> canonical;
  canonical.reserve(rules.size());
  for (const auto& rule : rules) canonical.push_back(Canonical(rule, scheme));
  return canonical;
}

CompiledRule::CompiledRule(const PolicyRule& rule)
    : any_group_(Contains(rule.api_groups, "*")),
      any_resource_(Contains(rule.resources, "*")),
      groups_(rule.api_groups),
      resources_(rule.resources),
      names_(rule.resource_names),
      urls_(rule.non_resource_urls) {
  for (const auto& verb : rule.verbs) {
    const uint32_t bit = verb == "*" ? kAllVerbs : VerbBit(verb);
    verb_bits_ |= bit;
    if (bit == 0) other_verbs_.push_back(verb);
  }
}

uint32_t CompiledRule::VerbBit(std::string_view verb) {
  for (size_t i = 0; i < kVerbs.size(); ++i) {
    if (kVerbs[i] == verb) return uint32_t{1} << i;
  }
  return 0;
}

bool CompiledRule::Allows(const RequestInfo& request, uint32_t verb_bit) const {
  if (!AllowsVerb(request.verb, verb_bit)) return false;
  if (!request.is_resource) return AllowsPath(request.path);
  return AllowsGroup(request.group) && AllowsResource(request.resource, request.subresource) &&
         AllowsName(request.name);
}

bool CompiledRule::AllowsVerb(std::string_view verb, uint32_t bit) const {
  if (bit != 0) return (verb_bits_ & bit) != 0;
  return verb_bits_ == kAllVerbs || Contains(other_verbs_, verb);
}

bool CompiledRule::AllowsGroup(std::string_view group) const {
  return any_group_ || Contains(groups_, group);
}

bool CompiledRule::AllowsResource(std::string_view resource, std::string_view subresource) const {
  if (any_resource_) return true;
  for (std::string_view allowed : resources_) {
    if (subresource.empty()) {
      if (allowed == resource) return true;
      continue;
    }
    // "machines/status" or "*/status", compared in place of gluing the request's parts together.
    const size_t slash = allowed.size() - std::min(allowed.size(), subresource.size() + 1);
    if (!allowed.ends_with(subresource) || slash == 0 || allowed[slash] != '/') continue;
    const std::string_view before = allowed.substr(0, slash);
    if (before == resource || before == "*") return true;
  }
  return false;
}

bool CompiledRule::AllowsName(std::string_view name) const {
  return names_.empty() || Contains(names_, name);
}

bool CompiledRule::AllowsPath(std::string_view path) const {
  for (std::string_view url : urls_) {
    if (url == path || url == "*") return true;
    if (!url.ends_with('*')) continue;
    while (url.ends_with('*')) url.remove_suffix(1);
    if (path.starts_with(url)) return true;
  }
  return false;
}

std::string FormatRule(const PolicyRule& rule) {
  std::string text = "{";
  auto add = [&text](std::string_view field, const std::vector<std::string>& list) {
    if (list.empty()) return;
    if (text.size() > 1) text += ", ";
    text += field;
    text += ':';
    text += FormatList(list);
  };
  add("APIGroups", rule.api_groups);
  add("Resources", rule.resources);
  add("ResourceNames", rule.resource_names);
  add("NonResourceURLs", rule.non_resource_urls);
  add("Verbs", rule.verbs);
  return text + "}";
}

}  // namespace berth::apiserver
