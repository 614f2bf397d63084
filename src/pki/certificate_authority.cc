// SPDX-License-Identifier: Apache-2.0
#include "pki/certificate_authority.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "pki/digest.h"
#include "pki/internal/authority_text.h"
#include "pki/internal/requests.h"
#include "pki/internal/signing.h"
#include "pki/private_file.h"

namespace berth::pki {

namespace {

struct Pair {
  KeyHandle key;
  Certificate facts;
  std::string certificate_pem;
};

Result<Pair> ParsePair(std::string_view pem) {
  Pair pair;
  TRY(pair.key, KeyFromPem(pem));
  TRY(const X509Handle certificate, CertificateFromPem(pem));
  TRY(pair.facts, ParseCertificatePem(pem));
  TRY(pair.certificate_pem, CertificateToPem(certificate.get()));
  if (X509_check_private_key(certificate.get(), pair.key.get()) != 1) {
    (void)OpensslError("");  // forgets what OpenSSL noted
    return BadRequest("the key does not belong to the certificate");
  }
  return pair;
}

Result<AuthorityText> LoadAuthority(const std::string& path,
                                    const std::string& text,
                                    WallTime now) {
  auto authority = ParseAuthority(text);
  if (!authority.ok()) return authority.status().Wrap(path);
  const WallTime end = authority->members[0].facts.not_after;
  if (now >= end) {
    return BadRequest(
        fmt::format("{}: the certificate authority has expired on {}; move the folder "
                    "away to make a new one, which every client then has to trust",
                    path,
                    FormatRfc3339(end)));
  }
  return authority;
}

Result<std::string> CreateAuthority(const std::string& path,
                                    const std::string& certificate_path,
                                    WallTime now) {
  if (!ReadPrivateFile(certificate_path).status().Is(Reason::kNotFound)) {
    return BadRequest(
        fmt::format("{} is missing beside {}; restore it, or move the folder away to "
                    "make a new certificate authority",
                    path,
                    certificate_path));
  }
  TRY(const AuthorityMember made, MakeAuthority(now));
  TRY(std::string text, KeyToPem(made.key.get()));
  text += made.certificate_pem;
  TRY_STATUS(WritePrivateFile(path, text));
  LOG_INFO("made certificate authority {} in {}", made.facts.common_name, path);
  return text;
}

WallTime RenewalTime(const Certificate& certificate) {
  return certificate.not_after - (certificate.not_after - certificate.not_before) / 3;
}

}  // namespace

CertificateAuthority::CertificateAuthority(std::string folder,
                                           std::string text,
                                           std::unique_ptr<Keys> keys)
    : folder_(std::move(folder)),
      text_(std::move(text)),
      keys_(std::move(keys)),
      certificate_pem_(keys_->authority.Bundle()),
      names_(keys_->authority.Names()) {}
CertificateAuthority::CertificateAuthority(CertificateAuthority&&) noexcept = default;
CertificateAuthority& CertificateAuthority::operator=(CertificateAuthority&&) noexcept = default;
CertificateAuthority::~CertificateAuthority() = default;

Result<CertificateAuthority> CertificateAuthority::LoadOrCreate(const std::string& folder,
                                                                WallTime now,
                                                                NoAuthority none) {
  const std::string path = folder + "/ca.pem";
  if (none == NoAuthority::kIsRefused) {
    const Status there = ReadPrivateFile(path).status();
    if (there.Is(Reason::kNotFound)) {
      return NotFound(path +
                      " is missing, and no new certificate authority may be made: restore "
                      "it, or name the data folder that has it");
    }
  }
  TRY_STATUS(EnsurePrivateFolder(folder));
  auto text = ReadPrivateFile(path);
  if (text.status().Is(Reason::kNotFound)) text = CreateAuthority(path, folder + "/ca.crt", now);
  TRY_STATUS(text);
  auto keys = std::make_unique<Keys>();
  TRY(keys->authority, LoadAuthority(path, *text, now));
  CertificateAuthority authority(folder, *std::move(text), std::move(keys));
  TRY_STATUS(authority.WriteShown());
  return authority;
}

Status CertificateAuthority::WriteShown() const {
  const std::string path = folder_ + "/ca.crt";
  const auto shown = ReadPrivateFile(path);
  if (shown.ok() && *shown == certificate_pem_) return OkStatus();
  return WritePrivateFile(path, certificate_pem_);
}

Result<Credentials> CertificateAuthority::IssueClient(const ClientSubject& subject,
                                                      WallTime now) const {
  const AuthorityMember& signer = keys_->SignerAt(now);
  CertificatePlan plan{.purpose = Purpose::kClient,
                       .common_name = subject.user,
                       .organizations = subject.groups,
                       .not_before = now - kClockSkew,
                       .not_after = std::min(now + subject.lifetime, signer.facts.not_after)};
  Credentials credentials;
  TRY(KeyHandle key, NewKey());
  TRY(X509Handle certificate,
      SignCertificate(plan, key.get(), signer.certificate.get(), signer.key.get()));
  TRY(credentials.certificate_pem, CertificateToPem(certificate.get()));
  TRY(credentials.key_pem, KeyToPem(key.get()));
  return credentials;
}

Result<std::string> CertificateAuthority::SignRequest(std::string_view request_pem,
                                                      const ClientSubject& subject,
                                                      WallTime now) const {
  TRY(RequestHandle request, ReadRequest(request_pem));
  const AuthorityMember& signer = keys_->SignerAt(now);
  CertificatePlan plan{.purpose = Purpose::kClient,
                       .common_name = subject.user,
                       .organizations = subject.groups,
                       .not_before = now - kClockSkew,
                       .not_after = std::min(now + subject.lifetime, signer.facts.not_after)};
  TRY(X509Handle certificate,
      SignCertificate(
          plan, X509_REQ_get0_pubkey(request.get()), signer.certificate.get(), signer.key.get()));
  return CertificateToPem(certificate.get());
}

Result<Credentials> CertificateAuthority::IssueServer(const ServerNames& names,
                                                      WallTime now) const {
  const AuthorityMember& signer = keys_->first();
  CertificatePlan plan{.purpose = Purpose::kServer,
                       .common_name = "berth-server",
                       .dns_names = names.dns_names,
                       .addresses = names.addresses,
                       .not_before = now - kClockSkew,
                       .not_after = std::min(now + kServerLifetime, signer.facts.not_after)};
  Credentials credentials;
  TRY(KeyHandle key, NewKey());
  TRY(X509Handle certificate,
      SignCertificate(plan, key.get(), signer.certificate.get(), signer.key.get()));
  TRY(credentials.certificate_pem, CertificateToPem(certificate.get()));
  TRY(credentials.key_pem, KeyToPem(key.get()));
  return credentials;
}

std::string CertificateAuthority::DeriveSecret(std::string_view purpose) const {
  return HmacSha256(keys_->authority.seed, purpose);
}

bool CertificateAuthority::HasSigned(std::string_view certificate_pem) const {
  const auto certificate = CertificateFromPem(certificate_pem);
  if (!certificate.ok()) return false;
  for (const AuthorityMember& member : keys_->authority.members) {
    EVP_PKEY* key = X509_get0_pubkey(member.certificate.get());
    if (X509_verify(certificate->get(), key) == 1) return true;
    (void)OpensslError("");  // forgets what OpenSSL noted
  }
  return false;
}

Result<Credentials> CertificateAuthority::ServerCredentials(const ServerNames& names,
                                                            WallTime now) const {
  const std::string path = folder_ + "/server.pem";
  auto reason = [&]() -> std::string {
    auto text = ReadPrivateFile(path);
    if (!text.ok()) return std::string(text.status().message());
    auto pair = ParsePair(*text);
    if (!pair.ok()) return std::string(pair.status().message());
    if (!HasSigned(pair->certificate_pem) || pair->facts.issuer != names_.front()) {
      return "it is of another certificate authority";
    }
    if (pair->facts.dns_names != names.dns_names || pair->facts.addresses != names.addresses) {
      return "the server's names have changed";
    }
    if (now >= RenewalTime(pair->facts) || now < pair->facts.not_before) {
      return "it is near its end";
    }
    return {};
  }();
  if (reason.empty()) {
    TRY(std::string text, ReadPrivateFile(path));
    TRY(Pair pair, ParsePair(text));
    TRY(std::string key_pem, KeyToPem(pair.key.get()));
    return Credentials{.certificate_pem = pair.certificate_pem, .key_pem = std::move(key_pem)};
  }
  TRY(Credentials credentials, IssueServer(names, now));
  TRY_STATUS(WritePrivateFile(path, credentials.key_pem + credentials.certificate_pem));
  LOG_INFO("issued a server certificate: {}", reason);
  return credentials;
}

}  // namespace berth::pki
