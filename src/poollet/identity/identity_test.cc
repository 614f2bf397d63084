// SPDX-License-Identifier: Apache-2.0
// A host joins once, keeps its key to itself, and stays a member without anybody's help.
#include "poollet/identity/identity.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "berth/agent/v1/agent.pb.h"
#include "net/sim/sim_network.h"
#include "pki/certificate.h"
#include "pki/certificate_authority.h"
#include "pki/certificate_request.h"
#include "pki/join_token.h"
#include "poollet/disk/sim_disk.h"
#include "rt/sim/run_task.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;

class IdentityTest : public testing::Test {
 protected:
  IdentityTest()
      : folder_(testing::TempDir() + "/identity_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    auto authority = pki::CertificateAuthority::LoadOrCreate(folder_, loop_.WallNow());
    CHECK(authority.ok()) << authority.status();
    authority_.emplace(*std::move(authority));
    network_.AddNode("server", loop_);
    network_.AddNode("host", loop_);
    dialer_ = network_.NewDialer("host");
    Serve();
    options_.host = "h1";
    options_.servers = {"server:7443"};
    options_.token = Token(authority_->certificate_pem());
  }
  ~IdentityTest() override {
    CHECK(rt::RunTask(loop_, server_->Stop()).ok());
    std::filesystem::remove_all(folder_);
  }

  std::string Token(const std::string& ca_pem) {
    const pki::JoinGrant grant;
    auto token = pki::MakeJoinToken(
        pki::SystemEntropy(), ca_pem, 1, grant, Duration::Hours(1), loop_.WallNow());
    CHECK(token.ok()) << token.status();
    return token->text;
  }

