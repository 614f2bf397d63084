// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/managers.h"

namespace berth::cli {

void HideManagers(meta::Value& object) {
  if (meta::Value* metadata = object.Find("metadata")) metadata->Remove("managedFields");
}

}  // namespace berth::cli
