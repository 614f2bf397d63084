// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/covers.h"

#include <fmt/core.h>

#include <algorithm>

namespace berth::apiserver {
namespace {

bool Has(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool HasAll(const std::vector<std::string>& list, const std::vector<std::string>& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& text) { return Has(list, text); });
}

bool HasAllOrAny(const std::vector<std::string>& list, const std::vector<std::string>& wanted) {
  return Has(list, "*") || HasAll(list, wanted);
}

bool CoversResource(const std::vector<std::string>& held, const std::string& wanted) {
  if (Has(held, wanted)) return true;
  const size_t slash = wanted.find('/');
  return slash != std::string::npos && Has(held, "*" + wanted.substr(slash));
}

bool CoversUrl(const std::vector<std::string>& held, const std::string& wanted) {
  return std::ranges::any_of(held, [&](std::string_view url) {
    if (url == wanted || url == "*") return true;
    if (!url.ends_with('*')) return false;
    while (url.ends_with('*')) url.remove_suffix(1);
    return wanted.starts_with(url);
  });
}

bool Covers(const PolicyRule& held, const PolicyRule& wanted) {
  const bool names =
      wanted.resource_names.empty()
          ? held.resource_names.empty()
          : held.resource_names.empty() || HasAll(held.resource_names, wanted.resource_names);
  auto covers_resource = [&](const auto& text) { return CoversResource(held.resources, text); };
  auto covers_url = [&](const auto& text) { return CoversUrl(held.non_resource_urls, text); };
  return names && HasAllOrAny(held.verbs, wanted.verbs) &&
         HasAllOrAny(held.api_groups, wanted.api_groups) &&
         (Has(held.resources, "*") || std::ranges::all_of(wanted.resources, covers_resource)) &&
         std::ranges::all_of(wanted.non_resource_urls, covers_url);
}

bool AnyCovers(const std::vector<PolicyRule>& held, const PolicyRule& wanted) {
  return std::ranges::any_of(held, [&](const auto& rule) { return Covers(rule, wanted); });
}

size_t CountRights(const PolicyRule& rule) {
  // Products of list lengths overflow long before an object of 1 MiB ends, so each step is capped.
  auto times = [](size_t a, size_t b) {
    return std::min(a, kRightsMax + 1) * std::min(b, kRightsMax + 1);
  };
  const size_t per_name = std::max<size_t>(rule.resource_names.size(), 1);
  const size_t resources = times(times(rule.api_groups.size(), rule.resources.size()), per_name);
  return times(resources, rule.verbs.size()) +
         times(rule.non_resource_urls.size(), rule.verbs.size());
}

// Calls visit with every single right of a rule.
template <class Visit>
void BreakDown(const PolicyRule& rule, Visit visit) {
  for (const auto& verb : rule.verbs) {
    for (const auto& group : rule.api_groups) {
      for (const auto& resource : rule.resources) {
        PolicyRule right{.verbs = {verb}, .api_groups = {group}, .resources = {resource}};
        if (rule.resource_names.empty()) visit(right);
        for (const auto& name : rule.resource_names) {
          right.resource_names = {name};
          visit(right);
        }
      }
    }
    for (const auto& url : rule.non_resource_urls) {
      visit(PolicyRule{.verbs = {verb}, .non_resource_urls = {url}});
    }
  }
}

}  // namespace

Result<std::vector<PolicyRule>> Uncovered(const std::vector<PolicyRule>& held,
                                          const std::vector<PolicyRule>& wanted) {
  std::vector<PolicyRule> missing;
  size_t rights = 0;
  for (const auto& rule : wanted) {
    // Most rules are covered whole; only the others are worth breaking down.
    if (AnyCovers(held, rule)) continue;
    rights += CountRights(rule);
    if (rights > kRightsMax) {
      return Status(Reason::kRequestTooLarge,
                    fmt::format("the rules spell out more than {} rights", kRightsMax));
    }
    BreakDown(rule, [&](const PolicyRule& right) {
      if (!AnyCovers(held, right)) missing.push_back(right);
    });
  }
  return missing;
}

}  // namespace berth::apiserver
