// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authn/authenticator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "pki/certificate_authority.h"
#include "pki/digest.h"
#include "pki/token.h"

namespace berth::apiserver {
namespace {

// 1,024 certificates * 1 KiB = 1 MiB. One connection uses one of them.
constexpr size_t kCertificatesMax = 1024;
// 65,536 tokens * 512 bytes = 32 MiB.
constexpr size_t kTokensMax = 65536;

Identity MakeIdentity(std::string user, std::vector<std::string> groups) {
  groups.emplace_back(kAuthenticatedGroup);
  return {.user = std::move(user), .groups = std::move(groups)};
}

std::string FromHex(std::string_view hex) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return bytes;
}

std::string_view BearerOf(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() <= kScheme.size() ||
      !EqualsIgnoreCase(authorization.substr(0, kScheme.size()), kScheme)) {
    return {};
  }
  return Trim(authorization.substr(kScheme.size()));
}

metrics::Counter& AttemptsCounter(metrics::Registry& metrics, const char* result) {
  return metrics.GetCounter("berth_authentication_attempts_total",
                            "Requests by how their sender was recognised.",
                            {{"result", result}});
}

}  // namespace

bool IsPublicPath(std::string_view path) {
  if (path == "/version") return true;
  for (std::string_view root : {"/livez", "/readyz", "/healthz"}) {
    if (path == root || (path.starts_with(root) && path[root.size()] == '/')) return true;
  }
  return false;
}

Authenticator::Authenticator(metrics::Registry& metrics)
    : by_certificate_(AttemptsCounter(metrics, "certificate")),
      by_token_(AttemptsCounter(metrics, "token")),
      anonymous_(AttemptsCounter(metrics, "anonymous")),
      refused_(AttemptsCounter(metrics, "refused")) {}

Result<Identity> Authenticator::Authenticate(const net::Peer& peer,
                                             std::string_view authorization,
                                             std::string_view path,
                                             WallTime now) {
  if (!peer.certificate_der.empty()) {
    if (const Identity* identity = FromCertificate(peer.certificate_der, now)) {
      by_certificate_.Add();
      return *identity;
    }
  }
  if (!authorization.empty()) {
    if (const Identity* identity = FromToken(BearerOf(authorization), now)) {
      by_token_.Add();
      return *identity;
    }
  }
  const bool has_credentials = !peer.certificate_der.empty() || !authorization.empty();
  if (!has_credentials && IsPublicPath(path)) {
    anonymous_.Add();
    return Identity{.user = std::string(kAnonymousUser),
                    .groups = {std::string(kUnauthenticatedGroup)}};
  }
  return Refuse(peer, now);
}

Authenticator::KnownCertificate* Authenticator::Know(const std::string& der) {
  auto found = certificates_.find(der);
  if (found == certificates_.end()) {
    auto parsed = pki::ParseClientCertificate(der);
    if (!parsed.ok()) return nullptr;
    if (certificates_.size() >= kCertificatesMax) certificates_.clear();
    KnownCertificate known{
        .identity = MakeIdentity(std::move(parsed->user), std::move(parsed->groups)),
        .not_before = parsed->not_before,
        .not_after = parsed->not_after,
        .serial = std::move(parsed->serial),
        .issuer = std::move(parsed->issuer)};
    found = certificates_.emplace(der, std::move(known)).first;
  }
  return &found->second;
}

bool Authenticator::IsVoid(const KnownCertificate& certificate) const {
  if (!authorities_.empty() &&
      std::ranges::find(authorities_, certificate.issuer) == authorities_.end()) {
    return true;
  }
  const WallTime issued = certificate.not_before + pki::kClockSkew;
  return revoked_.Covers(certificate.identity.user, certificate.serial, issued);
}

const Identity* Authenticator::FromCertificate(const std::string& der, WallTime now) {
  KnownCertificate* known = Know(der);
  // The handshake has checked the times, but a connection may outlive its certificate.
  if (known == nullptr || now < known->not_before || now > known->not_after) return nullptr;
  if (IsVoid(*known)) return nullptr;
  known->last_seen = now;
  return &known->identity;
}

