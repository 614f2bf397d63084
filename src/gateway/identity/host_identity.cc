// SPDX-License-Identifier: Apache-2.0
#include "gateway/identity/host_identity.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "client/records/host_record.h"
#include "pki/certificate.h"
#include "pki/certificate_authority.h"

namespace berth::gateway {
namespace {

IdentityVerdict Refuse(std::string_view reason, std::string message) {
  return {.identity = std::nullopt,
          .refusal = {.reason = std::string(reason), .message = std::move(message)}};
}

bool IsHost(const pki::Certificate& certificate) {
  const std::string_view name = certificate.common_name;
  return certificate.for_clients && !certificate.is_authority &&
         name.starts_with(client::kHostUserPrefix) &&
         client::IsHostName(name.substr(client::kHostUserPrefix.size())) &&
         std::ranges::find(certificate.organizations, client::kHostGroup) !=
             certificate.organizations.end();
}

}  // namespace

IdentityVerdict ReadIdentity(std::string_view certificate_der,
                             Purpose purpose,
                             const client::Revocations& revocations,
                             WallTime now) {
  if (certificate_der.empty()) {
    return Refuse(kNoCertificate, "a client certificate is needed: join first");
  }
  const auto certificate = pki::ParseCertificate(certificate_der);
  if (!certificate.ok()) {
    return Refuse(kNotAHost, std::string(certificate.status().message()));
  }
  if (!IsHost(*certificate)) {
    return Refuse(
        kNotAHost,
        "the certificate of " + Quote(certificate->common_name) + " is not one of a host");
  }
  HostIdentity identity{.host = certificate->common_name.substr(client::kHostUserPrefix.size()),
                        .serial = certificate->serial,
                        .key_hash = certificate->key_hash,
                        .authority = certificate->issuer,
                        .issued = certificate->not_before + pki::kClockSkew,
                        .not_after = certificate->not_after};
  if (now < certificate->not_before) {
    return Refuse(kExpired,
                  "the certificate of host " + identity.host + " is not valid before " +
                      FormatRfc3339(certificate->not_before));
  }
  if (revocations.Covers(identity.host, identity.serial, identity.issued)) {
    return Refuse(kRevoked, "the certificate of host " + identity.host + " was revoked");
  }
  const Duration late = purpose == Purpose::kRenewal ? kLateRenewal : Duration();
  if (now > identity.not_after + late) {
    return Refuse(kExpired,
                  "the certificate of host " + identity.host + " expired on " +
                      FormatRfc3339(identity.not_after));
  }
  return {.identity = std::move(identity), .refusal = {}};
}

bool IsTrusted(const pki::CertificateAuthority& authority, const HostIdentity& identity) {
  return std::ranges::find(authority.names(), identity.authority) != authority.names().end();
}

Refusal RetiredAuthority(const HostIdentity& identity) {
  return {.reason = std::string(kRevoked),
          .message = "the certificate of host " + identity.host + " is of authority " +
                     Quote(identity.authority) +
                     ", which was retired: start the poollet with a new token (berth pool "
                     "join-token)"};
}

}  // namespace berth::gateway
