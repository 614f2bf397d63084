// SPDX-License-Identifier: Apache-2.0
// How a registry wants to be told who asks: the header WWW-Authenticate of its refusal. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::image {

struct Challenge {
  enum class Kind : uint8_t {
    kUnknown,
    kBasic,   // name and password with every request
    kBearer,  // a token that the realm gives out
  };
  Kind kind = Kind::kUnknown;
  std::string realm = {};
  std::string service = {};
  std::string scope = {};
  bool operator==(const Challenge&) const = default;
};

Challenge ParseChallenge(std::string_view header);
// Where the token for a pull of the repository is asked for. BadRequest if the realm is no https
// URL.
Result<std::string> TokenUrl(const Challenge& challenge, std::string_view repository);
// The token in the realm's answer.
Result<std::string> ParseToken(std::string_view json);

}  // namespace berth::image
