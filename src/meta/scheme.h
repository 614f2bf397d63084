// SPDX-License-Identifier: Apache-2.0
// The Scheme is the set of kinds that are served, and the domains under which groups of
// GroupNaming::kDomain appear. The first domain is canonical; the others are aliases of the same
// objects. Domains are advertised in the spelling that they are configured with and found in any.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "meta/kind.h"

namespace berth::meta {

// One group-version as discovery lists it.
struct ServedGroup {
  std::string group;    // "compute.OpenKCM.dev"; "" is the core group
  std::string version;  // "v1alpha1"
  bool is_alias = false;
  std::vector<const KindInfo*> kinds;
};

class Scheme {
 public:
  // `kinds` live for ever (they are constants). REQUIRES: at least one domain; no kind twice.
  Scheme(std::span<const KindInfo* const> kinds, std::vector<std::string> domains);
  Scheme(const Scheme&) = delete;
  Scheme& operator=(const Scheme&) = delete;

  const std::vector<std::string>& domains() const { return domains_; }
  std::span<const KindInfo* const> kinds() const { return kinds_; }
  // Every served group-version: fixed groups and canonical ones first, then the aliases.
  const std::vector<ServedGroup>& groups() const { return groups_; }

  // Null if nothing such is served. The group may be an alias in any spelling of its domain.
  const KindInfo* FindResource(std::string_view group,
                               std::string_view version,
                               std::string_view plural) const;
  const KindInfo* FindKind(std::string_view group,
                           std::string_view version,
                           std::string_view kind) const;
  // "compute.openkcm.dev" -> "compute.ironcore.dev"; a group that is not ours stays as it is.
  std::string CanonicalGroup(std::string_view group) const;
  // "compute.openkcm.dev" -> "compute.OpenKCM.dev": the spelling that discovery shows.
  std::string ServedSpelling(std::string_view group) const;
  // "compute.OpenKCM.dev/v1alpha1" -> "compute.ironcore.dev/v1alpha1"; "v1" stays.
  std::string CanonicalApiVersion(std::string_view api_version) const;

  // The group of a kind under the canonical domain, and its apiVersion there.
  std::string GroupOf(const KindInfo& kind) const;
  std::string ApiVersionOf(const KindInfo& kind) const;

  // What a person types: plural, singular, short name or kind, in any case, optionally ".group".
  // NotFound suggests the nearest word.
  Result<const KindInfo*> FindByWord(std::string_view word) const;

 private:
  // Splits "compute.OpenKCM.dev" into ("compute", domain index); false if the group has none of our
  // domains.
  bool SplitDomain(std::string_view group, std::string_view& short_group, size_t& domain) const;

  std::span<const KindInfo* const> kinds_;
  std::vector<std::string> domains_;
  std::vector<ServedGroup> groups_;
};

// "compute.ironcore.dev" and "v1alpha1" -> "compute.ironcore.dev/v1alpha1"; the core group has no
// slash.
std::string JoinApiVersion(std::string_view group, std::string_view version);
// The inverse: "v1" -> ("", "v1").
struct GroupVersion {
  std::string_view group;
  std::string_view version;
};
GroupVersion SplitApiVersion(std::string_view api_version);

}  // namespace berth::meta
