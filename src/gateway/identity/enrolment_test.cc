// SPDX-License-Identifier: Apache-2.0
// Hosts get an identity exactly if an operator's token says so, and keep it exactly as long as
// nobody revokes it (PROTOCOL 9.1, checklist C15).
#include "gateway/identity/enrolment.h"

#include <gtest/gtest.h>

#include "apis/k8s/config_map.h"
#include "apis/k8s/secret.h"
#include "apiserver/registry/registry_world.h"
#include "berth/agent/v1/agent.pb.h"
#include "gateway/identity/host_identity.h"
#include "gateway/testing/temp_authority.h"
#include "pki/certificate.h"
#include "pki/certificate_request.h"
#include "pki/pem.h"

namespace berth::gateway {
namespace {

namespace agent = berth::agent::v1;

class EnrolmentTest : public testing::Test {
 protected:
  EnrolmentTest() { world_.MakeNamespace(std::string(client::kRecordNamespace)); }

  std::string MakeToken(const pki::JoinGrant& grant = {},
                        Duration ttl = pki::kJoinTokenLifetime,
                        uint64_t incarnation = 1) {
    const auto token = pki::MakeJoinToken(pki::SystemEntropy(),
                                          authority_.get().certificate_pem(),
                                          incarnation,
                                          grant,
                                          ttl,
                                          world_.loop().WallNow());
    CHECK(token.ok()) << token.status();
    apis::k8s::Secret secret;
    secret.metadata.namespace_ = pki::kTokenNamespace;
    secret.metadata.name = token->secret.name;
    secret.type = pki::kJoinTokenSecretType;
    for (const auto& [name, value] : token->secret.data) secret.data[name].bytes = value;
    const auto made = world_.Run(
        world_.client().Create(meta::Object::Of(apis::k8s::kSecretKind, std::move(secret)), {}));
    CHECK(made.ok()) << made.status();
    return token->text;
  }

  Result<agent::JoinResponse> Join(const std::string& token,
                                   const std::string& host,
                                   const std::string& csr,
                                   const std::string& address = "10.0.0.1:4000") {
    agent::JoinRequest request;
    request.set_token(token);
    request.set_host(host);
    request.set_csr_pem(csr);
    request.mutable_versions()->set_min(1);
    request.mutable_versions()->set_max(1);
    net::RpcCall call;
    call.peer.address = address;
    TRY(std::string bytes, world_.Run(enrolment_.Join(call, request.SerializeAsString())));
    agent::JoinResponse response;
    CHECK(response.ParseFromString(bytes));
    return response;
  }

  Result<agent::RenewResponse> Renew(const std::string& certificate_pem, const std::string& csr) {
    agent::RenewRequest request;
    request.set_csr_pem(csr);
    net::RpcCall call;
    call.peer.certificate_der = (*pki::PemDecode(pki::kPemCertificate, certificate_pem))[0];
    TRY(std::string bytes, world_.Run(enrolment_.Renew(call, request.SerializeAsString())));
    agent::RenewResponse response;
    CHECK(response.ParseFromString(bytes));
    return response;
  }

