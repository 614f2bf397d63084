// SPDX-License-Identifier: Apache-2.0
#include "pki/certificate_authority.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "pki/digest.h"
#include "pki/entropy.h"
#include "pki/internal/requests.h"
#include "pki/internal/signing.h"
#include "pki/private_file.h"

namespace berth::pki {

struct CertificateAuthority::Keys {
  KeyHandle key;
  X509Handle certificate;
  WallTime not_after;
};

namespace {

struct Pair {
  KeyHandle key;
  X509Handle certificate;
  Certificate facts;
  std::string certificate_pem;
};

Result<Pair> ParsePair(std::string_view pem) {
  Pair pair;
  TRY(pair.key, KeyFromPem(pem));
  TRY(pair.certificate, CertificateFromPem(pem));
  TRY(pair.facts, ParseCertificatePem(pem));
  TRY(pair.certificate_pem, CertificateToPem(pair.certificate.get()));
  if (X509_check_private_key(pair.certificate.get(), pair.key.get()) != 1) {
    (void)OpensslError("");  // forgets what OpenSSL noted
    return BadRequest("the key does not belong to the certificate");
  }
  return pair;
}

Result<Pair> MakeAuthority(WallTime now) {
  CertificatePlan plan{.purpose = Purpose::kAuthority,
                       // Two clusters' authorities differ by name, so that a mix-up shows.
                       .common_name = "berth-ca-" + HexEncode(SystemEntropy().Draw(4)),
                       .not_before = now - kClockSkew,
                       .not_after = now + kAuthorityLifetime};
  Pair pair;
  TRY(pair.key, NewKey());
  TRY(pair.certificate, SignCertificate(plan, pair.key.get(), nullptr, pair.key.get()));
  TRY(pair.certificate_pem, CertificateToPem(pair.certificate.get()));
  TRY(pair.facts, ParseCertificatePem(pair.certificate_pem));
  return pair;
}

Result<Pair> LoadAuthority(const std::string& path, const std::string& text, WallTime now) {
  auto pair = ParsePair(text);
  if (!pair.ok()) return pair.status().Wrap(path);
  if (!pair->facts.is_authority) return BadRequest(path + ": not a certificate authority");
  if (now >= pair->facts.not_after) {
    return BadRequest(
        fmt::format("{}: the certificate authority has expired on {}; move the folder "
                    "away to make a new one, which every client then has to trust",
                    path,
                    FormatRfc3339(pair->facts.not_after)));
  }
  return pair;
}

Result<Pair> CreateAuthority(const std::string& path,
                             const std::string& certificate_path,
                             WallTime now) {
  if (!ReadPrivateFile(certificate_path).status().Is(Reason::kNotFound)) {
    return BadRequest(
        fmt::format("{} is missing beside {}; restore it, or move the folder away to "
                    "make a new certificate authority",
                    path,
                    certificate_path));
  }
  TRY(auto pair, MakeAuthority(now));
  TRY(std::string key_pem, KeyToPem(pair.key.get()));
  TRY_STATUS(WritePrivateFile(path, key_pem + pair.certificate_pem));
  LOG_INFO("made certificate authority {} in {}", pair.facts.common_name, path);
  return pair;
}

WallTime RenewalTime(const Certificate& certificate) {
  return certificate.not_after - (certificate.not_after - certificate.not_before) / 3;
}

}  // namespace

CertificateAuthority::CertificateAuthority(std::string folder,
                                           std::unique_ptr<Keys> keys,
                                           std::string pem)
    : folder_(std::move(folder)), keys_(std::move(keys)), certificate_pem_(std::move(pem)) {}
CertificateAuthority::CertificateAuthority(CertificateAuthority&&) noexcept = default;
CertificateAuthority& CertificateAuthority::operator=(CertificateAuthority&&) noexcept = default;
CertificateAuthority::~CertificateAuthority() = default;

Result<CertificateAuthority> CertificateAuthority::LoadOrCreate(const std::string& folder,
                                                                WallTime now) {
  const std::string path = folder + "/ca.pem";
  const std::string certificate_path = folder + "/ca.crt";
  TRY_STATUS(EnsurePrivateFolder(folder));
  auto text = ReadPrivateFile(path);
  if (!text.ok() && !text.status().Is(Reason::kNotFound)) return text.status();
  TRY(Pair pair,
      text.ok() ? LoadAuthority(path, *text, now) : CreateAuthority(path, certificate_path, now));
  auto shown = ReadPrivateFile(certificate_path);
  if (!shown.ok() || *shown != pair.certificate_pem) {
    TRY_STATUS(WritePrivateFile(certificate_path, pair.certificate_pem));
  }
  auto keys = std::make_unique<Keys>();
  keys->key = std::move(pair.key);
  keys->certificate = std::move(pair.certificate);
  keys->not_after = pair.facts.not_after;
  return CertificateAuthority(folder, std::move(keys), std::move(pair.certificate_pem));
}

Result<Credentials> CertificateAuthority::IssueClient(const ClientSubject& subject,
                                                      WallTime now) const {
  CertificatePlan plan{.purpose = Purpose::kClient,
                       .common_name = subject.user,
                       .organizations = subject.groups,
                       .not_before = now - kClockSkew,
                       .not_after = std::min(now + subject.lifetime, keys_->not_after)};
  Credentials credentials;
  TRY(KeyHandle key, NewKey());
  TRY(X509Handle certificate,
      SignCertificate(plan, key.get(), keys_->certificate.get(), keys_->key.get()));
  TRY(credentials.certificate_pem, CertificateToPem(certificate.get()));
  TRY(credentials.key_pem, KeyToPem(key.get()));
  return credentials;
}

Result<std::string> CertificateAuthority::SignRequest(std::string_view request_pem,
                                                      const ClientSubject& subject,
                                                      WallTime now) const {
  TRY(RequestHandle request, ReadRequest(request_pem));
  CertificatePlan plan{.purpose = Purpose::kClient,
                       .common_name = subject.user,
                       .organizations = subject.groups,
                       .not_before = now - kClockSkew,
                       .not_after = std::min(now + subject.lifetime, keys_->not_after)};
  TRY(X509Handle certificate,
      SignCertificate(
          plan, X509_REQ_get0_pubkey(request.get()), keys_->certificate.get(), keys_->key.get()));
  return CertificateToPem(certificate.get());
}

Result<Credentials> CertificateAuthority::IssueServer(const ServerNames& names,
                                                      WallTime now) const {
  CertificatePlan plan{.purpose = Purpose::kServer,
                       .common_name = "berth-server",
                       .dns_names = names.dns_names,
                       .addresses = names.addresses,
                       .not_before = now - kClockSkew,
                       .not_after = std::min(now + kServerLifetime, keys_->not_after)};
  Credentials credentials;
  TRY(KeyHandle key, NewKey());
  TRY(X509Handle certificate,
      SignCertificate(plan, key.get(), keys_->certificate.get(), keys_->key.get()));
  TRY(credentials.certificate_pem, CertificateToPem(certificate.get()));
  TRY(credentials.key_pem, KeyToPem(key.get()));
  return credentials;
}

std::string CertificateAuthority::DeriveSecret(std::string_view purpose) const {
  unsigned char* der = nullptr;
  const int length = i2d_PrivateKey(keys_->key.get(), &der);
  CHECK(length > 0) << "an authority has a key";
  const std::string key(reinterpret_cast<const char*>(der), static_cast<size_t>(length));
  OPENSSL_clear_free(der, static_cast<size_t>(length));
  return HmacSha256(key, purpose);
}

bool CertificateAuthority::HasSigned(std::string_view certificate_pem) const {
  auto certificate = CertificateFromPem(certificate_pem);
  if (!certificate.ok()) return false;
  const bool signed_here =
      X509_verify(certificate->get(), X509_get0_pubkey(keys_->certificate.get())) == 1;
  if (!signed_here) (void)OpensslError("");  // forgets what OpenSSL noted
  return signed_here;
}

Result<Credentials> CertificateAuthority::ServerCredentials(const ServerNames& names,
                                                            WallTime now) const {
  const std::string path = folder_ + "/server.pem";
  auto reason = [&]() -> std::string {
    auto text = ReadPrivateFile(path);
    if (!text.ok()) return std::string(text.status().message());
    auto pair = ParsePair(*text);
    if (!pair.ok()) return std::string(pair.status().message());
    if (!HasSigned(pair->certificate_pem)) return "it is of another certificate authority";
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
