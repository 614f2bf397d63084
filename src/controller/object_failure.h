// SPDX-License-Identifier: Apache-2.0
// An object failure is one that another object in its place would not have: who works on many goes
// on with the others. A store that does not answer fails for all of them.
#pragma once

#include "base/status.h"

namespace berth::controller {

// It is not valid, cannot be read, or must not be changed so.
inline bool IsObjectFailure(const Status& status) {
  return status.Is(Reason::kInvalid) || status.Is(Reason::kBadRequest) ||
         status.Is(Reason::kForbidden) || status.Is(Reason::kInternal);
}

}  // namespace berth::controller
