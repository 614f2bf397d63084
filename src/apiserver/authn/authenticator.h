// SPDX-License-Identifier: Apache-2.0
// The Authenticator says who sends a request, by client certificate or bearer token. A refusal
// never tells which part was wrong.
//
// Tokens are known from their Secrets (pki/token.h), fed in as watch events: a revoked token stops
// working with the event, and streams that were opened with it end (credential_hold.h). So do
// certificates that the ConfigMap revoked-users makes void (revoked_users.h). Not safe for several
// threads: it belongs to the API server's loop.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apis/k8s/secret.h"
#include "apiserver/authn/credential_hold.h"
#include "apiserver/authn/failure_limiter.h"
#include "apiserver/authn/revoked_users.h"
#include "apiserver/identity.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/strings.h"
#include "base/time.h"
#include "net/http.h"
#include "pki/certificate.h"

namespace berth::apiserver {

inline constexpr std::string_view kAnonymousUser = "system:anonymous";
inline constexpr std::string_view kAuthenticatedGroup = "system:authenticated";
inline constexpr std::string_view kUnauthenticatedGroup = "system:unauthenticated";
inline constexpr std::string_view kMastersGroup = "system:masters";

// Paths that answer without credentials: health and version.
bool IsPublicPath(std::string_view path);

// A user by a certificate.
struct SeenUser {
  std::string user;
  WallTime last_seen;
  WallTime until;  // the certificate is good
};

class Authenticator {
 public:
  explicit Authenticator(metrics::Registry& metrics);

  // `authorization` is the header of that name, "" if absent; `path` is without query. A client
  // certificate counts before a token, as in Kubernetes.
  //
  // Unauthorized for missing credentials (but on public paths), wrong, expired or revoked ones.
  // TooManyRequests instead for an address that fails too often; right credentials always pass, so
  // nobody can lock others out.
  Result<Identity> Authenticate(const net::Peer& peer,
                                std::string_view authorization,
                                std::string_view path,
                                WallTime now);

  // Whose token this is; null if nobody's (any more). Valid until the next event of a Secret.
  const Identity* FromToken(std::string_view token, WallTime now) const;

  // Watch events of Secrets; those outside pki::kTokenNamespace are ignored. A Secret that is not a
  // valid token (another type, being deleted, damaged) revokes the token of its name.
  void OnSecretChanged(const apis::k8s::Secret& secret);
  void OnSecretDeleted(const apis::k8s::Secret& secret);
  // Certificates that these cover are refused from now on, on open connections too.
  void SetRevokedUsers(RevokedUsers revoked);
  // Certificates that none of these has signed are refused from now on, on open connections too.
  // The handshake has verified the signature; this is about authorities that were retired since.
  void SetAuthorities(std::vector<std::string> names);
  // Who has shown a certificate that this authority signed and that is still good, of those that
  // are remembered: at most a thousand, since the start.
  std::vector<SeenUser> SeenUsers(std::string_view authority, WallTime now) const;
  size_t token_count() const { return tokens_.size(); }

 private:
  struct KnownCertificate {
    Identity identity;
    WallTime not_before;
    WallTime not_after;
    std::string serial;
    std::string issuer;
    WallTime last_seen;
  };
  struct KnownToken {
    std::string hash;  // 32 bytes
    Identity identity;
    std::optional<WallTime> expires;
  };

  friend class CredentialHold;
  // Whether credentials that were good once still are, but for their times.
  bool StillKnows(const std::string& der, std::string_view authorization);
  void LookAtHolds();
  KnownCertificate* Know(const std::string& der);
  bool IsVoid(const KnownCertificate& certificate) const;
  const KnownToken* FindToken(std::string_view text) const;
  const Identity* FromCertificate(const std::string& der, WallTime now);
  Status Refuse(const net::Peer& peer, WallTime now);
  void Learn(const apis::k8s::Secret& secret);
  bool Forget(std::string_view secret_name);  // whether it was known

  template <class T>
  using ByText = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

  ByText<KnownCertificate> certificates_;  // by DER: parsing costs more than the rest of a request
  ByText<KnownToken> tokens_;              // by id
  RevokedUsers revoked_;
  std::vector<std::string> authorities_;  // empty: whatever the handshake accepts
  FailureLimiter failures_;
  std::set<CredentialHold*> holds_;  // of requests that go on
  metrics::Counter& by_certificate_;
  metrics::Counter& by_token_;
  metrics::Counter& anonymous_;
  metrics::Counter& refused_;
};

}  // namespace berth::apiserver