  apiserver::RegistryWorld world_{11};
  TempAuthority authority_{world_.loop().WallNow()};
  client::EventRecorder events_{world_.loop(), world_.client(), world_.scheme(), "berth-gateway"};
  client::Revocations revocations_;
  bool leads_ = true;
  Enrolment enrolment_{{world_.loop(),
                        world_.client(),
                        authority_.get(),
                        events_,
                        revocations_,
                        [this] { return leads_; }},
                       {.id = "6a2b7c1e-0f63-4a36-9d21-3b2f8d1f7a10", .incarnation = 1},
                       {"berth-1:7443"}};
};

TEST_F(EnrolmentTest, C15_ATokenBecomesACertificateOfOneDay) {
  const auto request = pki::MakeRequest();
  const auto joined = Join(MakeToken(), "host-a", request->request_pem);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->host(), "host-a");
  EXPECT_EQ(joined->ca_pem(), authority_.get().certificate_pem());
  EXPECT_EQ(joined->servers(0), "berth-1:7443");
  const auto certificate = pki::ParseCertificatePem(joined->certificate_pem());
  ASSERT_TRUE(certificate.ok());
  EXPECT_EQ(certificate->common_name, "berth:host:host-a");
  EXPECT_EQ(certificate->organizations, std::vector<std::string>{"berth:hosts"});
  const WallTime now = world_.loop().WallNow();
  EXPECT_EQ(certificate->not_after.seconds(), (now + Duration::Hours(24)).seconds());
  EXPECT_EQ(certificate->not_before.seconds(), (now - Duration::Minutes(5)).seconds());
}

TEST_F(EnrolmentTest, R9_1_TheSameKeyMayUseItsTokenAgainAnotherMayNot) {
  const std::string token = MakeToken();
  const auto first = pki::MakeRequest();
  const auto second = pki::MakeRequest();
  ASSERT_TRUE(Join(token, "a", first->request_pem).ok());
  EXPECT_TRUE(Join(token, "a", first->request_pem).ok());
  EXPECT_TRUE(Join(token, "a", second->request_pem).status().Is(Reason::kUnauthorized));
  EXPECT_TRUE(Join(token, "b", first->request_pem).status().Is(Reason::kUnauthorized));
}

TEST_F(EnrolmentTest, R9_1_ExpiredForgedForeignAndRestoredTokensAreRefusedWithTheReason) {
  const auto request = pki::MakeRequest();
  const std::string expired = MakeToken({}, Duration::Seconds(10));
  const std::string older = MakeToken({}, pki::kJoinTokenLifetime, 0);
  std::string forged = MakeToken();
  forged.back() = forged.back() == 'A' ? 'B' : 'A';
  std::string foreign = MakeToken();
  foreign[7] = foreign[7] == '0' ? '1' : '0';
  world_.loop().RunFor(Duration::Seconds(11));
  const std::pair<std::string, std::string> cases[] = {
      {expired, "expired"}, {older, "restored"}, {forged, "unknown"}, {foreign, "another cluster"}};
  int address = 0;
  for (const auto& [token, word] : cases) {
    const auto joined =
        Join(token, "a", request->request_pem, "10.1.0." + std::to_string(++address));
    ASSERT_TRUE(joined.status().Is(Reason::kUnauthorized)) << joined.status();
    EXPECT_NE(joined.status().message().find(word), std::string::npos) << joined.status();
  }
}

TEST_F(EnrolmentTest, R9_1_ATokenIsBoundToANamePattern) {
  const auto request = pki::MakeRequest();
  const std::string token = MakeToken({.host_pattern = "rack1-*"});
  EXPECT_TRUE(Join(token, "rack2-a", request->request_pem).status().Is(Reason::kForbidden));
  EXPECT_TRUE(Join(token, "../etc", request->request_pem).status().Is(Reason::kBadRequest));
  EXPECT_TRUE(Join(token, "rack1-a", request->request_pem).ok());
}

TEST_F(EnrolmentTest, C16_ANameThatHasJoinedIsNotTakenOverWithAnotherKey) {
  ASSERT_TRUE(Join(MakeToken(), "a", pki::MakeRequest()->request_pem).ok());
  const auto thief = Join(MakeToken(), "a", pki::MakeRequest()->request_pem);
  EXPECT_TRUE(thief.status().Is(Reason::kAlreadyExists)) << thief.status();
  const std::string replacing = MakeToken({.replacement = pki::HostReplacement::kAllowed});
  EXPECT_TRUE(Join(replacing, "a", pki::MakeRequest()->request_pem).ok());
}

TEST_F(EnrolmentTest, R9_1_FailedAttemptsAreLimitedPerAddressAndEvented) {
  const auto request = pki::MakeRequest();
  std::string forged = MakeToken();
  forged.back() = forged.back() == 'A' ? 'B' : 'A';
  Status last;
  for (int i = 0; i < 20; ++i) last = Join(forged, "a", request->request_pem).status();
  EXPECT_TRUE(last.Is(Reason::kTooManyRequests)) << last;
  EXPECT_TRUE(Join(MakeToken(), "a", request->request_pem, "10.0.0.2:1").ok());
  EXPECT_GT(events_.queued(), 0);
  world_.loop().RunFor(Duration::Minutes(1));
  EXPECT_TRUE(Join(MakeToken(), "a", request->request_pem).ok());
}

TEST_F(EnrolmentTest, WeakAndForgedRequestsAreRefused) {
  EXPECT_TRUE(Join(MakeToken(), "a", "no request").status().Is(Reason::kBadRequest));
  net::RpcCall call;
  const auto answer = world_.Run(enrolment_.Join(call, "\xff\xff not a message"));
  EXPECT_TRUE(answer.status().Is(Reason::kBadRequest)) << answer.status();
}

TEST_F(EnrolmentTest, ACertificateIsRenewedWithTheSameOrANewKey) {
  const auto request = pki::MakeRequest();
  const auto joined = Join(MakeToken(), "a", request->request_pem);
  ASSERT_TRUE(joined.ok()) << joined.status();
  world_.loop().RunFor(Duration::Hours(12));
  const auto same = Renew(joined->certificate_pem(), *pki::MakeRequestFor(request->key_pem));
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(pki::ParseCertificatePem(same->certificate_pem())->common_name, "berth:host:a");
  const auto fresh = Renew(joined->certificate_pem(), pki::MakeRequest()->request_pem);
  EXPECT_TRUE(fresh.ok()) << fresh.status();
}

TEST_F(EnrolmentTest, AServerThatDoesNotLeadSignsNothing) {
  const auto request = pki::MakeRequest();
  const auto joined = Join(MakeToken(), "a", request->request_pem);
  ASSERT_TRUE(joined.ok()) << joined.status();
  leads_ = false;
  const std::string token = MakeToken();
  EXPECT_EQ(Join(token, "b", pki::MakeRequest()->request_pem).status().reason(),
            Reason::kUnavailable);
  EXPECT_EQ(
      Renew(joined->certificate_pem(), *pki::MakeRequestFor(request->key_pem)).status().reason(),
      Reason::kUnavailable);
}

TEST_F(EnrolmentTest, R9_1_LateRenewalWorksForThirtyDaysWithAKnownKeyOnly) {
  const auto request = pki::MakeRequest();
  const auto joined = Join(MakeToken(), "a", request->request_pem);
  const auto newer = pki::MakeRequest();
  const auto newest = pki::MakeRequest();
  const std::string csr = *pki::MakeRequestFor(newer->key_pem);
  world_.loop().RunFor(Duration::Hours(24 * 20));
  EXPECT_TRUE(Renew(joined->certificate_pem(), csr).ok());
  EXPECT_TRUE(Renew(joined->certificate_pem(), newest->request_pem).ok());
  // Two newer keys later the first is not known any more.
  EXPECT_TRUE(Renew(joined->certificate_pem(), csr).status().Is(Reason::kUnauthorized));
  const auto other = Join(MakeToken(), "b", pki::MakeRequest()->request_pem);
  world_.loop().RunFor(Duration::Hours(24 * 31 + 1));
  EXPECT_TRUE(Renew(other->certificate_pem(), csr).status().Is(Reason::kUnauthorized));
}

TEST_F(EnrolmentTest, ARevokedOrRemovedHostCannotRenew) {
  const auto request = pki::MakeRequest();
  const auto joined = Join(MakeToken(), "a", request->request_pem);
  revocations_ = client::Revocations({{"host.a", FormatRfc3339(world_.loop().WallNow())}});
  EXPECT_TRUE(
      Renew(joined->certificate_pem(), request->request_pem).status().Is(Reason::kUnauthorized));
  const auto other = Join(MakeToken(), "b", pki::MakeRequest()->request_pem);
  const auto removed = world_.Run(world_.client().Delete(
      apis::k8s::kConfigMapKind, {.namespace_ = "berth-system", .name = "host-b"}, {}));
  ASSERT_TRUE(removed.ok()) << removed;
  EXPECT_TRUE(
      Renew(other->certificate_pem(), request->request_pem).status().Is(Reason::kUnauthorized));
}

TEST_F(EnrolmentTest, R9_1_AHostThatRenewsAgainAndAgainIsToldToWaitAndOthersAreNot) {
  const auto request = pki::MakeRequest();
  const auto joined = Join(MakeToken(), "a", request->request_pem);
  const auto other = Join(MakeToken(), "b", pki::MakeRequest()->request_pem);
  const auto renewals = [&] {
    int count = 0;
    while (count < 100 && Renew(joined->certificate_pem(), request->request_pem).ok()) ++count;
    return count;
  };
  EXPECT_EQ(renewals(), Enrolment::kCertificatesBurst - 1) << "the first one came with the token";
  const Status refused = Renew(joined->certificate_pem(), request->request_pem).status();
  EXPECT_TRUE(refused.Is(Reason::kTooManyRequests)) << refused;
  EXPECT_EQ(refused.retry_after(), Duration::Seconds(10));
  EXPECT_TRUE(Renew(other->certificate_pem(), request->request_pem).ok());
  world_.loop().RunFor(Duration::Seconds(11));
  EXPECT_EQ(renewals(), 1);
}

TEST_F(EnrolmentTest, R9_1_AHostThatJoinsAgainAndAgainIsToldToWaitAndIsNoGuesser) {
  const std::string token = MakeToken();
  const auto request = pki::MakeRequest();
  int joins = 0;
  Status last;
  for (int i = 0; i < 50; ++i) {
    last = Join(token, "a", request->request_pem).status();
    joins += last.ok() ? 1 : 0;
  }
  EXPECT_EQ(joins, Enrolment::kCertificatesBurst);
  EXPECT_TRUE(last.Is(Reason::kTooManyRequests)) << last;
  EXPECT_EQ(last.retry_after(), Duration::Seconds(10));
  // Of the same address.
  EXPECT_TRUE(Join(MakeToken(), "b", pki::MakeRequest()->request_pem).ok());
  EXPECT_EQ(events_.queued(), 0U);
}

TEST_F(EnrolmentTest, C15_OnlyHostsCertificatesOpenASession) {
  const WallTime now = world_.loop().WallNow();
  const auto joined = Join(MakeToken(), "a", pki::MakeRequest()->request_pem);
  const std::string der = (*pki::PemDecode(pki::kPemCertificate, joined->certificate_pem()))[0];
  const auto read = [&](std::string_view bytes, Purpose purpose, WallTime at) {
    return ReadIdentity(bytes, purpose, revocations_, at);
  };
  EXPECT_EQ(read(der, Purpose::kSession, now).identity->host, "a");
  EXPECT_EQ(read("", Purpose::kSession, now).refusal.reason, kNoCertificate);
  EXPECT_EQ(read("garbage", Purpose::kSession, now).refusal.reason, kNotAHost);
  const WallTime late = now + Duration::Hours(25);
  EXPECT_EQ(read(der, Purpose::kSession, late).refusal.reason, kExpired);
  EXPECT_TRUE(read(der, Purpose::kRenewal, late).identity.has_value());
  const auto admin = authority_.get().IssueClient({.user = "berth-admin", .groups = {}}, now);
  const std::string admin_der = (*pki::PemDecode(pki::kPemCertificate, admin->certificate_pem))[0];
  EXPECT_EQ(read(admin_der, Purpose::kSession, now).refusal.reason, kNotAHost);
  // The name alone does not make a host: the group belongs to it.
  const auto fake = authority_.get().IssueClient({.user = "berth:host:a", .groups = {"x"}}, now);
  const std::string fake_der = (*pki::PemDecode(pki::kPemCertificate, fake->certificate_pem))[0];
  EXPECT_EQ(read(fake_der, Purpose::kSession, now).refusal.reason, kNotAHost);
}

TEST(AttemptLimiter, ServersHaveRoomForTheHostsThatTheyPassOn) {
  AttemptLimiter limiter;
  const Time now = Time::FromNanos(1);
  const auto attempts = [&](const std::string& address) {
    int count = 0;
    for (; limiter.MayTry(address, now) && count < 10'000; ++count) {
      limiter.CountFailure(address, now);
    }
    return count;
  };
  EXPECT_EQ(attempts("10.0.0.2:1"), AttemptLimiter::kBurst);
  limiter.SetServers({"10.0.0.2", "2001:db8::2"});
  EXPECT_EQ(attempts("10.0.0.2:1"), AttemptLimiter::kServerBurst);
  EXPECT_EQ(attempts("[::ffff:10.0.0.2]:1"), 0) << "the same one on a socket of both families";
  EXPECT_EQ(attempts("[2001:db8::2]:1"), AttemptLimiter::kServerBurst);
  EXPECT_EQ(attempts("10.0.0.3:1"), AttemptLimiter::kBurst);
  // The same list again gives nobody new attempts; who is no server any more has few.
  limiter.SetServers({"10.0.0.2", "2001:db8::2"});
  EXPECT_EQ(attempts("10.0.0.2:1"), 0);
  limiter.SetServers({});
  EXPECT_EQ(attempts("10.0.0.2:1"), AttemptLimiter::kBurst);
}

TEST(AttemptLimiter, ForgetsNobodyWhoIsStillGuessingAndIsBounded) {
  AttemptLimiter limiter;
  const Time now = Time::FromNanos(1);
  for (int i = 0; i < 10'000; ++i) {
    limiter.CountFailure("10." + std::to_string(i) + ":1", now);
  }
  EXPECT_LE(limiter.size(), AttemptLimiter::kAddressesMax);
  EXPECT_FALSE(limiter.MayTry("192.0.2.1:1", now));
  EXPECT_TRUE(limiter.MayTry("192.0.2.1:1", now + Duration::Minutes(2)));
}

}  // namespace
}  // namespace berth::gateway
