// SPDX-License-Identifier: Apache-2.0
// How calls on files fail, in our words, and how what they wrote becomes durable. All block.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace berth {

// From errno: TooManyRequests if the disk is full, else Internal.
Status FileFailed(std::string_view doing, const std::string& path);
// An error of somebody else whose text says that the disk is full, as TooManyRequests.
Status AsFullDisk(const Status& status);

Status SyncFile(const std::string& path);
Status SyncFolder(const std::string& path);

}  // namespace berth
