// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/guest_user.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <array>

#include "base/file_status.h"
#include "base/strings.h"

namespace berth::runtime {

Result<GuestUser> GuestUserNamed(const std::string& name) {
  std::array<char, 4096> buffer{};
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return NotFound("user " + Quote(name) + " does not exist");
  }
  return GuestUser{.uid = found->pw_uid, .gid = found->pw_gid};
}

std::vector<gid_t> GroupsOf(const std::string& name, const GuestUser& user) {
  constexpr int kGroupsMax = 1024;  // no user of a daemon has so many
  std::vector<gid_t> groups(kGroupsMax);
  int count = kGroupsMax;
  if (getgrouplist(name.c_str(), user.gid, groups.data(), &count) < 0) count = kGroupsMax;
  groups.resize(static_cast<size_t>(count));
  return groups;
}

Status GiveTo(const GuestUser& user, const std::string& path) {
  if (lchown(path.c_str(), user.uid, user.gid) == 0) return OkStatus();
  return FileFailed("give away", path);
}

}  // namespace berth::runtime
