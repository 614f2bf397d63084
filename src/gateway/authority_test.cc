// SPDX-License-Identifier: Apache-2.0
// Defends: while the authority is changed hosts are told to renew, and stay; when the old one is
// retired, those who have not are cut off, and no others.
#include <gtest/gtest.h>

#include "gateway/gateway_world.h"
#include "pki/certificate_request.h"

namespace berth::gateway {
namespace {

class AuthorityTest : public testing::Test {
 protected:
  // What a poollet does when it is told to.
  Status Renew(TestHost& host) {
    agent::RenewRequest request;
    request.set_csr_pem(pki::MakeRequest()->request_pem);
    const auto answer = world_.Run(
        host.channel().Call("/berth.agent.v1.AgentService/Renew", request.SerializeAsString(), {}));
    if (answer.ok()) EXPECT_TRUE(renewed_.ParseFromString(*answer));
    return answer.status();
  }
  static size_t Wishes(const TestHost& host) {
    size_t count = 0;
    for (const auto& message : host.received) count += message.batch().grant().renew() ? 1 : 0;
    return count;
  }
  std::string HeldBy(size_t index) {
    return world_.gateway().Certificates().at(index).certificate.authority;
  }

  GatewayWorld world_;
  agent::RenewResponse renewed_;
};

TEST_F(AuthorityTest, R9_1_HostsRenewWithinTheirSessionAndOnlyThoseWhoDidNotAreCutOff) {
  world_.Enrol("a");
  world_.Enrol("b");
  TestHost a(world_, "a");
  TestHost b(world_, "b");
  ASSERT_NE(a.Join("pool-a"), "");
  ASSERT_NE(b.Join("pool-b"), "");
  const size_t grants = a.grants();
  ASSERT_TRUE(world_.Until([&] { return a.grants() > grants; }));
  EXPECT_EQ(Wishes(a), 0U);

  world_.temp_authority().Rotate(world_.loop().WallNow());
  world_.gateway().OnAuthority();
  const std::string old = world_.authority().names()[0];
  const std::string next = world_.authority().names()[1];
  ASSERT_TRUE(world_.Until([&] { return Wishes(a) > 0 && Wishes(b) > 0; }));
  EXPECT_EQ(HeldBy(0), old);
  EXPECT_EQ(world_.gateway().Certificates().at(0).pools,
            std::vector<std::string>{"machinepool/pool-a"});

  ASSERT_TRUE(Renew(a).ok());
  EXPECT_EQ(renewed_.ca_pem(), world_.authority().certificate_pem());
  EXPECT_EQ(pki::ParseCertificatePem(renewed_.certificate_pem())->issuer, next);
  EXPECT_EQ(HeldBy(0), next);
  EXPECT_EQ(HeldBy(1), old);
  const auto record = client::ParseHostRecord(
      *world_.Run(client::ReadRecord(world_.client(), client::HostRecordName("a"))).value());
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->certificate.authority, next);
  EXPECT_GT(record->certificate.until, world_.loop().WallNow());
  const size_t wishes = Wishes(a);
  const size_t later = a.grants() + 2;
  ASSERT_TRUE(world_.Until([&] { return a.grants() >= later; }, Duration::Seconds(20)));
  EXPECT_LE(Wishes(a), wishes + 1);  // one may have been on its way

  world_.temp_authority().Retire(world_.loop().WallNow());
  world_.gateway().OnAuthority();
  EXPECT_TRUE(world_.Until([&] { return b.refused() == kRevoked; }, Duration::Seconds(1)));
  EXPECT_EQ(world_.gateway().sessions(), 1);
  EXPECT_EQ(a.refused(), "");
  EXPECT_TRUE(Renew(b).Is(Reason::kUnauthorized));
  EXPECT_FALSE(b.Connect());
  EXPECT_EQ(b.refused(), kRevoked);
  // The session that began with a certificate of the old one goes on.
  const size_t before = a.grants();
  EXPECT_TRUE(world_.Until([&] { return a.grants() > before; }));
}

}  // namespace
}  // namespace berth::gateway
