// SPDX-License-Identifier: Apache-2.0
// The authorization matrix of the session protocol (must-show 7): whatever a host says about the
// objects, pools, offers, sessions and tunnels of another one changes nothing, and nothing of the
// other's is told to it.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "apis/k8s/event.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

class Forgery : public testing::Test {
 protected:
  Forgery() {
    world_.Enrol("a");
    world_.Enrol("b");
    world_.MakeSecret("boot", {{"ignition.yaml", "secret of a"}});
    pool_a_ = a_.Join("pool-a");
    pool_b_ = b_.Join("pool-b");
    CHECK(!pool_a_.empty() && !pool_b_.empty());
    meta::Object draft = apiserver::PlacementWorld::Machine("web");
    draft.as<apis::compute::Machine>().spec.ignition_ref =
        apis::core::SecretKeySelector{.name = "boot"};
    machine_ = world_.Must(world_.Run(world_.client().Create(std::move(draft), {})));
    CHECK(world_.Bind(machine_, "pool-a", pool_a_).ok());
    CHECK(a_.WaitAssigns(1));
    assign_ = a_.assigns().back();
    a_.Remember(assign_);
    a_.Report(assign_, "Running");
    world_.Pass(Duration::Seconds(11));  // everything is published
    before_ = World();
  }

  // Everything of A that the store shows.
  std::vector<meta::Object> World() { return {world_.Read(machine_), world_.Pool("pool-a")}; }
  // B has said it, and has had time to be heard.
  void ExpectNothingHappened(const std::string& what) {
    world_.Pass(Duration::Seconds(3));
    EXPECT_TRUE(World() == before_) << what;
    for (const agent::ServerMessage& message : b_.received) {
      EXPECT_EQ(message.SerializeAsString().find("secret of a"), std::string::npos) << what;
      EXPECT_EQ(message.batch().assigns_size(), 0) << what;
      EXPECT_EQ(message.batch().confirms_size(), 0) << what;
      EXPECT_EQ(message.batch().offers_size(), 0) << what;
    }
    EXPECT_FALSE(a_.end().has_value()) << what << ": A's session lives";
    EXPECT_TRUE(a_.deletes().empty()) << what;
  }

  static rt::Task<Status> Open(GatewayWorld* world,
                               std::string pool,
                               std::string uid,
                               Result<std::unique_ptr<fleet::Tunnel>>* opened) {
    *opened = co_await world->gateway().OpenTunnel(pool, uid, 1, "console", {});
    co_return OkStatus();
  }

  GatewayWorld world_;
  TestHost a_{world_, "a"};
  TestHost b_{world_, "b"};
  std::string pool_a_;
  std::string pool_b_;
  meta::Object machine_;
  agent::Assign assign_;
  std::vector<meta::Object> before_;
};

TEST_F(Forgery, OfTheUidsAndNumbersOfAnotherHostsObjectsChangesNothing) {
  const std::string uid = assign_.uid();
  using Fill = std::function<void(agent::HostBatch&, const std::string&, uint64_t, uint64_t)>;
  const std::vector<std::pair<std::string, Fill>> words = {
      {"status",
       [](auto& batch, const auto& about, uint64_t incarnation, uint64_t placement) {
         agent::ObjectStatus& status = *batch.add_statuses();
         status.set_uid(about);
         status.set_incarnation(incarnation);
         status.set_placement(placement);
         status.set_kind("Machine");
         status.set_state("Terminated");
       }},
      {"gone",
       [](auto& batch, const auto& about, uint64_t incarnation, uint64_t placement) {
         agent::Gone& gone = *batch.add_gone();
         gone.set_uid(about);
         gone.set_incarnation(incarnation);
         gone.set_placement(placement);
       }},
      {"refusal",
       [](auto& batch, const auto& about, uint64_t, uint64_t placement) {
         agent::AssignRefused& refused = *batch.add_refusals();
         refused.set_uid(about);
         refused.set_placement(placement);
         refused.set_reason("NoRoom");
       }},
      {"ack",
       [](auto& batch, const auto& about, uint64_t, uint64_t placement) {
         agent::AssignAck& ack = *batch.add_acks();
         ack.set_uid(about);
         ack.set_placement(placement);
         ack.set_hash("forged");
       }},
      {"event",
       [](auto& batch, const auto& about, uint64_t, uint64_t) {
         agent::HostEvent& event = *batch.add_events();
         event.set_uid(about);
         event.set_type("Warning");
         event.set_reason("Forged");
       }},
  };
  for (const auto& [what, fill] : words) {
    for (const std::string& about : {uid, std::string("made-up"), std::string(), pool_a_}) {
      for (const uint64_t incarnation : {0, 1, 2}) {
        for (const uint64_t placement : {0, 1, 2, 99}) {
          b_.Say([&](agent::HostBatch& batch) { fill(batch, about, incarnation, placement); });
        }
      }
    }
    ExpectNothingHappened(what);
    // A host that goes on like this loses its session; the next word needs a new one.
    if (b_.end().has_value()) ASSERT_EQ(b_.Join("pool-b"), pool_b_) << what;
  }
  const auto events = world_.Run(world_.client().List(apis::k8s::kEventKind, {}));
  ASSERT_TRUE(events.ok());
  for (const meta::Object& event : events->items) {
    EXPECT_NE(event.as<apis::k8s::Event>().reason, "Forged");
  }
}

