// SPDX-License-Identifier: Apache-2.0
// A join token says what its host may be, survives the store as a hash, and requests are signed
// only for good keys (PROTOCOL 9.1).
#include "pki/join_token.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "pki/certificate.h"
#include "pki/certificate_authority.h"
#include "pki/certificate_request.h"
#include "pki/digest.h"
#include "pki/internal/temp_folder.h"

namespace berth::pki {
namespace {

constexpr WallTime kNow = WallTime::FromSeconds(1'800'000'000);

class JoinTokenTest : public testing::Test {
 protected:
  TempFolder folder_;
  CertificateAuthority authority_ = *CertificateAuthority::LoadOrCreate(folder_ / "pki", kNow);

  Result<NewToken> Make(const JoinGrant& grant, Duration ttl = kJoinTokenLifetime) {
    return MakeJoinToken(SystemEntropy(), authority_.certificate_pem(), 3, grant, ttl, kNow);
  }
};

TEST_F(JoinTokenTest, C15_ATokenIsReadBackFromItsSecretWithEverythingItGrants) {
  const JoinGrant grant{.host_pattern = "rack1-*",
                        .pool_pattern = "rack1-*",
                        .pool_kinds = {"MachinePool", "VolumePool"},
                        .labels = {{"topology.kubernetes.io/zone", "a"}, {"tier", "gold"}},
                        .taints = {"dedicated=db:NoSchedule", "new:NoExecute"},
                        .limits = {{"cpu", "64"}, {"memory", "256Gi"}},
                        .replacement = HostReplacement::kAllowed};
  const auto token = Make(grant);
  ASSERT_TRUE(token.ok()) << token.status();
  const auto record = ParseJoinSecret(token->secret.name, token->secret.data);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->grant, grant);
  EXPECT_EQ(record->expires, kNow + Duration::Hours(1));
  EXPECT_EQ(record->incarnation, 3);
  EXPECT_EQ(record->hash, Sha256Hex(token->text));
  EXPECT_EQ(record->redeemed_key, "");
}

TEST_F(JoinTokenTest, ItsTextCarriesTheHashOfTheAuthorityAndIsNowhereInTheSecret) {
  const auto token = Make({});
  ASSERT_TRUE(token.ok()) << token.status();
  const auto parts = ParseJoinToken(token->text);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->ca_pin, *CertificatePin(authority_.certificate_pem()));
  EXPECT_EQ("join-token-" + parts->id, token->secret.name);
  const std::string secret(Split(token->text, '.')[3]);
  EXPECT_GE(secret.size() * 6, 128);  // bits
  for (const auto& [field, value] : token->secret.data) {
    EXPECT_EQ(value.find(secret), std::string::npos) << field;
  }
}

TEST_F(JoinTokenTest, WhoUsedItIsRemembered) {
  auto token = Make({});
  MarkRedeemed(token->secret.data, "abc", "host-1");
  const auto record = ParseJoinSecret(token->secret.name, token->secret.data);
  EXPECT_EQ(record->redeemed_key, "abc");
  EXPECT_EQ(record->redeemed_host, "host-1");
}

TEST_F(JoinTokenTest, GrantsThatMeanNothingAreRefused) {
  EXPECT_FALSE(Make({.host_pattern = ""}).ok());
  EXPECT_FALSE(Make({.host_pattern = "UPPER"}).ok());
  EXPECT_FALSE(Make({.pool_kinds = {}}).ok());
  EXPECT_FALSE(Make({.pool_kinds = {"Machine"}}).ok());
  EXPECT_FALSE(Make({.labels = {{"a,b", "c"}}}).ok());
  EXPECT_FALSE(Make({.taints = {"a=b"}}).ok());
  EXPECT_FALSE(Make({.taints = {"a=b:Sometimes"}}).ok());
  EXPECT_FALSE(Make({.limits = {{"cpu", "a=b"}}}).ok());
  EXPECT_FALSE(Make({}, Duration()).ok());
}

// Otherwise the host would find out, after the token was used up.
TEST_F(JoinTokenTest, LabelsTaintsAndLimitsThatNoPoolCanHaveAreRefusedByName) {
  const std::vector<std::pair<JoinGrant, std::string>> kCases = {
      {{.limits = {{"memory", "abc"}}}, "limit \"memory=abc\""},
      {{.limits = {{"cpu", "-5"}}}, "limit \"cpu=-5\""},
      {{.limits = {{"cpu", ""}}}, "limit \"cpu=\""},
      {{.limits = {{"", "5"}}}, "limit \"=5\""},
      {{.labels = {{"zone", "a/b"}}}, "label \"zone=a/b\""},
      {{.labels = {{"a/b/c", "x"}}}, "label \"a/b/c=x\""},
      {{.labels = {{"", "x"}}}, "label \"=x\""},
      {{.labels = {{"zone", std::string(64, 'a')}}}, "label \"zone=aaa"},
      {{.taints = {"a=b/c:NoSchedule"}}, "taint \"a=b/c:NoSchedule\""},
      {{.taints = {"=b:NoSchedule"}}, "taint \"=b:NoSchedule\""}};
  for (const auto& [grant, name] : kCases) {
    const auto token = Make(grant);
    EXPECT_TRUE(token.status().Is(Reason::kBadRequest)) << name;
    EXPECT_NE(token.status().message().find(name), std::string::npos) << token.status();
  }
  const JoinGrant good{.labels = {{"topology.ironcore.dev/zone", "a"}, {"tier", ""}},
                       .taints = {"gpu:NoSchedule", "example.com/x=y:NoExecute"},
                       .limits = {{"cpu", "1500m"}, {"memory", "256Gi"}, {"example.com/gpu", "0"}}};
  const auto token = Make(good);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(ParseJoinSecret(token->secret.name, token->secret.data)->grant, good);
  // One that was made by hand is refused before it is used up.
  auto forged = token->secret.data;
  forged["limits"] = "memory=abc";
  EXPECT_FALSE(ParseJoinSecret(token->secret.name, forged).ok());
}

TEST_F(JoinTokenTest, TextsThatAreNoTokensAreRefusedWithoutShowingThem) {
  const std::string good = Make({})->text;
  for (const std::string& text : {std::string(),
                                  std::string("berth1."),
                                  good + "x",
                                  "berth2" + good.substr(6),
                                  good.substr(0, good.size() - 1)}) {
    const auto parts = ParseJoinToken(text);
    ASSERT_FALSE(parts.ok()) << text;
    EXPECT_EQ(parts.status().message().find(good.substr(80)), std::string::npos);
  }
}

TEST(Pattern, AStarStandsForAnything) {
  EXPECT_TRUE(MatchesPattern("*", "a"));
  EXPECT_TRUE(MatchesPattern("a-*", "a-1"));
  EXPECT_TRUE(MatchesPattern("a-*-z", "a-b-c-z"));
  EXPECT_TRUE(MatchesPattern("a", "a"));
  EXPECT_FALSE(MatchesPattern("a-*", "b-a-1"));
  EXPECT_FALSE(MatchesPattern("a", "ab"));
  EXPECT_FALSE(MatchesPattern("*-z", "a-zz"));
}

TEST_F(JoinTokenTest, C15_ARequestBecomesACertificateForTheNameThatTheServerChose) {
  const auto request = MakeRequest();
  ASSERT_TRUE(request.ok()) << request.status();
  const ClientSubject subject{
      .user = "berth:host:a", .groups = {"berth:hosts"}, .lifetime = Duration::Hours(24)};
  const auto pem = authority_.SignRequest(request->request_pem, subject, kNow);
  ASSERT_TRUE(pem.ok()) << pem.status();
  EXPECT_TRUE(authority_.HasSigned(*pem));
  const auto certificate = ParseCertificatePem(*pem);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->common_name, "berth:host:a");
  EXPECT_EQ(certificate->organizations, std::vector<std::string>{"berth:hosts"});
  EXPECT_TRUE(certificate->for_clients);
  EXPECT_FALSE(certificate->for_servers);
  EXPECT_EQ(certificate->not_before, kNow - Duration::Minutes(5));
  EXPECT_EQ(certificate->not_after, kNow + Duration::Hours(24));
  EXPECT_EQ(certificate->key_hash, *RequestKeyHash(request->request_pem));
}

TEST(CertificateRequest, TheSameKeyHasTheSameHashInEveryRequest) {
  const auto first = MakeRequest();
  const auto again = MakeRequestFor(first->key_pem);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*RequestKeyHash(first->request_pem), *RequestKeyHash(*again));
  EXPECT_NE(*RequestKeyHash(first->request_pem), *RequestKeyHash(MakeRequest()->request_pem));
}

TEST(CertificateRequest, TextsThatAreNoRequestsAreRefused) {
  EXPECT_FALSE(RequestKeyHash("").ok());
  EXPECT_FALSE(RequestKeyHash("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n").ok());
  EXPECT_FALSE(RequestKeyHash(std::string(100'000, 'a')).ok());
  const std::string pem = MakeRequest()->request_pem;
  EXPECT_FALSE(RequestKeyHash(pem + pem).ok());
  std::string forged = pem;  // a byte of the signature
  forged[forged.size() - 60] = forged[forged.size() - 60] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(RequestKeyHash(forged).ok());
}

}  // namespace
}  // namespace berth::pki
