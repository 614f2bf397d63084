// SPDX-License-Identifier: Apache-2.0
// The continue of a list, which comes back from clients.
#include <string>

#include "apiserver/registry/continue_token.h"
#include "base/check.h"
#include "test/fuzz/pieces.h"
#include "test/fuzz/targets.h"

namespace berth::fuzz {

void Continue(std::string_view bytes) {
  using apiserver::ContinueToken;
  const auto token = ContinueToken::Decode(bytes);
  if (token.ok()) {
    CHECK(!token->after.empty() && token->revision.value >= 0);
    const auto again = ContinueToken::Decode(token->Encode());
    CHECK(again.ok() && again->after == token->after && again->revision == token->revision);
    const auto present = apiserver::TokenOfThePresent(bytes);
    CHECK(present.ok()) << present.status();
    const auto rest = ContinueToken::Decode(*present);
    CHECK(rest.ok() && rest->after == token->after && rest->revision.value == 0);
  } else {
    CHECK(token.status().Is(Reason::kBadRequest)) << token.status();
  }
  // What a server writes, of whatever key, it reads again.
  if (bytes.empty() || bytes.size() > store::kMaxKeyBytes) return;
  const ContinueToken own{.revision = {static_cast<int64_t>(bytes.size())},
                          .after = std::string(bytes)};
  const auto read = ContinueToken::Decode(own.Encode());
  CHECK(read.ok() && read->after == own.after && read->revision == own.revision);
}

}  // namespace berth::fuzz
