// SPDX-License-Identifier: Apache-2.0
// Where objects lie in the store: /registry/<group>/<plural>/<namespace>/<name>, without the
// namespace for cluster-scoped kinds. The group is the short one ("compute"), so that a change of
// domain moves nothing; the core group is "core". Kinds that are views of another have no keys of
// their own.
#pragma once

#include <string>
#include <string_view>

#include "client/client.h"
#include "meta/kind.h"

namespace berth::apiserver {

constexpr std::string_view kRegistryPrefix = "/registry/";

// The kind whose objects are kept for `kind`: itself, or what it is a view of.
const meta::KindInfo& StoredKind(const meta::KindInfo& kind);

// "/registry/compute/machines/".
std::string KeyPrefix(const meta::KindInfo& kind);
// What follows the prefix: "default/web-1", "web-1" without a namespace.
std::string KeySuffix(const client::ObjectKey& key);
std::string StoreKey(const meta::KindInfo& kind, const client::ObjectKey& key);
// The inverse of KeySuffix.
client::ObjectKey ParseKeySuffix(std::string_view suffix);

}  // namespace berth::apiserver
