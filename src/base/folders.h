// SPDX-License-Identifier: Apache-2.0
// Folders that somebody else has to come through, and folders that must not be on a disk. All
// block.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace berth {

// Makes the folder and those above it that are missing. What is made may be passed through but not
// listed by others (0711), whatever the umask says; what is there already stays as it is.
Status MakeOpenFolders(const std::string& path);

struct FolderUser {
  uid_t uid = 0;
  std::vector<gid_t> groups;
};

// The first folder on the way to `path`, which is not one of them, that the user may not enter. ""
// if there is none, or if the way ends before. A folder with an access list counts as open: what is
// on the list is not read.
std::string ClosedFolder(const std::string& path, const FolderUser& user);

// Whether a reboot empties the folder and no file in it is written to a disk, but for swap (tmpfs,
// ramfs). One that is missing is as the folder in which it would be made.
bool IsInMemory(const std::string& path);

}  // namespace berth
