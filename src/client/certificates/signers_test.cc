// SPDX-License-Identifier: Apache-2.0
// Defends: what our signers sign is a client with a name of its own, and nobody becomes an
// administrator, a host or another pool by asking for it.
#include "client/certificates/signers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apis/registry.h"
#include "client/certificates/pool_names.h"
#include "client/certificates/test_requests.h"

namespace berth::client {
namespace {

using Spec = apis::k8s::CertificateSigningRequestSpec;

const meta::Scheme& Served() {
  static const meta::Scheme scheme(apis::AllKinds(), {"ironcore.dev", "OpenKCM.dev"});
  return scheme;
}

Spec Ask(std::string_view pem, std::string_view signer = kClientSigner) {
  return {.request = {.bytes = std::string(pem)},
          .signer_name = std::string(signer),
          .usages = {"digital signature", "client auth"}};
}

std::string WhyNot(const Spec& spec, const meta::Scheme& scheme = Served()) {
  const auto subject = SubjectToSign(scheme, spec);
  return subject.ok() ? "" : std::string(subject.status().message());
}

TEST(Signers, SignAPersonWithItsGroups) {
  Spec spec = Ask(testing::kJane);
  const auto subject = SubjectToSign(Served(), spec);
  ASSERT_TRUE(subject.ok()) << subject.status();
  EXPECT_EQ(subject->user, "jane");
  EXPECT_EQ(subject->groups, (std::vector<std::string>{"devs", "ops"}));
  EXPECT_EQ(subject->lifetime, pki::kClientLifetime);
  EXPECT_FALSE(PoolSubjectOf(Served(), *subject));
  spec.expiration_seconds = 600;
  EXPECT_EQ(SubjectToSign(Served(), spec)->lifetime, Duration::Seconds(600));
  spec.expiration_seconds = 2'000'000'000;
  EXPECT_EQ(SubjectToSign(Served(), spec)->lifetime, pki::kClientLifetime);
}

TEST(Signers, SignNobodyWhoWouldBeAPartOfTheCluster) {
  EXPECT_EQ(WhyNot(Ask(testing::kMasters)),
            "\"system:masters\" is reserved: no request gets a name that begins with \"system:\"");
  EXPECT_EQ(WhyNot(Ask(testing::kSystem)),
            "\"system:admin\" is reserved: no request gets a name that begins with \"system:\"");
  EXPECT_EQ(WhyNot(Ask(testing::kHost)),
            "\"berth:hosts\" is reserved: no request gets a name that begins with \"berth:\"");
}

TEST(Signers, SignNothingButAClient) {
  EXPECT_EQ(WhyNot(Ask(testing::kNobody)), "the request has no common name, or several");
  EXPECT_EQ(WhyNot(Ask(testing::kTwoNames)), "the request has no common name, or several");
  EXPECT_EQ(WhyNot(Ask(testing::kServer)),
            "the request names hosts or addresses, which no client's certificate has");
  Spec spec = Ask(testing::kJane);
  spec.usages = {"client auth", "cert sign"};
  EXPECT_EQ(WhyNot(spec),
            "usage \"cert sign\" is not signed: client auth, digital signature and key "
            "encipherment are");
  spec.usages = {"digital signature"};
  EXPECT_EQ(WhyNot(spec), "the usages lack \"client auth\"");
  EXPECT_NE(WhyNot(Ask("no request")), "");
}

TEST(Signers, SignAPoolThatNamesItselfExactly) {
  for (const std::string_view signer : {kClientSigner, kPoolSigner}) {
    const auto subject = SubjectToSign(Served(), Ask(testing::kPool, signer));
    ASSERT_TRUE(subject.ok()) << subject.status();
    const auto pool = PoolSubjectOf(Served(), *subject);
    ASSERT_TRUE(pool);
    EXPECT_EQ(pool->pool, "alpha");
    EXPECT_EQ(pool->subresource, "machinepoolclient");
    EXPECT_NE(WhyNot(Ask(testing::kPoolAndMore, signer)), "");
    EXPECT_NE(WhyNot(Ask(testing::kPoolOfAnotherGroup, signer)), "");
    // Servers may call their groups otherwise (--domains).
    EXPECT_NE(WhyNot(Ask(testing::kPoolOfAnotherDomain, signer)), "");
  }
  const auto disks = SubjectToSign(Served(), Ask(testing::kVolumePool));
  ASSERT_TRUE(disks.ok()) << disks.status();
  EXPECT_EQ(PoolSubjectOf(Served(), *disks)->subresource, "volumepoolclient");
  EXPECT_EQ(WhyNot(Ask(testing::kJane, kPoolSigner)),
            "berth.dev/pool-client signs for pools only, and \"jane\" is none");
}

TEST(Signers, KnowPoolsByTheirDomainsWhateverTheyAre) {
  for (const std::vector<std::string>& domains : std::vector<std::vector<std::string>>{
           {"example.org"}, {"Example.ORG", "ironcore.dev"}, {"ironcore.dev", "example.org"}}) {
    const meta::Scheme scheme(apis::AllKinds(), domains);
    const auto subject = SubjectToSign(scheme, Ask(testing::kPoolOfAnotherDomain, kPoolSigner));
    ASSERT_TRUE(subject.ok()) << domains.front() << ": " << subject.status();
    const auto pool = PoolSubjectOf(scheme, *subject);
    ASSERT_TRUE(pool) << domains.front();
    EXPECT_EQ(pool->pool, "alpha");
    EXPECT_EQ(pool->subresource, "machinepoolclient");
  }
  const meta::Scheme other(apis::AllKinds(), {"example.com"});
  EXPECT_EQ(WhyNot(Ask(testing::kPool), other),
            "a pool's certificate has its name and its one group, such as "
            "\"compute.example.com:system:machinepool:NAME\" and "
            "\"compute.example.com:system:machinepools\"");
}

TEST(PoolNames, OfOnePoolHaveOneIdentity) {
  const std::string identity = "compute.*:system:machinepool:alpha";
  const std::vector<std::string> groups = {"compute.ironcore.dev:system:machinepools"};
  for (const std::string user : {"compute.ironcore.dev:system:machinepool:alpha",
                                 "compute.IRONCORE.dev:system:machinepool:alpha",
                                 "Compute.openkcm.dev:system:machinepool:alpha"}) {
    EXPECT_TRUE(PoolNameOf(Served(), user, groups)) << user;
    EXPECT_EQ(IdentityOf(user), identity) << user;
  }
  EXPECT_EQ(IdentityOf("storage.ironcore.dev:system:volumepool:alpha"),
            "storage.*:system:volumepool:alpha");
  for (const std::string other : {"jane.doe", "system:admin", "jane:system:doe", ""}) {
    EXPECT_EQ(IdentityOf(other), other);
  }
}

}  // namespace
}  // namespace berth::client