TEST_F(Forgery, OfAnotherHostsPoolsChangesNothing) {
  b_.Say([&](agent::HostBatch& batch) {
    agent::PoolFacts& facts = *batch.add_facts();
    facts.set_pool_uid(pool_a_);
    facts.set_problem("forged");
    (*facts.mutable_facts()->mutable_capacity())["cpu"] = 1;
    facts.set_classes_changed(true);
  });
  ExpectNothingHappened("facts");
  b_.Say([&](agent::HostBatch& batch) {
    batch.set_orphans_changed(true);
    agent::Orphan& orphan = *batch.add_orphans();
    orphan.set_pool("pool-a");
    orphan.set_kind("Machine");
    orphan.set_uid("forged");
    orphan.set_name("forged");
  });
  ExpectNothingHappened("orphans");
  EXPECT_TRUE(world_.gateway().OrphansOf(pool_a_).empty());
  b_.Say([&](agent::HostBatch& batch) {
    agent::HostEvent& event = *batch.add_events();
    event.set_pool_uid(pool_a_);
    event.set_reason("Forged");
    agent::Statistics& statistics = *batch.add_statistics();
    statistics.set_uid(assign_.uid());
    statistics.set_cpu_cores(64);
  });
  ExpectNothingHappened("events and statistics");
  for (const fleet::Statistics& statistics : world_.gateway().StatisticsOf(pool_a_)) {
    EXPECT_NE(statistics.cpu_cores, 64);
  }
  // Nor can it announce the pool as its own, whatever it knows of what is on it.
  b_.known[assign_.uid()] = a_.known.at(assign_.uid());
  EXPECT_EQ(b_.Join("pool-a"), "");
  EXPECT_NE(b_.PoolRefusal("pool-a"), "");
  ExpectNothingHappened("announce");
  EXPECT_EQ(world_.gateway().Pools().size(), 1U) << "A's is the only one left";
}

TEST_F(Forgery, OfAnotherHostsOffersAnswersNothing) {
  std::vector<fleet::Answer> answers;
  fleet::Offer offer;
  offer.id = {.term = 1, .number = 7};
  offer.item = {.pool_uid = pool_a_, .uid = "new", .placement = 1, .resources = {{"cpu", 1000}}};
  offer.hold_ttl = Duration::Seconds(10);
  world_.gateway().Ask(
      offer, Duration::Seconds(2), [&](const fleet::Answer& answer) { answers.push_back(answer); });
  b_.Say([&](agent::HostBatch& batch) {
    agent::Answer& answer = *batch.add_answers();
    answer.mutable_id()->set_term(1);
    answer.mutable_id()->set_number(7);
    answer.set_verdict(agent::Answer::ACCEPTED);
  });
  world_.Pass(Duration::Seconds(1));
  EXPECT_TRUE(answers.empty()) << "B was not asked";
  world_.Pass(Duration::Seconds(3));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].verdict, fleet::Answer::Verdict::kNoAnswer);
  ExpectNothingHappened("answer");
}

TEST_F(Forgery, OfAnotherHostsSessionGetsNoGrant) {
  const size_t granted = a_.grants();
  b_.beats = false;
  world_.Pass(Duration::Seconds(1));
  const size_t before = b_.grants();
  agent::HostMessage message;
  *message.mutable_heartbeat()->mutable_session() = a_.welcome()->session();
  message.mutable_heartbeat()->set_number(1'000);
  b_.Send(message);
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(b_.grants(), before);
  a_.beats = true;
  EXPECT_TRUE(world_.Until([&] { return a_.grants() > granted; }, Duration::Seconds(10)));
  ExpectNothingHappened("heartbeat");
}

TEST_F(Forgery, OfAnotherHostsTicketOpensNoTunnel) {
  rt::TaskScope scope(world_.loop());
  Result<std::unique_ptr<fleet::Tunnel>> opened = Internal("nothing yet");
  scope.Spawn("test.tunnel", Open(&world_, pool_a_, assign_.uid(), &opened));
  const auto ticket = [this] {
    for (const agent::ServerMessage& message : a_.received) {
      for (const agent::TunnelRequest& request : message.batch().tunnels()) return request.ticket();
    }
    return std::string();
  };
  ASSERT_TRUE(world_.Until([&] { return !ticket().empty(); }));
  for (const std::string& forged : {ticket(), std::string("made-up"), std::string()}) {
    auto stream = world_.Run(b_.channel().Open("/berth.agent.v1.AgentService/Tunnel", {}));
    ASSERT_TRUE(stream.ok());
    agent::TunnelFrame first;
    first.set_ticket(forged);
    ASSERT_TRUE(world_.Run((*stream)->Write(first.SerializeAsString())).ok());
    const auto answer = world_.Run((*stream)->Read());
    EXPECT_EQ(answer.status().reason(), Reason::kForbidden) << forged;
  }
  // Nor is one opened to an object on a pool that is not its own.
  const auto foreign =
      world_.Run(world_.gateway().OpenTunnel(pool_b_, assign_.uid(), 1, "console", {}));
  EXPECT_EQ(foreign.status().reason(), Reason::kNotFound);
  const auto other_number =
      world_.Run(world_.gateway().OpenTunnel(pool_a_, assign_.uid(), 2, "console", {}));
  EXPECT_EQ(other_number.status().reason(), Reason::kNotFound);
  ExpectNothingHappened("tunnel");
  ASSERT_TRUE(world_.Run(scope.Close()).ok());
}

}  // namespace
}  // namespace berth::gateway
