// SPDX-License-Identifier: Apache-2.0
// Bearer tokens: how they look and what is stored about them. A token is
//
//   berth_<id>_<secret>      id: 10 letters and digits; secret: 43 characters, 32 random bytes
//
// and lies in the store as the Secret berth-system/token-<id> of type berth.dev/token, with its
// hash in place of its text. Whoever reads that Secret cannot use the token; deleting it revokes
// the token.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pki/entropy.h"

namespace berth::pki {

inline constexpr std::string_view kTokenNamespace = "berth-system";
inline constexpr std::string_view kTokenSecretType = "berth.dev/token";
inline constexpr std::string_view kTokenNamePrefix = "token-";

// What is known about a token; not a secret.
struct TokenRecord {
  std::string id;
  std::string hash;  // hexadecimal SHA-256 of the whole token
  std::string user;
  std::vector<std::string> groups;
  std::optional<WallTime> expires;
};

// The fields of a token's Secret.
struct TokenSecret {
  std::string name;                         // "token-<id>", in kTokenNamespace
  std::map<std::string, std::string> data;  // plain bytes: hash, user, groups, expires
};

struct NewToken {
  std::string text;  // to be shown once, never stored or logged
  TokenSecret secret;
};

// A new token that stands for the user. BadRequest for a user or group that is empty, holds a
// control character or (groups) a comma, and for a time to live that is not positive; without one
// the token lives until it is revoked.
Result<NewToken> MakeToken(Entropy& entropy,
                           const std::string& user,
                           const std::vector<std::string>& groups,
                           std::optional<Duration> ttl,
                           WallTime now);

// Reads a token's Secret back. The error names the field.
Result<TokenRecord> ParseTokenSecret(std::string_view name,
                                     const std::map<std::string, std::string>& data);

// The id inside a token's text; nullopt if the text does not have the form of a token.
std::optional<std::string_view> TokenId(std::string_view token);

}  // namespace berth::pki
