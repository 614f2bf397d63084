// SPDX-License-Identifier: Apache-2.0
#include "cli/api/known_kinds.h"

#include <string>
#include <vector>

#include "apis/registry.h"

namespace berth::cli {

const meta::Scheme& KnownKinds() {
  static const auto* const kScheme =
      new meta::Scheme(apis::AllKinds(), std::vector<std::string>{"ironcore.dev", "OpenKCM.dev"});
  return *kScheme;
}

const meta::KindInfo* FindKnownKind(std::string_view word) {
  const auto found = KnownKinds().FindByWord(word);
  return found.ok() ? *found : nullptr;
}

const meta::KindInfo* FindKnownKind(const Resource& resource) {
  return KnownKinds().FindKind(resource.group, resource.version, resource.kind);
}

}  // namespace berth::cli
