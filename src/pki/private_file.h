// SPDX-License-Identifier: Apache-2.0
// Files that only their owner may read: keys, kubeconfigs.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::pki {

// Makes the folder (and those above it) if it is missing; afterwards only its owner may enter it.
Status EnsurePrivateFolder(const std::string& path);

// Replaces the file as a whole, mode 0600, durable on return. After a crash at any moment the file
// is the old or the new one.
Status WritePrivateFile(const std::string& path, std::string_view text);

// NotFound if there is no such file. Forbidden if it is not a plain file or if group or others may
// read it: what it holds has to be seen as known to them.
Result<std::string> ReadPrivateFile(const std::string& path);

}  // namespace berth::pki
