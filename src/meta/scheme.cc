// SPDX-License-Identifier: Apache-2.0
#include "meta/scheme.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"

namespace berth::meta {
namespace {

ServedGroup& GroupFor(std::vector<ServedGroup>& groups,
                      std::string group,
                      std::string_view version,
                      bool is_alias) {
  for (auto& served : groups) {
    if (served.group == group && served.version == version) return served;
  }
  groups.push_back({.group = std::move(group),
                    .version = std::string(version),
                    .is_alias = is_alias,
                    .kinds = {}});
  return groups.back();
}

bool HasShortName(const KindInfo& kind, std::string_view word) {
  return std::ranges::find(kind.short_names, word) != kind.short_names.end();
}

}  // namespace

std::string JoinApiVersion(std::string_view group, std::string_view version) {
  if (group.empty()) return std::string(version);
  std::string text(group);
  text += '/';
  text += version;
  return text;
}

GroupVersion SplitApiVersion(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return {.group = {}, .version = api_version};
  return {.group = api_version.substr(0, slash), .version = api_version.substr(slash + 1)};
}

Scheme::Scheme(std::span<const KindInfo* const> kinds, std::vector<std::string> domains)
    : kinds_(kinds), domains_(std::move(domains)) {
  CHECK(!domains_.empty()) << "a scheme needs a domain";
  for (size_t domain = 0; domain < domains_.size(); ++domain) {
    for (const KindInfo* kind : kinds_) {
      if (kind->naming == GroupNaming::kFixed) {
        if (domain == 0) {
          GroupFor(groups_, std::string(kind->group), kind->version, false).kinds.push_back(kind);
        }
        continue;
      }
      std::string group = std::string(kind->group) + '.' + domains_[domain];
      GroupFor(groups_, std::move(group), kind->version, domain > 0).kinds.push_back(kind);
    }
  }
}

bool Scheme::SplitDomain(std::string_view group,
                         std::string_view& short_group,
                         size_t& domain) const {
  for (size_t i = 0; i < domains_.size(); ++i) {
    const std::string_view name = domains_[i];
    if (group.size() <= name.size() + 1) continue;
    const size_t dot = group.size() - name.size() - 1;
    if (group[dot] != '.' || !EqualsIgnoreCase(group.substr(dot + 1), name)) continue;
    short_group = group.substr(0, dot);
    domain = i;
    return true;
  }
  return false;
}

const KindInfo* Scheme::FindResource(std::string_view group,
                                     std::string_view version,
                                     std::string_view plural) const {
  std::string_view short_group = group;
  size_t domain = 0;
  const bool in_domain = SplitDomain(group, short_group, domain);
  for (const KindInfo* kind : kinds_) {
    if ((kind->naming == GroupNaming::kDomain) == in_domain && kind->group == short_group &&
        kind->version == version && kind->plural == plural) {
      return kind;
    }
  }
  return nullptr;
}

const KindInfo* Scheme::FindKind(std::string_view group,
                                 std::string_view version,
                                 std::string_view name) const {
  std::string_view short_group = group;
  size_t domain = 0;
  const bool in_domain = SplitDomain(group, short_group, domain);
  for (const KindInfo* kind : kinds_) {
    if ((kind->naming == GroupNaming::kDomain) == in_domain && kind->group == short_group &&
        kind->version == version && kind->kind == name) {
      return kind;
    }
  }
  return nullptr;
}

std::string Scheme::CanonicalGroup(std::string_view group) const {
  std::string_view short_group;
  size_t domain = 0;
  if (!SplitDomain(group, short_group, domain)) return std::string(group);
  return ToLower(short_group) + '.' + domains_[0];
}

std::string Scheme::ServedSpelling(std::string_view group) const {
  std::string_view short_group;
  size_t domain = 0;
  if (!SplitDomain(group, short_group, domain)) return std::string(group);
  return std::string(short_group) + '.' + domains_[domain];
}

std::string Scheme::CanonicalApiVersion(std::string_view api_version) const {
  const auto [group, version] = SplitApiVersion(api_version);
  return JoinApiVersion(CanonicalGroup(group), version);
}

std::string Scheme::GroupOf(const KindInfo& kind) const {
  if (kind.naming == GroupNaming::kFixed) return std::string(kind.group);
  return std::string(kind.group) + '.' + domains_[0];
}

std::string Scheme::ApiVersionOf(const KindInfo& kind) const {
  return JoinApiVersion(GroupOf(kind), kind.version);
}

Result<const KindInfo*> Scheme::FindByWord(std::string_view word) const {
  const size_t dot = word.find('.');
  const std::string name = ToLower(word.substr(0, dot));
  const std::string_view group =
      dot == std::string_view::npos ? std::string_view() : word.substr(dot + 1);
  std::vector<std::string> words;
  for (const KindInfo* kind : kinds_) {
    words.emplace_back(kind->plural);
    words.emplace_back(kind->singular);
    if (!group.empty() && !EqualsIgnoreCase(CanonicalGroup(group), GroupOf(*kind)) &&
        group != kind->group)
      continue;
    if (name == kind->plural || name == kind->singular || name == ToLower(kind->kind) ||
        HasShortName(*kind, name)) {
      return kind;
    }
  }
  std::string message = "the server does not have a resource type " + Quote(word);
  if (const auto nearest = Nearest(name, words))
    message += ", did you mean " + Quote(*nearest) + "?";
  return NotFound(std::move(message));
}

}  // namespace berth::meta
