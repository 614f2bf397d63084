// SPDX-License-Identifier: Apache-2.0
#include "gateway/identity/join_rules.h"

#include "base/strings.h"
#include "pki/digest.h"

namespace berth::gateway {

Status CheckToken(const pki::JoinRecord& record, const JoinAttempt& attempt) {
  if (!pki::EqualConstantTime(record.hash, pki::Sha256Hex(attempt.token))) {
    // The same words as for an unknown id: who guesses learns nothing.
    return Unauthorized("join token: unknown");
  }
  if (attempt.now >= record.expires) {
    return Unauthorized("join token: expired on " + FormatRfc3339(record.expires));
  }
  if (record.incarnation != attempt.incarnation) {
    return Unauthorized("join token: made before the cluster was restored");
  }
  if (!record.redeemed_key.empty() &&
      (record.redeemed_key != attempt.key_hash || record.redeemed_host != attempt.host)) {
    return Unauthorized("join token: used already, by host " + Printable(record.redeemed_host));
  }
  if (!client::IsHostName(attempt.host)) {
    return BadRequest("host name " + Quote(attempt.host) + ": must be 1 to " +
                      std::to_string(client::kHostNameMax) +
                      " lower case letters, digits, '-' and '.'");
  }
  if (!pki::MatchesPattern(record.grant.host_pattern, attempt.host)) {
    return Forbidden("join token: for hosts named " + record.grant.host_pattern + ", not " +
                     std::string(attempt.host));
  }
  return OkStatus();
}

Status CheckName(const std::optional<client::HostRecord>& known,
                 const pki::JoinRecord& record,
                 const JoinAttempt& attempt) {
  if (!known || client::KnowsKey(*known, attempt.key_hash)) return OkStatus();
  // A host that was given its name by this very token and lost the record of its key cannot be
  // told from a thief; the operator can.
  if (record.grant.replacement == pki::HostReplacement::kAllowed) return OkStatus();
  return AlreadyExists("host " + std::string(attempt.host) +
                       " has joined with another key: remove it first, or make a token that "
                       "may replace it");
}

}  // namespace berth::gateway
