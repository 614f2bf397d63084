// SPDX-License-Identifier: Apache-2.0
// The gateway and the session of a poollet, each of them with versions that the other one may not
// know.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gateway/gateway_world.h"
#include "poollet/session/session.h"

namespace berth::gateway {
namespace {

// A host without pools.
class BareHost final : public poollet::SessionPeer {
 public:
  BareHost(GatewayWorld& world, poollet::ProtocolVersions versions)
      : world_(world), dialer_(MakeDialer(world)), credentials_(Credentials(world)) {
    poollet::SessionOptions options;
    options.versions = versions;
    session_.emplace(world.loop(), *dialer_, credentials_, *this, options);
    session_->Start();
  }
  ~BareHost() override { CHECK(world_.Run(session_->Close()).ok()); }

  const poollet::Session& session() const { return *session_; }
  const std::optional<agent::Welcome>& welcome() const { return welcome_; }

  std::string Hello() override {
    agent::HostMessage message;
    message.mutable_hello()->set_poollet_version("test");
    return message.SerializeAsString();
  }
  Status Welcomed(const agent::Welcome& welcome) override {
    welcome_ = welcome;
    return OkStatus();
  }
  std::vector<std::string> Announce() override {
    agent::HostMessage message;
    message.mutable_announce()->set_last(true);
    return {message.SerializeAsString()};
  }
  void Received(const agent::ServerBatch& /*batch*/) override {}
  void Synced(uint64_t /*revision*/, poollet::HistoryState /*history*/) override {}
  void HeartbeatSent(uint64_t /*number*/) override {}
  void Granted(uint64_t /*number*/, Duration /*ttl*/) override {}
  std::optional<std::string> TakeBatch() override { return std::nullopt; }
  void Ended(const Status& /*why*/) override {}
  rt::Task<Status> Tunnel(agent::TunnelRequest /*request*/,
                          net::MessageStream* /*stream*/) override {
    co_return OkStatus();
  }
  std::vector<std::string> Servers() const override { return {"server:7443"}; }

 private:
  static std::unique_ptr<net::RpcDialer> MakeDialer(GatewayWorld& world) {
    world.network().AddNode("a", world.loop());
    return world.network().NewDialer("a");
  }
  static net::RpcCredentials Credentials(GatewayWorld& world) {
    const pki::Credentials issued = world.CredentialsOf("a");
    return {.ca_pem = "",
            .ca_pin = "",
            .certificate_pem = issued.certificate_pem,
            .key_pem = issued.key_pem};
  }

  GatewayWorld& world_;
  std::unique_ptr<net::RpcDialer> dialer_;
  poollet::FixedCredentials credentials_;
  std::optional<agent::Welcome> welcome_;
  std::optional<poollet::Session> session_;
};

class VersionSkewTest : public testing::Test {
 protected:
  VersionSkewTest() { world_.Enrol("a"); }
  void ServerSpeaks(uint32_t min, uint32_t max) {
    world_.versions = {.min = min, .max = max};
    world_.RestartGateway();
  }
  GatewayWorld world_;
};

TEST_F(VersionSkewTest, R5_8_ANewerServerSpeaksTheOldVersionWithAnOldHost) {
  ServerSpeaks(1, 2);
  const BareHost host(world_, {.min = 1, .max = 1});
  ASSERT_TRUE(world_.Until([&] { return host.session().is_synced(); }));
  EXPECT_EQ(host.session().version(), 1);
  EXPECT_EQ(host.welcome()->versions().min(), 1);
  EXPECT_EQ(host.welcome()->versions().max(), 2);
}

TEST_F(VersionSkewTest, R5_8_ANewerHostSpeaksTheOldVersionWithAnOldServer) {
  ServerSpeaks(1, 1);
  const BareHost host(world_, {.min = 1, .max = 2});
  ASSERT_TRUE(world_.Until([&] { return host.session().is_synced(); }));
  EXPECT_EQ(host.session().version(), 1);
}

TEST_F(VersionSkewTest, R5_8_OfTwoCommonVersionsTheHigherIsSpoken) {
  ServerSpeaks(1, 3);
  const BareHost host(world_, {.min = 1, .max = 2});
  ASSERT_TRUE(world_.Until([&] { return host.session().is_synced(); }));
  EXPECT_EQ(host.session().version(), 2);
}

TEST_F(VersionSkewTest, R5_8_WithoutACommonVersionTheHostLearnsBothRanges) {
  ServerSpeaks(2, 3);
  const BareHost host(world_, {.min = 1, .max = 1});
  ASSERT_TRUE(world_.Until([&] { return !host.session().last_error().empty(); }));
  EXPECT_EQ(host.session().last_error(),
            "Version: protocol versions 1 to 1 are not spoken here: 2 to 3 are");
  EXPECT_FALSE(host.welcome().has_value());
  EXPECT_EQ(world_.gateway().sessions(), 0);
}

}  // namespace
}  // namespace berth::gateway
