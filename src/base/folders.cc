// SPDX-License-Identifier: Apache-2.0
#include "base/folders.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>

#include "base/file_status.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

// Others may pass through, and see nothing.
constexpr mode_t kPassThrough = 0711;

// As the kernel decides: of the three only the first that fits counts.
bool MayEnter(const std::string& folder, const struct stat& seen, const FolderUser& user) {
  if (user.uid == 0) return true;
  if (getxattr(folder.c_str(), "system.posix_acl_access", nullptr, 0) > 0) return true;
  if (seen.st_uid == user.uid) return (seen.st_mode & S_IXUSR) != 0;
  const bool is_in_group = std::ranges::find(user.groups, seen.st_gid) != user.groups.end();
  return (seen.st_mode & (is_in_group ? S_IXGRP : S_IXOTH)) != 0;
}

}  // namespace

Status MakeOpenFolders(const std::string& path) {
  fs::path way;
  for (const auto& name : fs::path(path)) {
    way /= name;
    if (mkdir(way.c_str(), kPassThrough) == 0) {
      if (chmod(way.c_str(), kPassThrough) != 0) {
        return FileFailed("set the mode of", way.string());
      }
    } else if (errno != EEXIST) {
      return FileFailed("make folder", way.string());
    }
  }
  struct stat seen = {};
  if (stat(path.c_str(), &seen) != 0) return FileFailed("make folder", path);
  if (S_ISDIR(seen.st_mode)) return OkStatus();
  errno = ENOTDIR;
  return FileFailed("make folder", path);
}

std::string ClosedFolder(const std::string& path, const FolderUser& user) {
  fs::path way;
  for (const auto& name : fs::path(path).parent_path()) {
    way /= name;
    struct stat seen = {};
    if (stat(way.c_str(), &seen) != 0) return {};  // still to be made
    if (!MayEnter(way.string(), seen, user)) return way.string();
  }
  return {};
}

bool IsInMemory(const std::string& path) {
  struct statfs seen = {};
  fs::path way = path;
  while (statfs(way.c_str(), &seen) != 0) {
    if (errno != ENOENT || !way.has_relative_path()) return false;
    way = way.parent_path();
  }
  const auto kind = static_cast<uint32_t>(seen.f_type);
  return kind == TMPFS_MAGIC || kind == RAMFS_MAGIC;
}

}  // namespace berth
