// SPDX-License-Identifier: Apache-2.0
// Whether a host may join, as pure decisions (PROTOCOL 9.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "client/records/host_record.h"
#include "pki/join_token.h"

namespace berth::gateway {

struct JoinAttempt {
  std::string_view token;  // the whole text
  std::string_view host;   // the name that is wanted
  std::string_view key_hash;
  uint64_t incarnation = 0;  // of the cluster
  WallTime now;
};

// Ok if the token is good for this attempt: its own text, not expired, of this history, not used by
// another key, and for this name.
Status CheckToken(const pki::JoinRecord& record, const JoinAttempt& attempt);

// Ok if the name is free, is this key's already, or the token may replace its host.
Status CheckName(const std::optional<client::HostRecord>& known,
                 const pki::JoinRecord& record,
                 const JoinAttempt& attempt);

}  // namespace berth::gateway
