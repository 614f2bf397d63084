// SPDX-License-Identifier: Apache-2.0
// The gateway keeps the contract of every fleet, and joins tunnels by single-use tickets.
#include <gtest/gtest.h>

#include "fleet/conformance/fleet_contract.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

class GatewayFleet final : public fleet::FleetUnderTest {
 public:
  rt::SimLoop& loop() override { return world_.loop(); }
  fleet::Fleet& fleet() override { return world_.gateway(); }
  std::string Join(const std::string& name, const fleet::Vector& capacity) override {
    world_.Enrol(name);
    auto host = std::make_unique<TestHost>(world_, name);
    const std::string uid = host->Join("pool-" + name, {capacity.begin(), capacity.end()});
    CHECK(!uid.empty());
    capacity_[uid] = capacity;
    hosts_[uid] = std::move(host);
    return uid;
  }
  void Leave(const std::string& pool_uid) override { hosts_[pool_uid]->Leave(); }
  void Answers(const std::string& pool_uid,
               std::optional<fleet::Answer> answer,
               Duration delay) override {
    TestHost& host = *hosts_[pool_uid];
    host.answer.reset();
    host.answer_delay = delay;
    if (!answer) return;
    agent::Answer said;
    said.set_verdict(answer->verdict == fleet::Answer::Verdict::kAccepted
                         ? agent::Answer::ACCEPTED
                         : agent::Answer::REJECTED);
    said.set_reason(answer->reason);
    said.set_message(answer->message);
    ToProto(answer->missing, *said.mutable_missing());
    host.answer = said;
  }
  void Report(const std::string& pool_uid, const fleet::Vector& allocated) override {
    hosts_[pool_uid]->Say([&](agent::HostBatch& batch) {
      agent::PoolFacts& facts = *batch.add_facts();
      facts.set_pool_uid(pool_uid);
      ToProto(capacity_[pool_uid], *facts.mutable_facts()->mutable_capacity());
      ToProto(allocated, *facts.mutable_facts()->mutable_allocated());
    });
  }
  std::vector<fleet::OfferId> Offers(const std::string& pool_uid) override {
    std::vector<fleet::OfferId> ids;
    for (const auto& message : hosts_[pool_uid]->received) {
      for (const auto& offer : message.batch().offers()) {
        ids.push_back({.term = offer.id().term(), .number = offer.id().number()});
      }
    }
    return ids;
  }
  std::vector<fleet::OfferId> Releases(const std::string& pool_uid) override {
    std::vector<fleet::OfferId> ids;
    for (const auto& message : hosts_[pool_uid]->received) {
      for (const auto& release : message.batch().releases()) {
        ids.push_back({.term = release.term(), .number = release.number()});
      }
    }
    return ids;
  }

 private:
  GatewayWorld world_;
  std::map<std::string, fleet::Vector> capacity_;
  std::map<std::string, std::unique_ptr<TestHost>> hosts_;
};

class GatewayFleetContract : public testing::TestWithParam<fleet::FleetContract> {};

TEST_P(GatewayFleetContract, Holds) {
  fleet::RunFleetContract([] { return std::make_unique<GatewayFleet>(); }, GetParam());
}
INSTANTIATE_TEST_SUITE_P(Gateway,
                         GatewayFleetContract,
                         testing::ValuesIn(fleet::FleetContracts().begin(),
                                           fleet::FleetContracts().end()),
                         [](const auto& info) { return std::string(info.param.name); });

fleet::Offer OfferTo(const std::string& pool_uid, uint64_t number) {
  fleet::Offer offer;
  offer.id = {.term = 1, .number = number};
  offer.item = {.pool_uid = pool_uid, .uid = "u", .placement = 1, .class_name = "small"};
  offer.hold_ttl = Duration::Seconds(10);
  return offer;
}

TEST(GatewayFleet, R2_5_OffersOfOneTurnTravelInOneMessage) {
  GatewayWorld world;
  world.Enrol("a");
  TestHost host(world, "a");
  const std::string pool = host.Join("pool");
  const size_t before = host.received.size();
  for (uint64_t number = 1; number <= 100; ++number) {
    world.gateway().Ask(OfferTo(pool, number), Duration::Millis(300), [](const fleet::Answer&) {});
  }
  world.Pass(Duration::Millis(20));
  ASSERT_GE(host.received.size(), before + 1);
  EXPECT_EQ(host.received[before].batch().offers_size(), 100);
  world.Pass(Duration::Seconds(1));
}

