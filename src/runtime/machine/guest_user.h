// SPDX-License-Identifier: Apache-2.0
// Who QEMU is where a root runs guests: another user, who may do less.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace berth::runtime {

struct GuestUser {
  uid_t uid = 0;
  gid_t gid = 0;
};

// NotFound names the user. Blocks.
Result<GuestUser> GuestUserNamed(const std::string& name);
// All groups that it is in when it runs QEMU. Blocks.
std::vector<gid_t> GroupsOf(const std::string& name, const GuestUser& user);
// The file becomes that user's. REQUIRES: we are root.
Status GiveTo(const GuestUser& user, const std::string& path);

}  // namespace berth::runtime
