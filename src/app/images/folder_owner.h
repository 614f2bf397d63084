// SPDX-License-Identifier: Apache-2.0
// In whose name a folder of images is looked after.
#pragma once

#include <string>

#include "base/status.h"

namespace berth::app {

// Root becomes the owner of the folder, for good: what it writes there belongs to whoever uses it,
// and what that user has put there leads nowhere else. A folder that is still to be made belongs to
// the owner of the one that it is made in. Nobody else changes. REQUIRES: one thread.
Status BecomeOwnerOf(const std::string& folder);

}  // namespace berth::app
