// SPDX-License-Identifier: Apache-2.0
#include "client/certificates/pool_names.h"

#include <algorithm>

#include "apis/placement.h"
#include "base/strings.h"

namespace berth::client {
namespace {

constexpr std::string_view kSystem = ":system:";

// "compute.ironcore.dev:system:machinepools" -> ("compute.ironcore.dev", "machinepools").
struct Parts {
  std::string_view group;
  std::string_view rest;
};
std::optional<Parts> Split(std::string_view word) {
  const size_t at = word.find(kSystem);
  if (at == word.npos) return std::nullopt;
  return Parts{.group = word.substr(0, at), .rest = word.substr(at + kSystem.size())};
}

bool IsGroupOf(const meta::Scheme& scheme, const meta::KindInfo& kind, std::string_view group) {
  return scheme.CanonicalGroup(group) == scheme.GroupOf(kind);
}

}  // namespace

bool IsPoolWord(std::string_view word) { return word.find(kSystem) != word.npos; }

// Whatever the domain: a server may have others tomorrow.
std::string IdentityOf(std::string_view user) {
  const auto parts = Split(user);
  const size_t dot = parts ? parts->group.find('.') : user.npos;
  if (dot == user.npos) return std::string(user);
  return ToLower(parts->group.substr(0, dot)) + ".*" + std::string(kSystem) +
         std::string(parts->rest);
}

std::optional<PoolName> PoolNameOf(const meta::Scheme& scheme,
                                   std::string_view user,
                                   std::span<const std::string> groups) {
  const auto parts = Split(user);
  if (!parts) return std::nullopt;
  const size_t colon = parts->rest.find(':');
  if (colon == parts->rest.npos || colon + 1 == parts->rest.size()) return std::nullopt;
  const std::string_view singular = parts->rest.substr(0, colon);
  const auto kind = std::ranges::find_if(scheme.kinds(), [&](const meta::KindInfo* candidate) {
    return apis::IsPool(*candidate) && candidate->singular == singular &&
           IsGroupOf(scheme, *candidate, parts->group);
  });
  if (kind == scheme.kinds().end()) return std::nullopt;
  const bool in_group = std::ranges::any_of(groups, [&](const std::string& word) {
    const auto group = Split(word);
    return group && group->rest == (*kind)->plural && IsGroupOf(scheme, **kind, group->group);
  });
  if (!in_group) return std::nullopt;
  return PoolName{.pool_kind = *kind, .pool = std::string(parts->rest.substr(colon + 1))};
}

std::string PoolUser(const meta::Scheme& scheme,
                     const meta::KindInfo& pool_kind,
                     std::string_view pool) {
  return scheme.GroupOf(pool_kind) + std::string(kSystem) + std::string(pool_kind.singular) + ':' +
         std::string(pool);
}

std::string PoolGroup(const meta::Scheme& scheme, const meta::KindInfo& pool_kind) {
  return scheme.GroupOf(pool_kind) + std::string(kSystem) + std::string(pool_kind.plural);
}

}  // namespace berth::client
