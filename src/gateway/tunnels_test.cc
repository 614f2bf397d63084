// SPDX-License-Identifier: Apache-2.0
// Tunnels end with the session that they were opened for, whatever their host does, and a host
// carries only so many of them (PROTOCOL 5.8, 9.1).
#include <gtest/gtest.h>

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/records/revocations.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

// One conversation, with what either end has seen of it.
struct Conversation {
  std::unique_ptr<fleet::Tunnel> tunnel;
  std::optional<Status> opened;
  std::string heard_by_user;
  bool is_over_for_user = false;
  std::string heard_by_host;
  bool is_over_for_host = false;
};

rt::Task<Status> Listen(Gateway* gateway, std::string pool, std::string uid, Conversation* it) {
  const std::string what = "console";
  std::map<std::string, std::string> options;
  auto tunnel = co_await gateway->OpenTunnel(pool, uid, 1, what, options);
  it->opened = tunnel.status();
  if (!tunnel.ok()) co_return OkStatus();
  it->tunnel = *std::move(tunnel);
  for (;;) {
    CO_TRY(std::optional<fleet::TunnelFrame> came, co_await it->tunnel->Read());
    if (!came) break;
    it->heard_by_user += came->data;
  }
  it->is_over_for_user = true;
  co_return OkStatus();
}

// A host's end that is ended by nothing but its call: its session does not matter to it.
rt::Task<Status> Carry(TestHost* host, std::string ticket, Conversation* it) {
  net::RpcOptions options;
  const std::string method = "/berth.agent.v1.AgentService/Tunnel";
  CO_TRY(std::unique_ptr<net::MessageStream> stream,
         co_await host->channel().Open(method, options));
  agent::TunnelFrame frame;
  frame.set_ticket(ticket);
  CO_TRY_STATUS(co_await stream->Write(frame.SerializeAsString()));
  frame.set_ticket("");
  frame.set_channel(1);
  frame.set_data("hello");
  CO_TRY_STATUS(co_await stream->Write(frame.SerializeAsString()));
  for (;;) {
    auto bytes = co_await stream->Read();
    if (!bytes.ok() || !bytes->has_value() || !frame.ParseFromString(**bytes)) break;
    it->heard_by_host += frame.data();
  }
  it->is_over_for_host = true;
  co_return OkStatus();
}

class TunnelsTest : public testing::Test {
 protected:
  TunnelsTest() {
    world_.Enrol("a");
    pool_ = host_.Join("pool");
    const meta::Object machine = world_.MakeMachine("web");
    CHECK(world_.Bind(machine, "pool", pool_).ok());
    CHECK(host_.WaitAssigns(1));
    uid_ = machine.metadata().uid;
  }
  ~TunnelsTest() override { CHECK(world_.Run(scope_.Close()).ok()); }

  std::vector<agent::TunnelRequest> Requests() const {
    return host_.All<agent::TunnelRequest>([](const auto& batch) { return batch.tunnels(); });
  }
  // Somebody asks for a console; the host hears of it.
  Conversation& Ask() {
    Conversation& it = conversations_.emplace_back();
    const size_t before = Requests().size();
    scope_.Spawn("test.user", Listen(&world_.gateway(), pool_, uid_, &it));
    CHECK(world_.Until([&] { return Requests().size() == before + 1; }));
    return it;
  }
  // And the host has opened it.
  Conversation& Open() {
    Conversation& it = Ask();
    scope_.Spawn("test.host", Carry(&host_, Requests().back().ticket(), &it));
    CHECK(world_.Until([&] { return it.heard_by_user == "hello"; }));
    return it;
  }
  Status Type(Conversation& it) {
    const fleet::TunnelFrame frame{.channel = fleet::TunnelFrame::Channel::kIn, .data = "ls"};
    return world_.Run(it.tunnel->Write(frame));
  }
  // The end comes within a second at both ends, and nothing that is typed arrives any more.
  void ExpectEnds(Conversation& it) {
    EXPECT_TRUE(world_.Until([&] { return it.is_over_for_user; }, Duration::Seconds(1)));
    EXPECT_TRUE(Type(it).Is(Reason::kUnavailable));
    EXPECT_TRUE(world_.Until([&] { return it.is_over_for_host; }, Duration::Seconds(1)));
    EXPECT_EQ(it.heard_by_host, "");
  }

  GatewayWorld world_;
  TestHost host_{world_, "a"};
  std::string pool_;
  std::string uid_;
  std::list<Conversation> conversations_;
  rt::TaskScope scope_{world_.loop()};
};

TEST_F(TunnelsTest, R9_1_ARevocationEndsTheTunnelsOfAHostThatKeepsThemOpen) {
  Conversation& first = Open();
  Conversation& second = Open();
  ASSERT_TRUE(world_.Run(client::RevokeHost(world_.client(), "a", world_.loop().WallNow())).ok());
  ExpectEnds(first);
  ExpectEnds(second);
}

TEST_F(TunnelsTest, ATunnelEndsWithTheSessionThatItWasOpenedFor) {
  Conversation& cut = Open();
  world_.gateway().Cut("a", "Isolated");
  ExpectEnds(cut);
  ASSERT_EQ(host_.Join("pool"), pool_);
  ASSERT_TRUE(host_.WaitAssigns(1));
  Conversation& fenced = Open();
  world_.gateway().Fence(pool_);
  ExpectEnds(fenced);
}

TEST_F(TunnelsTest, ATicketIsVoidOnceItsSessionHasEnded) {
  Conversation& it = Ask();
  const std::string ticket = Requests().back().ticket();
  world_.gateway().Cut("a", "Isolated");
  EXPECT_TRUE(world_.Until([&] { return it.opened.has_value(); }, Duration::Seconds(1)));
  EXPECT_TRUE(it.opened->Is(Reason::kUnavailable)) << *it.opened;
  scope_.Spawn("test.host", Carry(&host_, ticket, &it));
  EXPECT_TRUE(world_.Until([&] { return it.is_over_for_host; }, Duration::Seconds(1)));
}

TEST_F(TunnelsTest, OpenOnesCountAgainstTheLimitOfTheirHost) {
  for (size_t i = 0; i + 1 < kTunnelsMax; ++i) Open();
  Ask();  // not opened, and counted all the same
  const std::string what = "console";
  EXPECT_TRUE(world_.Run(world_.gateway().OpenTunnel(pool_, uid_, 1, what, {}))
                  .status()
                  .Is(Reason::kTooManyRequests));
  Conversation& done = conversations_.front();
  done.tunnel->Close();
  ASSERT_TRUE(world_.Until([&] { return done.is_over_for_host; }));
  Open();
}

}  // namespace
}  // namespace berth::gateway