TEST(GatewayFleet, AnAnswerOfAnotherHostIsNotTaken) {
  GatewayWorld world;
  world.Enrol("a");
  world.Enrol("b");
  TestHost asked(world, "a");
  TestHost liar(world, "b");
  const std::string pool = asked.Join("pool-a");
  ASSERT_NE(liar.Join("pool-b"), "");
  std::optional<fleet::Answer> answer;
  world.gateway().Ask(
      OfferTo(pool, 5), Duration::Millis(300), [&](const fleet::Answer& came) { answer = came; });
  liar.Say([](agent::HostBatch& batch) {
    agent::Answer& forged = *batch.add_answers();
    forged.mutable_id()->set_term(1);
    forged.mutable_id()->set_number(5);
    forged.set_verdict(agent::Answer::ACCEPTED);
  });
  ASSERT_TRUE(world.Until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->verdict, fleet::Answer::Verdict::kNoAnswer);
}

rt::Task<Status> ServeTunnel(TestHost& host, std::string ticket, std::string greeting) {
  CO_TRY(std::unique_ptr<net::MessageStream> stream,
         co_await host.channel().Open("/berth.agent.v1.AgentService/Tunnel", {}));
  agent::TunnelFrame first;
  first.set_ticket(ticket);
  CO_TRY_STATUS(co_await stream->Write(first.SerializeAsString()));
  agent::TunnelFrame out;
  out.set_channel(1);
  out.set_data(greeting);
  CO_TRY_STATUS(co_await stream->Write(out.SerializeAsString()));
  CO_TRY(std::optional<std::string> bytes, co_await stream->Read());
  agent::TunnelFrame in;
  if (!bytes || !in.ParseFromString(*bytes)) co_return BadRequest("no frame");
  out.set_data("echo " + in.data());
  CO_TRY_STATUS(co_await stream->Write(out.SerializeAsString()));
  stream->WritesDone();
  (void)co_await stream->Read();
  co_return OkStatus();
}

rt::Task<Status> UseTunnel(Gateway& gateway,
                           std::string pool,
                           std::string uid,
                           std::vector<std::string>& heard) {
  CO_TRY(std::unique_ptr<fleet::Tunnel> tunnel,
         co_await gateway.OpenTunnel(pool, uid, 1, "console", {}));
  fleet::TunnelFrame frame{.channel = fleet::TunnelFrame::Channel::kIn, .data = "ls"};
  CO_TRY_STATUS(co_await tunnel->Write(frame));
  for (int i = 0; i < 2; ++i) {
    CO_TRY(std::optional<fleet::TunnelFrame> came, co_await tunnel->Read());
    if (came) heard.push_back(came->data);
  }
  tunnel->Close();
  co_return OkStatus();
}

TEST(GatewayFleet, ATunnelIsJoinedByItsTicketOnceAndOnlyByItsHost) {
  GatewayWorld world;
  world.Enrol("a");
  world.Enrol("b");
  TestHost host(world, "a");
  TestHost thief(world, "b");
  const std::string pool = host.Join("pool");
  ASSERT_NE(thief.Join("pool-b"), "");
  const meta::Object machine = world.MakeMachine("web");
  ASSERT_TRUE(world.Bind(machine, "pool", pool).ok());
  ASSERT_TRUE(host.WaitAssigns(1));
  const std::string uid = machine.metadata().uid;
  EXPECT_TRUE(world.Run(world.gateway().OpenTunnel(pool, uid, 2, "console", {}))
                  .status()
                  .Is(Reason::kNotFound));
  std::vector<std::string> heard;
  rt::TaskScope scope(world.loop());
  scope.Spawn("use", UseTunnel(world.gateway(), pool, uid, heard));
  std::string ticket;
  ASSERT_TRUE(world.Until([&] {
    for (const auto& message : host.received) {
      for (const auto& request : message.batch().tunnels()) ticket = request.ticket();
    }
    return !ticket.empty();
  }));
  EXPECT_FALSE(world.Run(ServeTunnel(thief, ticket, "stolen")).ok());
  EXPECT_TRUE(world.Run(ServeTunnel(host, ticket, "hello")).ok());
  EXPECT_TRUE(world.Run(scope.Join()).ok());
  EXPECT_EQ(heard, (std::vector<std::string>{"hello", "echo ls"}));
  EXPECT_FALSE(world.Run(ServeTunnel(host, ticket, "again")).ok());
}

TEST(GatewayFleet, C13_C18_StatisticsOfAHostAreKeptInMemoryOnly) {
  GatewayWorld world;
  world.Enrol("a");
  TestHost host(world, "a");
  const std::string pool = host.Join("pool");
  world.Pass(Duration::Seconds(2));
  const std::string version = world.Pool("pool").metadata().resource_version;
  host.Say([](agent::HostBatch& batch) {
    batch.add_statistics()->set_cpu_cores(1.5);
    batch.add_statistics()->set_uid("not-its-own");
  });
  EXPECT_TRUE(world.Until([&] { return !world.gateway().StatisticsOf(pool).empty(); }));
  const auto statistics = world.gateway().StatisticsOf(pool);
  ASSERT_EQ(statistics.size(), 1);
  EXPECT_EQ(statistics[0].cpu_cores, 1.5);
  EXPECT_EQ(world.Pool("pool").metadata().resource_version, version);
}

}  // namespace
}  // namespace berth::gateway