std::vector<SeenUser> Authenticator::SeenUsers(std::string_view authority, WallTime now) const {
  std::map<std::string, SeenUser> users;
  for (const auto& [der, known] : certificates_) {
    const bool is_good = known.issuer == authority && now <= known.not_after && !IsVoid(known);
    if (!is_good || known.last_seen == WallTime()) continue;
    SeenUser& seen = users[known.identity.user];
    seen.user = known.identity.user;
    seen.last_seen = std::max(seen.last_seen, known.last_seen);
    seen.until = std::max(seen.until, known.not_after);
  }
  std::vector<SeenUser> out;
  for (auto& [user, seen] : users) out.push_back(std::move(seen));
  return out;
}

const Authenticator::KnownToken* Authenticator::FindToken(std::string_view text) const {
  const auto id = pki::TokenId(text);
  if (!id) return nullptr;
  auto found = tokens_.find(*id);
  // An unknown id is hashed and compared as well: how long a refusal takes tells nothing about
  // which ids exist.
  static const KnownToken kNobody{.hash = std::string(32, '\0')};
  const KnownToken& known = found == tokens_.end() ? kNobody : found->second;
  const bool matches = pki::EqualConstantTime(pki::Sha256(text), known.hash);
  return matches && found != tokens_.end() ? &known : nullptr;
}

const Identity* Authenticator::FromToken(std::string_view text, WallTime now) const {
  const KnownToken* known = FindToken(text);
  if (known == nullptr || (known->expires && now >= *known->expires)) return nullptr;
  return &known->identity;
}

// As Authenticate, which let them in.
bool Authenticator::StillKnows(const std::string& der, std::string_view authorization) {
  if (!der.empty()) {
    const KnownCertificate* known = Know(der);
    if (known != nullptr && !IsVoid(*known)) return true;
  }
  return !authorization.empty() && FindToken(BearerOf(authorization)) != nullptr;
}

void Authenticator::SetRevokedUsers(RevokedUsers revoked) {
  revoked_ = std::move(revoked);
  LookAtHolds();
}

void Authenticator::SetAuthorities(std::vector<std::string> names) {
  authorities_ = std::move(names);
  LookAtHolds();
}

Status Authenticator::Refuse(const net::Peer& peer, WallTime now) {
  refused_.Add();
  if (!failures_.Count(peer.address, now)) {
    return Status(Reason::kTooManyRequests, "too many failed attempts, try again later")
        .WithRetryAfter(Duration::Seconds(1));
  }
  return Unauthorized("Unauthorized");
}

void Authenticator::OnSecretChanged(const apis::k8s::Secret& secret) {
  if (secret.metadata.namespace_ != pki::kTokenNamespace) return;
  const bool was_known = Forget(secret.metadata.name);
  Learn(secret);
  if (was_known) LookAtHolds();
}

void Authenticator::Learn(const apis::k8s::Secret& secret) {
  const std::string& name = secret.metadata.name;
  if (secret.type != pki::kTokenSecretType || secret.metadata.deletion_timestamp) return;
  std::map<std::string, std::string> data;
  for (const auto& [key, value] : secret.data) data[key] = value.bytes;
  auto record = pki::ParseTokenSecret(name, data);
  if (!record.ok()) {
    LOG_WARNING("token secret {}/{} is not valid and refused: {}",
                pki::kTokenNamespace,
                name,
                record.status().message());
    return;
  }
  if (tokens_.size() >= kTokensMax) {
    LOG_WARNING("token secret {}/{} is refused: there are {} tokens already, the limit",
                pki::kTokenNamespace,
                name,
                kTokensMax);
    return;
  }
  tokens_[record->id] =
      KnownToken{.hash = FromHex(record->hash),
                 .identity = MakeIdentity(std::move(record->user), std::move(record->groups)),
                 .expires = record->expires};
}

void Authenticator::OnSecretDeleted(const apis::k8s::Secret& secret) {
  if (secret.metadata.namespace_ == pki::kTokenNamespace && Forget(secret.metadata.name)) {
    LookAtHolds();
  }
}

bool Authenticator::Forget(std::string_view secret_name) {
  if (!secret_name.starts_with(pki::kTokenNamePrefix)) return false;
  const auto found = tokens_.find(secret_name.substr(pki::kTokenNamePrefix.size()));
  if (found == tokens_.end()) return false;
  tokens_.erase(found);
  return true;
}

}  // namespace berth::apiserver
