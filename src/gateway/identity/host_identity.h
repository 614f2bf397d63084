// SPDX-License-Identifier: Apache-2.0
// Whom a client certificate stands for: one host, by name. The transport has verified that our
// authority signed it; its dates and the revocations are looked at here, for every call.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "client/records/revocations.h"
#include "gateway/identity/refusal.h"
#include "pki/certificate_authority.h"

namespace berth::gateway {

inline constexpr Duration kHostCertificateLifetime = Duration::Hours(24);
// How long after its end a certificate may still be renewed.
inline constexpr Duration kLateRenewal = Duration::Hours(24 * 30);

struct HostIdentity {
  std::string host;
  std::string serial;
  std::string key_hash;
  std::string authority;  // the name of who signed the certificate
  WallTime issued;
  WallTime not_after;
};

// What the caller wants to do decides how old its certificate may be.
enum class Purpose : uint8_t { kSession, kRenewal };

// The identity in a certificate (DER), or why it has none.
struct IdentityVerdict {
  std::optional<HostIdentity> identity;
  Refusal refusal;  // if there is no identity
};
IdentityVerdict ReadIdentity(std::string_view certificate_der,
                             Purpose purpose,
                             const client::Revocations& revocations,
                             WallTime now);

// The transport has checked this when the connection began; the authority may have been changed
// since (docs/adr/0031).
bool IsTrusted(const pki::CertificateAuthority& authority, const HostIdentity& identity);
Refusal RetiredAuthority(const HostIdentity& identity);

}  // namespace berth::gateway
