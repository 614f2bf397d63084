// SPDX-License-Identifier: Apache-2.0
// Which people's certificates are void: the ConfigMap berth-system/revoked-users. Its entries are
//
//   user.NAME       everything that was issued to the user until the time that is its value
//   userhex.HEX     the same, for names that are no key of a ConfigMap: their bytes in hexadecimal
//   serial.HEX      one certificate, whatever the value
//
// A pool in API mode has as many names as there are domains and spellings of them: what is entered
// under one counts for all.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/time.h"

namespace berth::apiserver {

inline constexpr std::string_view kRevokedUsersRecord = "revoked-users";

class RevokedUsers {
 public:
  RevokedUsers() = default;
  // Times that cannot be read revoke for good: a typing error must not let anybody in.
  explicit RevokedUsers(const std::map<std::string, std::string>& entries);

  // Whether a certificate with this serial, issued at `issued` to this user, is void.
  bool Covers(std::string_view user, std::string_view serial, WallTime issued) const;
  size_t size() const { return users_.size() + serials_.size(); }

 private:
  // By client::IdentityOf; void if issued by then.
  std::map<std::string, WallTime, std::less<>> users_;
  std::map<std::string, WallTime, std::less<>> serials_;
};

}  // namespace berth::apiserver
