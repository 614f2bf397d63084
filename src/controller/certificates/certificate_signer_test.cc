// SPDX-License-Identifier: Apache-2.0
// Defends: only what was approved is signed, pools are approved by right alone, and requests do not
// pile up.
#include "controller/certificates/certificate_signer.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "apiserver/registry/registry_world.h"
#include "client/certificates/test_requests.h"
#include "gateway/testing/temp_authority.h"
#include "pki/certificate.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::k8s::CertificateSigningRequest;
using apis::k8s::kCertificateSigningRequestKind;

class CertificateSignerTest : public testing::Test {
 protected:
  CertificateSignerTest() {
    signer_ = std::make_unique<CertificateSigner>(
        world_.loop(),
        world_.client(),
        world_.scheme(),
        authority_.get(),
        [this](const auto&, const client::PoolSubject& pool) { return pool.pool == trusted_; });
    scope_.Spawn("signer", signer_->Run());
  }
  ~CertificateSignerTest() override { EXPECT_TRUE(world_.Run(scope_.Close()).ok()); }

  void Ask(const std::string& name,
           std::string_view pem,
           std::string_view signer = client::kClientSigner) {
    CertificateSigningRequest request;
    request.metadata.name = name;
    request.spec.request.bytes = std::string(pem);
    request.spec.signer_name = std::string(signer);
    request.spec.usages = {"client auth"};
    const auto made = world_.Run(
        world_.client().Create(meta::Object::Of(kCertificateSigningRequestKind, request), {}));
    ASSERT_TRUE(made.ok()) << made.status();
    world_.loop().RunFor(Duration::Seconds(1));
  }
  std::optional<CertificateSigningRequest> Find(const std::string& name) {
    auto found = world_.Run(world_.client().Get(kCertificateSigningRequestKind, {"", name}));
    if (!found.ok()) return std::nullopt;
    return found->as<CertificateSigningRequest>();
  }
  void Decide(const std::string& name, std::string_view decision) {
    auto found = world_.Run(world_.client().Get(kCertificateSigningRequestKind, {"", name}));
    ASSERT_TRUE(found.ok()) << found.status();
    found->as<CertificateSigningRequest>().status.conditions.push_back(
        {.type = std::string(decision), .status = "True", .last_update_time = Now()});
    client::WriteOptions options;
    options.subresource = client::Subresource::kStatus;
    const auto written = world_.Run(world_.client().Update(*std::move(found), options));
    ASSERT_TRUE(written.ok()) << written.status();
    world_.loop().RunFor(Duration::Seconds(1));
  }
  WallTime Now() { return WallTime::FromSeconds(world_.loop().WallNow().seconds()); }

  apiserver::RegistryWorld world_{31};
  gateway::TempAuthority authority_{world_.loop().WallNow()};
  std::string trusted_;
  rt::TaskScope scope_{world_.loop()};
  std::unique_ptr<CertificateSigner> signer_;
};

TEST_F(CertificateSignerTest, SignsWhatWasApproved) {
  Ask("jane", client::testing::kJane);
  EXPECT_TRUE(Find("jane")->status.certificate.bytes.empty());
  Decide("jane", apis::k8s::kCertificateApproved);
  const auto certificate = pki::ParseCertificatePem(Find("jane")->status.certificate.bytes);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->common_name, "jane");
  Ask("denied", client::testing::kJane);
  Decide("denied", apis::k8s::kCertificateDenied);
  EXPECT_TRUE(Find("denied")->status.certificate.bytes.empty());
}

TEST_F(CertificateSignerTest, SignsNothingThatTheRulesForbidWhoeverApprovedIt) {
  Ask("root", client::testing::kMasters);
  Decide("root", apis::k8s::kCertificateApproved);
  EXPECT_TRUE(Find("root")->status.certificate.bytes.empty());
  const auto root = Find("root");
  const auto* failed = apis::k8s::FindCondition(*root, apis::k8s::kCertificateFailed);
  ASSERT_NE(failed, nullptr);
  EXPECT_NE(failed->message.find("reserved"), std::string::npos) << failed->message;
  Ask("others", client::testing::kJane, "example.com/signer");
  Decide("others", apis::k8s::kCertificateApproved);
  EXPECT_TRUE(Find("others")->status.certificate.bytes.empty());
}

TEST_F(CertificateSignerTest, D3_ApprovesAPoolWhoseSenderMayBootstrapItAndNobodyElse) {
  Ask("waits", client::testing::kPool);
  EXPECT_TRUE(Find("waits")->status.conditions.empty());
  trusted_ = "alpha";
  Ask("alpha", client::testing::kPool, client::kPoolSigner);
  EXPECT_FALSE(Find("alpha")->status.certificate.bytes.empty());
  trusted_ = "beta";
  Ask("another", client::testing::kPool, client::kPoolSigner);
  EXPECT_TRUE(Find("another")->status.conditions.empty()) << "its sender may bootstrap beta";
  trusted_ = "";
  Ask("jane", client::testing::kJane);
  EXPECT_TRUE(Find("jane")->status.conditions.empty());
}

TEST_F(CertificateSignerTest, RemovesOldRequests) {
  Ask("pending", client::testing::kJane);
  Ask("others", client::testing::kJane, "example.com/signer");
  Ask("signed", client::testing::kJane);
  Decide("signed", apis::k8s::kCertificateApproved);
  world_.loop().RunFor(Duration::Minutes(50));
  EXPECT_TRUE(Find("signed"));
  world_.loop().RunFor(Duration::Minutes(11));
  EXPECT_FALSE(Find("signed"));
  world_.loop().RunFor(Duration::Hours(22));
  EXPECT_TRUE(Find("pending"));
  world_.loop().RunFor(Duration::Hours(2));
  EXPECT_FALSE(Find("pending"));
  EXPECT_FALSE(Find("others"));
}

}  // namespace
}  // namespace berth::controller
