// SPDX-License-Identifier: Apache-2.0
#include "pki/internal/authority_text.h"

#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "pki/digest.h"
#include "pki/entropy.h"
#include "pki/internal/signing.h"
#include "pki/pem.h"

namespace berth::pki {
namespace {

constexpr std::string_view kPemSeed = "BERTH SEED";
constexpr std::string_view kRotationLine = "Berth-Rotation:";
constexpr size_t kMembersMax = 2;
constexpr size_t kShaBlock = 64;

// HMAC takes the hash of a key that is longer than a block: what follows from this is what follows
// from the key itself, and the key cannot be found from it.
std::string SeedOf(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int length = i2d_PrivateKey(key, &der);
  CHECK(length > 0) << "an authority has a key";
  std::string text(reinterpret_cast<const char*>(der), static_cast<size_t>(length));
  OPENSSL_clear_free(der, static_cast<size_t>(length));
  return text.size() > kShaBlock ? Sha256(text) : text;
}

Result<std::vector<KeyHandle>> ReadKeys(std::string_view text) {
  TRY(const auto blocks, PemDecode(kPemPrivateKey, text));
  if (blocks.empty()) return BadRequest("no PRIVATE KEY block");
  std::vector<KeyHandle> keys;
  for (const std::string& block : blocks) {
    TRY(KeyHandle key, KeyFromPem(PemEncode(kPemPrivateKey, block)));
    keys.push_back(std::move(key));
  }
  return keys;
}

KeyHandle TakeKeyOf(X509* certificate, std::vector<KeyHandle>& keys) {
  for (KeyHandle& key : keys) {
    if (key && X509_check_private_key(certificate, key.get()) == 1) return std::move(key);
    (void)OpensslError("");  // forgets what OpenSSL noted
  }
  return {};
}

Result<AuthorityMember> ReadMember(const std::string& der, std::vector<KeyHandle>& keys) {
  AuthorityMember member;
  member.certificate_pem = PemEncode(kPemCertificate, der);
  TRY(member.certificate, CertificateFromPem(member.certificate_pem));
  TRY(member.facts, ParseCertificate(der));
  member.key = TakeKeyOf(member.certificate.get(), keys);
  return member;
}

// "Berth-Rotation: step=… id=… signs=… switch=…"; the times are there while it goes on.
Status ReadRotation(std::string_view text, AuthorityText& out) {
  for (std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(kRotationLine)) continue;
    Rotation rotation;
    bool goes_on = false;
    for (std::string_view word : Split(Trim(line.substr(kRotationLine.size())), ' ')) {
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = word.substr(0, equals);
      const std::string_view value = word.substr(equals + 1);
      if (name == "id") rotation.id = value;
      if (name == "step") out.step = ParseUint(value).value_or(0);
      if (name != "signs" && name != "switch") continue;
      const auto time = ParseRfc3339(value);
      if (!time.ok()) return time.status().Wrap("rotation");
      (name == "signs" ? rotation.signs_from : rotation.switch_after) = *time;
      goes_on = true;
    }
    out.last_change = rotation.id;
    if (goes_on) out.rotation = std::move(rotation);
    return OkStatus();
  }
  return OkStatus();
}

std::string RotationText(const AuthorityText& authority) {
  if (authority.rotation) {
    return fmt::format("{} step={} id={} signs={} switch={}\n",
                       kRotationLine,
                       authority.step,
                       authority.last_change,
                       FormatRfc3339(authority.rotation->signs_from),
                       FormatRfc3339(authority.rotation->switch_after));
  }
  if (authority.step == 0) return {};
  return fmt::format("{} step={} id={}\n", kRotationLine, authority.step, authority.last_change);
}

}  // namespace

std::string AuthorityText::Bundle() const {
  std::string bundle;
  for (const AuthorityMember& member : members) bundle += member.certificate_pem;
  return bundle;
}

std::vector<std::string> AuthorityText::Names() const {
  std::vector<std::string> names;
  for (const AuthorityMember& member : members) names.push_back(member.facts.common_name);
  return names;
}

Result<AuthorityMember> MakeAuthority(WallTime now) {
  CertificatePlan plan{.purpose = Purpose::kAuthority,
                       // Two authorities differ by name, so that a mix-up shows.
                       .common_name = "berth-ca-" + HexEncode(SystemEntropy().Draw(4)),
                       .not_before = now - kClockSkew,
                       .not_after = now + kAuthorityLifetime};
  AuthorityMember member;
  TRY(member.key, NewKey());
  TRY(member.certificate, SignCertificate(plan, member.key.get(), nullptr, member.key.get()));
  TRY(member.certificate_pem, CertificateToPem(member.certificate.get()));
  TRY(member.facts, ParseCertificatePem(member.certificate_pem));
  return member;
}

Result<AuthorityText> ParseAuthority(std::string_view text) {
  AuthorityText authority;
  TRY(std::vector<KeyHandle> keys, ReadKeys(text));
  TRY(const auto certificates, PemDecode(kPemCertificate, text));
  if (certificates.empty()) return BadRequest("no CERTIFICATE block");
  if (certificates.size() > kMembersMax) {
    return BadRequest(
        fmt::format("{} CERTIFICATE blocks, at most {}", certificates.size(), kMembersMax));
  }
  for (const std::string& der : certificates) {
    TRY(AuthorityMember member, ReadMember(der, keys));
    authority.members.push_back(std::move(member));
  }
  if (!authority.members[0].key) return BadRequest("the key does not belong to the certificate");
  for (const AuthorityMember& member : authority.members) {
    if (!member.facts.is_authority) return BadRequest("not a certificate authority");
  }
  TRY(auto seeds, PemDecode(kPemSeed, text));
  authority.seed = seeds.empty() ? SeedOf(authority.members[0].key.get()) : std::move(seeds[0]);
  TRY_STATUS(ReadRotation(text, authority));
  return authority;
}

Result<std::string> FormatAuthority(const AuthorityText& authority) {
  std::string text;
  for (const AuthorityMember& member : authority.members) {
    if (member.key) {
      TRY(const std::string key, KeyToPem(member.key.get()));
      text += key;
    }
    text += member.certificate_pem;
  }
  return text + PemEncode(kPemSeed, authority.seed) + RotationText(authority);
}

}  // namespace berth::pki
