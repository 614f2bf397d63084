// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/known_kinds.h"

#include <string>
#include <vector>

#include "apis/registry.h"

namespace berth::cli {

const meta::Scheme& KnownKinds() {
  static const auto* const kScheme =
      new meta::Scheme(apis::AllKinds(), std::vector<std::string>{"ironcore.dev", "OpenKCM.dev"});
  return *kScheme;
}

const meta::KindInfo* FindKnownKind(const Resource& resource) {
  return KnownKinds().FindKind(resource.group, resource.version, resource.kind);
}

}  // namespace berth::cli
