// SPDX-License-Identifier: Apache-2.0
#include "apiserver/identity.h"

#include <algorithm>

namespace berth::apiserver {

bool Identity::InGroup(std::string_view group) const {
  return std::ranges::find(groups, group) != groups.end();
}

}  // namespace berth::apiserver
