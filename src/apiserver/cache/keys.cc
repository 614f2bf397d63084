// SPDX-License-Identifier: Apache-2.0
#include "apiserver/cache/keys.h"

namespace berth::apiserver {

const meta::KindInfo& StoredKind(const meta::KindInfo& kind) {
  return kind.view == nullptr ? kind : *kind.view->stored;
}

std::string KeyPrefix(const meta::KindInfo& kind) {
  const meta::KindInfo& stored = StoredKind(kind);
  std::string prefix(kRegistryPrefix);
  // "core" below a domain and the group "" must not meet: both have kinds of their own, and one of
  // them could get a plural that the other has.
  if (stored.naming == meta::GroupNaming::kDomain && stored.group == "core") {
    prefix += "core.domain";
  } else {
    prefix += stored.group.empty() ? "core" : stored.group;
  }
  prefix += '/';
  prefix += stored.plural;
  prefix += '/';
  return prefix;
}

std::string KeySuffix(const client::ObjectKey& key) {
  return key.namespace_.empty() ? key.name : key.namespace_ + '/' + key.name;
}

std::string StoreKey(const meta::KindInfo& kind, const client::ObjectKey& key) {
  return KeyPrefix(kind) + KeySuffix(key);
}

client::ObjectKey ParseKeySuffix(std::string_view suffix) {
  const size_t slash = suffix.find('/');
  if (slash == std::string_view::npos) return {.namespace_ = "", .name = std::string(suffix)};
  return {.namespace_ = std::string(suffix.substr(0, slash)),
          .name = std::string(suffix.substr(slash + 1))};
}

}  // namespace berth::apiserver
