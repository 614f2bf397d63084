// SPDX-License-Identifier: Apache-2.0
// Which step of changing the authority is next, and what stands in its way. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "client/records/config_record.h"
#include "client/records/host_record.h"
#include "pki/certificate_authority.h"

namespace berth::app {

inline constexpr std::string_view kAuthorityRecord = "authority";

// Entries of the record. Clients write the first four, the server the others.
inline constexpr std::string_view kRequestEntry = "request";  // "rotate" or "retire"
inline constexpr std::string_view kRequestIdEntry = "requestId";
inline constexpr std::string_view kRequestGraceEntry = "requestGrace";  // of rotate: "24h"
inline constexpr std::string_view kRequestForceEntry = "requestForce";  // of retire: "true"
inline constexpr std::string_view kAnswerIdEntry = "answerId";
inline constexpr std::string_view kAnswerEntry = "answer";  // "ok", or why not
inline constexpr std::string_view kBundleEntry = "ca.crt";
inline constexpr std::string_view kPhaseEntry = "phase";
inline constexpr std::string_view kServingEntry = "serving";
inline constexpr std::string_view kSigningEntry = "signing";
inline constexpr std::string_view kRetiringEntry = "retiring";
inline constexpr std::string_view kSwitchAfterEntry = "switchAfter";
inline constexpr std::string_view kWaitingEntry = "waiting";
// "seen.<server>": who has shown that server a good certificate of the authority that retires.
inline constexpr std::string_view kSeenPrefix = "seen.";

inline constexpr std::string_view kPhaseSteady = "Steady";
inline constexpr std::string_view kPhaseLearning = "Learning";  // of the next one
inline constexpr std::string_view kPhaseSwitched = "Switched";

struct AuthorityRequest {
  enum class Verb : uint8_t { kRotate, kRetire };
  enum class Force : uint8_t { kNo, kYes };
  Verb verb = Verb::kRotate;
  std::string id;
  Duration grace;
  Force force = Force::kNo;
};
// What is asked for and not answered yet; nullopt for nothing. BadRequest names the entry.
Result<std::optional<AuthorityRequest>> ReadRequest(const client::RecordEntries& entries);

// Hosts that have a certificate that is still good, and not of the authority that signs now.
// `connected` is newer than `records`, by host. A record that says nothing of a certificate is of
// an older server: its host's is good for a day after the change began.
std::vector<client::HeldCertificate> OldHolders(
    const pki::CertificateAuthority& authority,
    const std::vector<client::HeldCertificate>& records,
    const std::vector<client::HeldCertificate>& connected,
    WallTime now);

// The next text of the authority, or none; and the answer to the request, or "".
struct AuthorityStep {
  std::optional<std::string> text;
  std::string answer;
};
// `settle`: how long other servers may take to learn of a new authority.
AuthorityStep NextStep(const pki::CertificateAuthority& authority,
                       const std::optional<AuthorityRequest>& request,
                       const std::vector<client::HeldCertificate>& old_holders,
                       Duration settle,
                       WallTime now);

// A person, or a program, with a certificate of the authority that retires.
struct OldUser {
  std::string user;
  WallTime last_seen;
  WallTime until;  // the certificate is good
};
// "jane, last seen T, until T; ...", those who came last first, not more than a record can bear.
std::string ShowUsers(std::vector<OldUser> users);

// The authority that retires; "" if none does.
std::string RetiringName(const pki::CertificateAuthority& authority);

// What the record says of the authority, without requests and answers.
client::RecordEntries Describe(const pki::CertificateAuthority& authority,
                               const std::vector<client::HeldCertificate>& old_holders,
                               WallTime now);

}  // namespace berth::app
