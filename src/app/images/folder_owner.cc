// SPDX-License-Identifier: Apache-2.0
#include "app/images/folder_owner.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file_status.h"

namespace berth::app {

Status BecomeOwnerOf(const std::string& folder) {
  if (geteuid() != 0) return OkStatus();
  std::filesystem::path path = folder;
  struct stat seen = {};
  while (stat(path.c_str(), &seen) != 0) {
    if (errno != ENOENT || path == path.parent_path()) return FileFailed("look at", path);
    path = path.parent_path();
  }
  if (seen.st_uid == 0) return OkStatus();
  const passwd* owner = getpwuid(seen.st_uid);
  const gid_t group = owner == nullptr ? seen.st_gid : owner->pw_gid;
  const bool has_groups = owner == nullptr ? setgroups(0, nullptr) == 0
                                           : initgroups(owner->pw_name, owner->pw_gid) == 0;
  if (!has_groups || setresgid(group, group, group) != 0 ||
      setresuid(seen.st_uid, seen.st_uid, seen.st_uid) != 0) {
    return FileFailed("become the owner of", path);
  }
  return OkStatus();
}

}  // namespace berth::app