  void Serve() {
    pki::ServerNames names;
    names.dns_names = {"server"};
    auto credentials = authority_->IssueServer(names, loop_.WallNow());
    CHECK(credentials.ok()) << credentials.status();
    net::SimServerOptions options;
    options.certificate_pem = credentials->certificate_pem + authority_->certificate_pem();
    net::RpcRoutes routes;
    routes.unary["/berth.agent.v1.AgentService/Join"].handler =
        [this](net::RpcCall, std::string request) { return Join(std::move(request)); };
    routes.unary["/berth.agent.v1.AgentService/Renew"].handler = [this](net::RpcCall call,
                                                                        std::string request) {
      return Renew(std::move(call), std::move(request));
    };
    auto server = network_.Serve("server", std::move(options), std::move(routes));
    CHECK(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  Result<std::string> Sign() {
    pki::ClientSubject subject;
    subject.user = "berth:host:h1";
    subject.groups = {"berth:hosts"};
    subject.lifetime = Duration::Hours(24);
    TRY(auto credentials, authority_->IssueClient(subject, loop_.WallNow()));
    return credentials.certificate_pem;
  }

  rt::Task<Result<std::string>> Join(std::string bytes) {
    pb::JoinRequest request;
    CHECK(request.ParseFromString(bytes));
    ++joins_;
    token_seen_ = request.token();
    CO_TRY(std::string key, pki::RequestKeyHash(request.csr_pem()));
    keys_.push_back(std::move(key));
    if (loses_answers_) co_return Unavailable("the answer was lost");
    pb::JoinResponse response;
    CO_TRY(*response.mutable_certificate_pem(), Sign());
    response.set_ca_pem(authority_->certificate_pem());
    response.set_host(request.host());
    response.set_cluster_id("c1");
    response.add_servers("server:7443");
    co_return response.SerializeAsString();
  }

  rt::Task<Result<std::string>> Renew(net::RpcCall call, std::string bytes) {
    pb::RenewRequest request;
    CHECK(request.ParseFromString(bytes));
    CO_TRY_STATUS(pki::RequestKeyHash(request.csr_pem()));
    ++renewals_;
    shown_ = call.peer.certificate_der;
    if (loses_answers_) co_return Unavailable("the answer was lost");
    pb::RenewResponse response;
    CO_TRY(*response.mutable_certificate_pem(), Sign());
    response.set_ca_pem(authority_->certificate_pem());
    co_return response.SerializeAsString();
  }

  void Change(const Result<std::string>& text) {
    CHECK(text.ok()) << text.status();
    CHECK(authority_->Replace(*text, loop_.WallNow()).ok());
  }
  // A change of the authority from its beginning to its end; the server shows the next one.
  void ReplaceAuthority() {
    const WallTime now = loop_.WallNow();
    Change(authority_->Rotated({.id = "x", .signs_from = now, .switch_after = now}, now));
    Change(authority_->Retired("y"));
    CHECK(rt::RunTask(loop_, server_->Stop()).ok());
    Serve();
  }

  Result<std::unique_ptr<Identity>> Open() {
    return rt::RunTask(loop_, Identity::Open(loop_, disk_, *dialer_, options_));
  }

  const std::string folder_;
  rt::SimLoop loop_{3};
  net::SimNetwork network_{loop_};
  SimDisk disk_{3};
  std::optional<pki::CertificateAuthority> authority_;
  std::unique_ptr<net::RpcDialer> dialer_;
  std::unique_ptr<net::RpcServer> server_;
  IdentityOptions options_;
  int joins_ = 0;
  int renewals_ = 0;
  bool loses_answers_ = false;
  std::string token_seen_;
  std::string shown_;
  std::vector<std::string> keys_;
};

TEST_F(IdentityTest, C15_AHostJoinsOnceAndIsKnownFromThenOn) {
  auto identity = Open();
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ((*identity)->stored().host, "h1");
  EXPECT_EQ((*identity)->stored().cluster_id, "c1");
  options_.token.clear();
  identity = Open();
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(joins_, 1);
  const auto credentials = rt::RunTask(loop_, (*identity)->Current());
  ASSERT_TRUE(credentials.ok());
  EXPECT_EQ(credentials->certificate_pem, (*identity)->stored().certificate_pem);
}

TEST_F(IdentityTest, TheTokenIsNotSentToAServerOfAnotherAuthority) {
  const std::string other = folder_ + "_other";
  std::filesystem::remove_all(other);
  auto stranger = pki::CertificateAuthority::LoadOrCreate(other, loop_.WallNow());
  ASSERT_TRUE(stranger.ok());
  options_.token = Token(stranger->certificate_pem());
  const auto identity = Open();
  ASSERT_FALSE(identity.ok());
  EXPECT_EQ(joins_, 0);
  EXPECT_EQ(token_seen_, "");
  std::filesystem::remove_all(other);
}

TEST_F(IdentityTest, ACrashBetweenSigningAndSavingAsksAgainWithTheSameKey) {
  loses_answers_ = true;
  EXPECT_FALSE(Open().ok());
  loses_answers_ = false;
  EXPECT_TRUE(Open().ok());
  ASSERT_EQ(keys_.size(), 2U);
  EXPECT_EQ(keys_[0], keys_[1]);
}

TEST_F(IdentityTest, WithoutATokenAndWithoutAnIdentityThePersonIsToldWhatToDo) {
  options_.token.clear();
  const auto identity = Open();
  EXPECT_EQ(identity.status().reason(), Reason::kUnauthorized);
  EXPECT_NE(identity.status().message().find("join-token"), std::string_view::npos);
  options_.token = "not a token";
  EXPECT_FALSE(Open().ok());
}

TEST_F(IdentityTest, ACertificateIsRenewedAtHalfOfItsLife) {
  auto identity = Open();
  ASSERT_TRUE(identity.ok());
  const std::string key = (*identity)->stored().key_pem;
  loop_.RunFor(Duration::Hours(11));
  ASSERT_TRUE(rt::RunTask(loop_, (*identity)->Current()).ok());
  EXPECT_EQ(renewals_, 0);
  loop_.RunFor(Duration::Hours(2));
  ASSERT_TRUE(rt::RunTask(loop_, (*identity)->Current()).ok());
  EXPECT_EQ(renewals_, 1);
  EXPECT_NE((*identity)->stored().key_pem, key) << "with a new key";
  EXPECT_NE(shown_, "");
}

TEST_F(IdentityTest, ARenewalThatFailsKeepsTheCertificateUntilItExpires) {
  auto identity = Open();
  ASSERT_TRUE(identity.ok());
  loses_answers_ = true;
  loop_.RunFor(Duration::Hours(13));
  EXPECT_TRUE(rt::RunTask(loop_, (*identity)->Current()).ok());
  loop_.RunFor(Duration::Hours(20));
  EXPECT_FALSE(rt::RunTask(loop_, (*identity)->Current()).ok());
  loses_answers_ = false;
  EXPECT_TRUE(rt::RunTask(loop_, (*identity)->Current()).ok()) << "the door for late renewal";
}

TEST_F(IdentityTest, SessionsThatLastRenewInTheBackground) {
  auto identity = Open();
  ASSERT_TRUE(identity.ok());
  (*identity)->Start();
  loop_.RunFor(Duration::Hours(24 * 3));
  EXPECT_GE(renewals_, 5);
  EXPECT_TRUE(rt::RunTask(loop_, (*identity)->Close()).ok());
}

TEST_F(IdentityTest, AnotherNameForAHostThatJoinedIsRefused) {
  ASSERT_TRUE(Open().ok());
  options_.host = "h2";
  EXPECT_EQ(Open().status().reason(), Reason::kBadRequest);
}

TEST_F(IdentityTest, AWishOfTheServerRenewsOnceAndTheHostLearnsBothAuthorities) {
  auto identity = Open();
  ASSERT_TRUE(identity.ok());
  (*identity)->Start();
  const WallTime now = loop_.WallNow();
  Change(authority_->Rotated({.id = "x", .signs_from = now, .switch_after = now}, now));
  for (int i = 0; i < 3; ++i) (*identity)->RenewSoon();
  loop_.RunFor(Duration::Seconds(2));
  EXPECT_EQ(renewals_, 1);
  EXPECT_EQ((*identity)->stored().ca_pem, authority_->certificate_pem());
  EXPECT_EQ(authority_->names().size(), 2U);
  const auto issuer = pki::ParseCertificatePem((*identity)->stored().certificate_pem)->issuer;
  EXPECT_EQ(issuer, authority_->names()[1]);
  // It is kept.
  options_.token.clear();
  EXPECT_EQ((*Open())->stored().ca_pem, authority_->certificate_pem());
  EXPECT_TRUE(rt::RunTask(loop_, (*identity)->Close()).ok());
}

TEST_F(IdentityTest, AHostThatMissedAChangeOfTheAuthorityIsToldWhatToDoAndJoinsAnew) {
  ASSERT_TRUE(Open().ok());
  const std::string old_token = std::exchange(options_.token, "");
  const std::string key = (*Open())->stored().key_pem;
  ReplaceAuthority();
  const auto dial = [&](Identity& identity) {
    const auto credentials = rt::RunTask(loop_, identity.Current());
    if (!credentials.ok()) return credentials.status();
    const auto channel =
        rt::RunTask(loop_, dialer_->Dial("server:7443", *credentials, Duration::Seconds(2)));
    return channel.ok() ? OkStatus() : identity.Rejected(channel.status());
  };
  for (const std::string& token : {std::string(), old_token}) {
    options_.token = token;
    auto lost = Open();
    ASSERT_TRUE(lost.ok());
    for (int i = 0; i < 2; ++i) {
      const Status told = dial(**lost);
      EXPECT_TRUE(told.Is(Reason::kUnauthorized)) << told;
      EXPECT_NE(told.message().find("berth pool join-token"), std::string_view::npos) << told;
    }
  }
  EXPECT_EQ(joins_, 1);
  // With a token of the new one it comes back, by the key that it is known by.
  options_.token = Token(authority_->certificate_pem());
  auto back = Open();
  ASSERT_TRUE(back.ok());
  EXPECT_FALSE(dial(**back).ok());
  EXPECT_TRUE(dial(**back).ok());
  EXPECT_EQ(joins_, 2);
  ASSERT_EQ(keys_.size(), 2U);
  EXPECT_EQ(keys_[0], keys_[1]);
  EXPECT_EQ((*back)->stored().key_pem, key);
  EXPECT_EQ((*back)->stored().ca_pem, authority_->certificate_pem());
}

TEST_F(IdentityTest, TheSameWhenTheCertificateHasExpiredMeanwhile) {
  ASSERT_TRUE(Open().ok());
  ReplaceAuthority();
  loop_.RunFor(Duration::Hours(48));
  options_.token = Token(authority_->certificate_pem());
  auto back = Open();
  ASSERT_TRUE(back.ok());
  const Status told = rt::RunTask(loop_, (*back)->Current()).status();
  EXPECT_NE(told.message().find("berth pool join-token"), std::string_view::npos) << told;
  EXPECT_TRUE(rt::RunTask(loop_, (*back)->Current()).ok());
  EXPECT_EQ(joins_, 2);
}

}  // namespace
}  // namespace berth::poollet
