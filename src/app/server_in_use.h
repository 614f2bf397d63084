// SPDX-License-Identifier: Apache-2.0
// Whether a server runs on a data folder, for commands that look at it from outside.
#pragma once

#include <string>

#include "base/result.h"

namespace berth::app {

// Whether a process has the embedded store of this folder open ("DATA_DIR/store").
bool IsStoreInUse(const std::string& store);
// Whether a server runs on this data folder, with whichever store.
bool IsServerRunning(const std::string& data_dir);

}  // namespace berth::app
