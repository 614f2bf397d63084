// SPDX-License-Identifier: Apache-2.0
// Defends: nobody gets an identity without valid credentials, whatever is missing, wrong, expired,
// revoked or malformed; and a refusal says nothing.
#include "apiserver/authn/authenticator.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <map>

#include "base/strings.h"
#include "pki/certificate_authority.h"
#include "pki/digest.h"
#include "pki/pem.h"
#include "pki/token.h"

namespace berth::apiserver {
namespace {

const WallTime kNow = ParseRfc3339("2026-08-22T10:00:00Z").value();
constexpr std::string_view kPath = "/api/v1/namespaces";

pki::CertificateAuthority MakeAuthority() {
  std::string folder = (std::filesystem::temp_directory_path() / "berth-authn-XXXXXX").string();
  CHECK(mkdtemp(folder.data()) != nullptr);
  auto authority = pki::CertificateAuthority::LoadOrCreate(folder + "/pki", kNow);
  std::filesystem::remove_all(folder);
  return std::move(authority).value();
}

class AuthenticatorTest : public testing::Test {
 protected:
  static net::Peer PeerOf(const pki::Credentials& credentials) {
    return {.address = "10.0.0.1:4000",
            .certificate_der =
                pki::PemDecode(pki::kPemCertificate, credentials.certificate_pem).value().at(0)};
  }
  net::Peer Client(const pki::ClientSubject& subject) {
    return PeerOf(authority_.IssueClient(subject, kNow).value());
  }
  // Makes a token known to the authenticator.
  pki::NewToken Token(std::optional<Duration> ttl = std::nullopt) {
    auto token = pki::MakeToken(pki::SystemEntropy(), "ann", {"dev"}, ttl, kNow).value();
    authenticator_.OnSecretChanged(SecretOf(token));
    return token;
  }
  static apis::k8s::Secret SecretOf(const pki::NewToken& token) {
    apis::k8s::Secret secret;
    secret.metadata.name = token.secret.name;
    secret.metadata.namespace_ = pki::kTokenNamespace;
    secret.type = pki::kTokenSecretType;
    for (const auto& [key, value] : token.secret.data) secret.data[key].bytes = value;
    return secret;
  }
  Result<Identity> Ask(std::string_view authorization, WallTime now = kNow) {
    return authenticator_.Authenticate(peer_, authorization, kPath, now);
  }
  void ExpectRefused(const Result<Identity>& result, std::string_view what) {
    ASSERT_FALSE(result.ok()) << what << ": is " << result->user;
    EXPECT_EQ(result.status(), Unauthorized("Unauthorized")) << what;
  }

