// SPDX-License-Identifier: Apache-2.0
// Join tokens: how a host proves that an operator wants it, once. A token is
//
//   berth1.<ca>.<id>.<secret>    ca: hexadecimal SHA-256 of the authority's certificate, which the
//                                host compares before it sends anything; id: 10 letters and digits;
//                                secret: 43 characters, 32 random bytes
//
// and lies in the store as the Secret berth-system/join-token-<id> of type berth.dev/join-token,
// with its hash in place of its text. Deleting the Secret revokes the token. What the host may be
// is decided here, by the operator, and not by the host.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pki/entropy.h"
#include "pki/token.h"

namespace berth::pki {

inline constexpr std::string_view kJoinTokenSecretType = "berth.dev/join-token";
inline constexpr std::string_view kJoinTokenNamePrefix = "join-token-";
inline constexpr Duration kJoinTokenLifetime = Duration::Hours(1);

enum class HostReplacement : uint8_t {
  kRefused,  // a name that has joined stays with the key that it joined with
  kAllowed,  // the token's host takes the name over: new hardware for an old host
};

// What a token allows its host to be.
struct JoinGrant {
  std::string host_pattern = "*";  // of its name; "*" stands for any characters
  std::string pool_pattern = "*";  // of the names of its pools
  std::vector<std::string> pool_kinds = {"MachinePool", "VolumePool", "BucketPool"};
  std::map<std::string, std::string> labels;  // of its pools
  std::vector<std::string> taints;            // "key=value:Effect" or "key:Effect"
  std::map<std::string, std::string> limits;  // of each pool: resource to quantity
  HostReplacement replacement = HostReplacement::kRefused;
  bool operator==(const JoinGrant&) const = default;
};

// What is known about a token; not a secret.
struct JoinRecord {
  std::string id;
  std::string hash;  // hexadecimal SHA-256 of the whole token
  JoinGrant grant;
  WallTime expires;
  uint64_t incarnation = 0;  // of the cluster when it was made; a restore voids it
  // Of the one who used it; "" while it is unused.
  std::string redeemed_key;
  std::string redeemed_host;
};

// BadRequest for a grant with a pattern that no name matches, an unknown kind of pool, a label or
// taint that no pool can have, or a limit that is no amount.
Status CheckGrant(const JoinGrant& grant);

// A new token for a cluster whose authority's certificate is `authority_pem`. BadRequest for a
// grant that CheckGrant refuses, and for a time to live that is not positive.
Result<NewToken> MakeJoinToken(Entropy& entropy,
                               std::string_view authority_pem,
                               uint64_t incarnation,
                               const JoinGrant& grant,
                               Duration ttl,
                               WallTime now);

// Reads a token's Secret back. The error names the field.
Result<JoinRecord> ParseJoinSecret(std::string_view name,
                                   const std::map<std::string, std::string>& data);
// Notes in the Secret's entries who has used the token.
void MarkRedeemed(std::map<std::string, std::string>& data,
                  std::string_view key_hash,
                  std::string_view host);

struct JoinTokenParts {
  std::string ca_pin;  // "sha256:<hex>"
  std::string id;
};
// BadRequest if the text does not have the form of a token. The error never shows the text.
Result<JoinTokenParts> ParseJoinToken(std::string_view token);

// "*" stands for any characters, also none; everything else for itself.
bool MatchesPattern(std::string_view pattern, std::string_view name);

// The grant as entries and back: also how a host's record keeps it.
std::map<std::string, std::string> GrantEntries(const JoinGrant& grant);
Result<JoinGrant> ParseGrant(const std::map<std::string, std::string>& data);

}  // namespace berth::pki
