// SPDX-License-Identifier: Apache-2.0
// A list of revocations is a text that a server's revocations are kept in beside its backups:
// `berth certificate revocations` prints it, `berth restore --revoked` reads it. One per line, in
// any order:
//
//   host NAME TIME          everything that was issued to the host until then is void
//   host-serial HEX TIME    one certificate of a host, whatever the time
//   user NAME TIME          the same for people and programs
//   userhex HEX TIME        the bytes of a name that has other characters
//   user-serial HEX TIME
//
// TIME is as in RFC 3339, or "always": what is issued later is void, too. Empty lines and what
// begins with '#' say nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace berth::pki {

// As large as one of the two records can be that it goes into.
inline constexpr size_t kRevocationListBytesMax = 1024 * 1024;
inline constexpr size_t kRevocationLineMax = 512;
// Of hosts, and of users whose name is written as it is.
inline constexpr size_t kRevokedNameMax = 64;
// Of other users: two digits for each byte behind "userhex." are the key of a ConfigMap's entry,
// (253 - 8) / 2. Pools that speak the API have long names.
inline constexpr size_t kRevokedUserMax = 122;

enum class RevokedKind : uint8_t { kHost, kHostSerial, kUser, kUserHex, kUserSerial };

struct Revocation {
  RevokedKind kind = RevokedKind::kHost;
  std::string name;
  std::optional<WallTime> until;  // whole seconds; none: always
  bool operator==(const Revocation&) const = default;
};

// The ConfigMap of berth-system that it is an entry of: "revoked-hosts", "revoked-users".
std::string_view RecordOf(RevokedKind kind);
// Key and value of that entry: "host.rack-1", "2026-08-22T10:00:00Z".
std::string EntryOf(const Revocation& revocation);
std::string ValueOf(const Revocation& revocation);
// "user"
std::string_view WordOf(RevokedKind kind);
// nullopt if such an entry revokes nothing. A time that cannot be read is "always", as it is for
// those who look at the record.
std::optional<Revocation> RevocationOf(std::string_view record,
                                       std::string_view entry,
                                       std::string_view value);

// One line, with its end.
std::string FormatRevocation(const Revocation& revocation);
// Lines without a time revoke until `now`. BadRequest names the first line that is wrong, and what
// of it; RequestTooLarge says how large it may be.
Result<std::vector<Revocation>> ParseRevocations(std::string_view text, WallTime now);

}  // namespace berth::pki
