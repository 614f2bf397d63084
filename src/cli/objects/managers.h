// SPDX-License-Identifier: Apache-2.0
// metadata.managedFields is bookkeeping for server-side apply, longer than most objects.
#pragma once

#include "meta/value.h"

namespace berth::cli {

void HideManagers(meta::Value& object);

}  // namespace berth::cli