  metrics::Registry metrics_;
  Authenticator authenticator_{metrics_};
  pki::CertificateAuthority authority_ = MakeAuthority();
  net::Peer peer_{.address = "10.0.0.1:4000"};
};

TEST_F(AuthenticatorTest, ACertificateNamesUserAndGroups) {
  auto peer = Client({.user = "ann", .groups = {"dev", "ops"}});
  for (int i = 0; i < 2; ++i) {  // parsed, then remembered
    auto identity = authenticator_.Authenticate(peer, "", kPath, kNow);
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_EQ(identity->user, "ann");
    EXPECT_EQ(identity->groups, (std::vector<std::string>{"dev", "ops", "system:authenticated"}));
  }
}

TEST_F(AuthenticatorTest, ATokenNamesUserAndGroups) {
  auto token = Token();
  for (const std::string& header :
       {"Bearer " + token.text, "bearer " + token.text, "Bearer  " + token.text + " "}) {
    auto identity = Ask(header);
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_EQ(identity->user, "ann");
    EXPECT_EQ(identity->groups, (std::vector<std::string>{"dev", "system:authenticated"}));
  }
}

TEST_F(AuthenticatorTest, MissingCredentialsAreRefusedButOnPublicPaths) {
  for (std::string_view path :
       {"/livez", "/readyz", "/healthz", "/version", "/livez/ping", "/readyz/store"}) {
    auto identity = authenticator_.Authenticate(peer_, "", path, kNow);
    ASSERT_TRUE(identity.ok()) << path;
    EXPECT_EQ(identity->user, "system:anonymous");
    EXPECT_EQ(identity->groups, std::vector<std::string>{"system:unauthenticated"});
  }
  for (std::string_view path :
       {"/", "/api", "/apis", "/metrics", "/livezz", "/version/", "/openapi/v2", "", "/LIVEZ"}) {
    ExpectRefused(authenticator_.Authenticate(peer_, "", path, kNow), path);
  }
}

TEST_F(AuthenticatorTest, WrongCredentialsAreRefusedOnPublicPathsToo) {
  ExpectRefused(authenticator_.Authenticate(peer_, "Bearer nonsense", "/livez", kNow), "token");
}

TEST_F(AuthenticatorTest, AnExpiredCertificateIsRefusedOnALivingConnection) {
  auto peer = Client({.user = "ann", .lifetime = Duration::Hours(1)});
  EXPECT_TRUE(authenticator_.Authenticate(peer, "", kPath, kNow).ok());
  ExpectRefused(authenticator_.Authenticate(
                    peer, "", kPath, kNow + Duration::Hours(1) + Duration::Seconds(1)),
                "expired");
  ExpectRefused(authenticator_.Authenticate(peer, "", kPath, kNow - Duration::Minutes(6)), "early");
}

TEST_F(AuthenticatorTest, ARevokedCertificateIsRefusedOnALivingConnection) {
  const auto peer = Client({.user = "ann", .groups = {"dev"}});
  const auto other = Client({.user = "bob"});
  const auto refused = [&](const std::map<std::string, std::string>& entries) {
    authenticator_.SetRevokedUsers(RevokedUsers(entries));
    EXPECT_TRUE(authenticator_.Authenticate(other, "", kPath, kNow).ok());
    return !authenticator_.Authenticate(peer, "", kPath, kNow).ok();
  };
  const std::string serial = pki::ParseClientCertificate(peer.certificate_der).value().serial;
  EXPECT_FALSE(refused({}));
  EXPECT_TRUE(refused({{"user.ann", FormatRfc3339(kNow)}}));
  EXPECT_TRUE(refused({{"user.ann", "a time that nobody can read"}}));
  EXPECT_FALSE(refused({{"user.ann", FormatRfc3339(kNow - Duration::Seconds(1))}}))
      << "issued afterwards";
  EXPECT_TRUE(refused({{"userhex.616e6e", FormatRfc3339(kNow)}}));
  EXPECT_FALSE(refused({{"userhex.61zz", FormatRfc3339(kNow)}, {"nonsense", "x"}}));
  EXPECT_TRUE(refused({{"serial." + serial, ""}}));
  EXPECT_FALSE(refused({{"serial.00", ""}}));
  EXPECT_FALSE(refused({})) << "taken back";
}

TEST_F(AuthenticatorTest, R7_1_4_APoolIsRevokedUnderAllItsNames) {
  const std::string name = ":system:machinepool:alpha";
  const std::string users[] = {"compute.ironcore.dev" + name,
                               "compute.IRONCORE.dev" + name,
                               "compute.openkcm.dev" + name,
                               "Compute.OpenKCM.dev" + name};
  for (const std::string& entered : users) {
    const RevokedUsers revoked({{"userhex." + HexEncode(entered), FormatRfc3339(kNow)}});
    for (const std::string& user : users) {
      EXPECT_TRUE(revoked.Covers(user, "c0ffee", kNow)) << entered << ", " << user;
      EXPECT_FALSE(revoked.Covers(user, "c0ffee", kNow + Duration::Seconds(1)));
    }
    for (const std::string other : {"compute.ironcore.dev:system:machinepool:beta",
                                    "compute.ironcore.dev:system:machinepool:ALPHA",
                                    "compute.ironcore.dev:system:volumepool:alpha",
                                    "storage.ironcore.dev:system:machinepool:alpha",
                                    "system:machinepool:alpha",
                                    "compute"}) {
      EXPECT_FALSE(revoked.Covers(other, "c0ffee", kNow)) << entered << ", " << other;
    }
  }
  const auto peer = Client({.user = users[1]});
  EXPECT_TRUE(authenticator_.Authenticate(peer, "", kPath, kNow).ok());
  authenticator_.SetRevokedUsers(
      RevokedUsers({{"userhex." + HexEncode(users[0]), FormatRfc3339(kNow)}}));
  ExpectRefused(authenticator_.Authenticate(peer, "", kPath, kNow), users[1]);
}

TEST_F(AuthenticatorTest, WhoHoldsOnIsToldOnceWhenTheCredentialsAreVoid) {
  const auto peer = Client({.user = "ann"});
  const auto token = Token();
  int certificates = 0;
  int tokens = 0;
  CredentialHold by_certificate(authenticator_, peer, "");
  CredentialHold by_token(authenticator_, peer_, "Bearer " + token.text);
  CredentialHold by_both(authenticator_, peer, "Bearer " + token.text);
  by_certificate.OnVoid([&] { ++certificates; });
  auto gone = std::make_unique<CredentialHold>(authenticator_, peer, "");
  by_token.OnVoid([&] {
    ++tokens;
    gone.reset();  // whoever is told may let go of others
  });
  authenticator_.SetRevokedUsers(RevokedUsers({{"user.bob", FormatRfc3339(kNow)}}));
  authenticator_.OnSecretChanged(SecretOf(token));  // the same again
  EXPECT_EQ(certificates + tokens, 0);
  authenticator_.SetRevokedUsers(RevokedUsers({{"user.ann", FormatRfc3339(kNow)}}));
  EXPECT_EQ(certificates, 1);
  EXPECT_TRUE(by_certificate.is_void());
  EXPECT_FALSE(by_both.is_void());  // the token is good
  authenticator_.OnSecretDeleted(SecretOf(token));
  EXPECT_EQ(tokens, 1);
  EXPECT_TRUE(by_both.is_void());
  authenticator_.SetRevokedUsers({});
  authenticator_.SetRevokedUsers(RevokedUsers({{"user.ann", FormatRfc3339(kNow)}}));
  EXPECT_EQ(certificates, 1);
  // Too late to hold on to.
  int late = 0;
  CredentialHold after(authenticator_, peer, "");
  after.OnVoid([&] { ++late; });
  EXPECT_EQ(late, 1);
}

TEST_F(AuthenticatorTest, CertificatesOfAnAuthorityThatWasRetiredAreRefused) {
  const auto peer = Client({.user = "ann"});
  const CredentialHold hold(authenticator_, peer, "");
  authenticator_.SetAuthorities({"another", authority_.names()[0]});
  EXPECT_TRUE(authenticator_.Authenticate(peer, "", kPath, kNow).ok());
  EXPECT_FALSE(hold.is_void());
  authenticator_.SetAuthorities({"another"});
  ExpectRefused(authenticator_.Authenticate(peer, "", kPath, kNow), "of a retired authority");
  EXPECT_TRUE(hold.is_void());
}

TEST_F(AuthenticatorTest, CertificatesThatAreNotForClientsAreRefused) {
  auto server = authority_.IssueServer(pki::ServerNamesFor("", ""), kNow).value();
  ExpectRefused(authenticator_.Authenticate(PeerOf(server), "", kPath, kNow), "server's");
  pki::Credentials authority{.certificate_pem = authority_.certificate_pem()};
  ExpectRefused(authenticator_.Authenticate(PeerOf(authority), "", kPath, kNow), "authority's");
  net::Peer garbage{.address = "10.0.0.1:1", .certificate_der = "garbage"};
  ExpectRefused(authenticator_.Authenticate(garbage, "", kPath, kNow), "garbage");
}

TEST_F(AuthenticatorTest, WrongAndMalformedTokensAreRefusedAlike) {
  auto token = Token();
  std::string wrong = token.text;
  wrong.back() = wrong.back() == 'A' ? 'B' : 'A';
  const std::string unknown = "berth_bcdfghjkmn_" + token.text.substr(17);
  for (const std::string& header : {std::string("Bearer "),
                                    std::string("Bearer"),
                                    "Bearer " + wrong,
                                    "Bearer " + unknown,
                                    token.text,
                                    "Basic " + token.text,
                                    "Bearer " + token.text + "x",
                                    "Bearer " + token.text.substr(0, 30),
                                    "Bearer " + token.secret.data["hash"],
                                    "Bearer " + token.text + " " + token.text,
                                    "Bearer " + std::string(100'000, 'a'),
                                    std::string("Bearer \0", 8)}) {
    ExpectRefused(Ask(header), header.substr(0, 40));
  }
}

TEST_F(AuthenticatorTest, ExpiredAndRevokedTokensAreRefused) {
  auto token = Token(Duration::Hours(1));
  const std::string header = "Bearer " + token.text;
  EXPECT_TRUE(Ask(header, kNow + Duration::Minutes(59)).ok());
  ExpectRefused(Ask(header, kNow + Duration::Hours(1)), "expired");
  EXPECT_TRUE(Ask(header).ok());
  authenticator_.OnSecretDeleted(SecretOf(token));
  ExpectRefused(Ask(header), "revoked");
}

TEST_F(AuthenticatorTest, ASecretThatIsNoLongerAValidTokenRevokesIt) {
  std::vector<std::function<void(apis::k8s::Secret&)>> changes = {
      [](auto& secret) { secret.metadata.deletion_timestamp = kNow; },
      [](auto& secret) { secret.type = "Opaque"; },
      [](auto& secret) { secret.data["hash"].bytes = "broken"; },
      [](auto& secret) { secret.data.erase("user"); },
      [](auto& secret) { secret.data["hash"].bytes = pki::Sha256Hex("another"); },
      [](auto& secret) { secret.data["expires"].bytes = "2026-08-22T09:59:59Z"; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    auto token = Token();
    ASSERT_TRUE(Ask("Bearer " + token.text).ok());
    auto secret = SecretOf(token);
    changes[i](secret);
    authenticator_.OnSecretChanged(secret);
    ExpectRefused(Ask("Bearer " + token.text), std::to_string(i));
  }
}

TEST_F(AuthenticatorTest, ASecretOfAnotherTypeOrPlaceNeverMakesOrRevokesAToken) {
  auto token = pki::MakeToken(pki::SystemEntropy(), "ann", {}, std::nullopt, kNow).value();
  auto opaque = SecretOf(token);
  opaque.type = "Opaque";
  authenticator_.OnSecretChanged(opaque);
  auto elsewhere = SecretOf(token);
  elsewhere.metadata.namespace_ = "default";
  authenticator_.OnSecretChanged(elsewhere);
  ExpectRefused(Ask("Bearer " + token.text), "neither");
  EXPECT_EQ(authenticator_.token_count(), 0U);
  authenticator_.OnSecretChanged(SecretOf(token));
  authenticator_.OnSecretDeleted(elsewhere);
  elsewhere.type = "Opaque";
  authenticator_.OnSecretChanged(elsewhere);
  EXPECT_TRUE(Ask("Bearer " + token.text).ok());
}

TEST_F(AuthenticatorTest, ACertificateCountsBeforeAToken) {
  auto token = Token();
  auto peer = Client({.user = "bob"});
  auto identity = authenticator_.Authenticate(peer, "Bearer " + token.text, kPath, kNow);
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->user, "bob");
}

TEST_F(AuthenticatorTest, ManyFailuresFromOneAddressAreSlowedDownButRightCredentialsPass) {
  auto token = Token();
  for (int64_t i = 0; i < FailureLimiter::kBurst; ++i) ExpectRefused(Ask("Bearer x"), "burst");
  auto limited = Ask("Bearer x");
  EXPECT_TRUE(limited.status().Is(Reason::kTooManyRequests));
  EXPECT_EQ(limited.status().retry_after(), Duration::Seconds(1));
  EXPECT_TRUE(Ask("Bearer " + token.text).ok());
  net::Peer elsewhere{.address = "10.0.0.2:4000"};
  ExpectRefused(authenticator_.Authenticate(elsewhere, "Bearer x", kPath, kNow), "elsewhere");
  ExpectRefused(Ask("Bearer x", kNow + Duration::Seconds(1)), "later");
  EXPECT_NE(metrics_.Text().find("berth_authentication_attempts_total{result=\"refused\"} 53"),
            std::string::npos)
      << metrics_.Text();
}

TEST(FailureLimiter, ForgetsAddressesInsteadOfGrowing) {
  FailureLimiter limiter;
  for (size_t i = 0; i < 3 * FailureLimiter::kAddressesMax; ++i) {
    EXPECT_TRUE(limiter.Count("10.0.0." + std::to_string(i) + ":1", kNow));
    ASSERT_LE(limiter.size(), FailureLimiter::kAddressesMax);
  }
}

TEST(FailureLimiter, SurvivesAClockThatJumpsBack) {
  FailureLimiter limiter;
  while (limiter.Count("a:1", kNow)) {
  }
  EXPECT_TRUE(limiter.Count("a:2", kNow - Duration::Hours(1)));
}

TEST_F(AuthenticatorTest, RemembersWhoHasShownACertificateOfAnAuthority) {
  const auto ann = Client({.user = "ann"});
  const auto bob = Client({.user = "bob"});
  const auto certificate = pki::ParseCertificate(ann.certificate_der);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_TRUE(authenticator_.SeenUsers(certificate->issuer, kNow).empty());
  ASSERT_TRUE(authenticator_.Authenticate(ann, "", "/api", kNow).ok());
  ASSERT_TRUE(authenticator_.Authenticate(bob, "", "/api", kNow).ok());
  const WallTime later = kNow + Duration::Minutes(5);
  ASSERT_TRUE(authenticator_.Authenticate(ann, "", "/api", later).ok());
  const auto seen = authenticator_.SeenUsers(certificate->issuer, later);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].user, "ann");
  EXPECT_EQ(seen[0].last_seen, later);
  EXPECT_EQ(seen[0].until, certificate->not_after);
  EXPECT_EQ(seen[1].last_seen, kNow);
  EXPECT_TRUE(authenticator_.SeenUsers("another", later).empty());
  authenticator_.SetRevokedUsers(RevokedUsers({{"user.bob", FormatRfc3339(later)}}));
  EXPECT_EQ(authenticator_.SeenUsers(certificate->issuer, later).size(), 1U);
  EXPECT_TRUE(
      authenticator_.SeenUsers(certificate->issuer, certificate->not_after + Duration::Hours(1))
          .empty());
}

}  // namespace
}  // namespace berth::apiserver
