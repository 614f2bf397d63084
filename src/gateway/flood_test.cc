// SPDX-License-Identifier: Apache-2.0
// Whatever a host repeats, and however fast, it costs itself and nobody else: whoever follows the
// fleet keeps up, other hosts are asked and answer; an honest host with much to say is not cut off
// (PROTOCOL 5.8).
#include <gtest/gtest.h>

#include <algorithm>

#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

using fleet::FleetEvent;

constexpr int kFlood = 50'000;  // of one message, which stays below 4 MiB

class FloodTest : public testing::Test {
 protected:
  FloodTest() {
    world_.Enrol("bad");
    world_.Enrol("good");
    bad_pool_ = bad_.Join("pool-bad");
    agent::Answer yes;
    yes.set_verdict(agent::Answer::ACCEPTED);
    good_.answer = yes;
    good_pool_ = good_.Join("pool-good");
    machine_ = world_.MakeMachine("web");
    CHECK(world_.Bind(machine_, "pool-bad", bad_pool_).ok());
    CHECK(bad_.WaitAssigns(1));
    assign_ = bad_.assigns().back();
    watch_ = world_.gateway().Watch();
  }
  // One message with `count` of something.
  void Flood(int count, const std::function<void(agent::HostBatch&)>& add) {
    bad_.Say([&](agent::HostBatch& batch) {
      for (int i = 0; i < count; ++i) add(batch);
    });
  }
  agent::PoolFacts FactsOf(const std::string& pool, int64_t cpu) {
    agent::PoolFacts facts;
    facts.set_pool_uid(pool);
    (*facts.mutable_facts()->mutable_capacity())["cpu"] = cpu;
    return facts;
  }
  static constexpr int kLabelChunksMax = 5;  // of 3 MiB, in an announcement of at most 16
  // A chunk of an announcement that grows by it.
  static agent::Announce Labels(int number) {
    agent::Announce chunk;
    (*chunk.mutable_host()->mutable_labels())["label-" + std::to_string(number)] =
        std::string(size_t{3} * 1024 * 1024, 'x');
    return chunk;
  }
  // What a reader finds that has not looked since the flood began.
  std::vector<FleetEvent> Unread() {
    world_.gateway().Cut("good", "Test");  // so that there is something to read
    auto events = world_.Run(watch_->Next());
    CHECK(events.ok()) << events.status();
    return *std::move(events);
  }
  size_t CountOf(const std::vector<FleetEvent>& events, FleetEvent::Type type) {
    return static_cast<size_t>(std::ranges::count(events, type, &FleetEvent::type));
  }
  // The other host is asked and answers, its lease goes on, and nobody must read everything anew.
  void ExpectNobodyElseNotices() {
    EXPECT_EQ(good_.refused(), "");
    std::optional<fleet::Answer> heard;
    fleet::Offer offer;
    offer.id = {.term = 1, .number = 1'000'000};
    offer.item = {
        .pool_uid = good_pool_, .uid = "new", .placement = 1, .resources = {{"cpu", 1000}}};
    offer.hold_ttl = Duration::Seconds(10);
    world_.gateway().Ask(
        offer, Duration::Seconds(2), [&](const fleet::Answer& answer) { heard = answer; });
    EXPECT_TRUE(world_.Until([&] { return heard.has_value(); }, Duration::Millis(100)));
    EXPECT_EQ(heard ? heard->verdict : fleet::Answer::Verdict::kNoAnswer,
              fleet::Answer::Verdict::kAccepted);
    const size_t before = good_.grants();
    world_.Pass(kHeartbeat * 2);
    EXPECT_GT(good_.grants(), before);
    const std::vector<FleetEvent> events = Unread();
    EXPECT_EQ(CountOf(events, FleetEvent::Type::kOverflow), 0U);
    EXPECT_LT(events.size(), 1024U);
  }

  GatewayWorld world_;
  TestHost bad_{world_, "bad"};
  TestHost good_{world_, "good"};
  std::string bad_pool_;
  std::string good_pool_;
  meta::Object machine_;
  agent::Assign assign_;
  std::unique_ptr<fleet::FleetWatch> watch_;
};

TEST_F(FloodTest, R5_8_FactsOfOnePoolRepeatedInAMessageCutTheHostOff) {
  const agent::PoolFacts facts = FactsOf(bad_pool_, 4000);
  Flood(kFlood, [&](agent::HostBatch& batch) { *batch.add_facts() = facts; });
  EXPECT_TRUE(bad_.WaitRefused());
  EXPECT_EQ(bad_.refused(), kLimits);
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_FactsInManyMessagesAreMergedAndTheNewestCounts) {
  for (int i = 1; i <= 900; ++i) {
    bad_.Say([&](agent::HostBatch& batch) { *batch.add_facts() = FactsOf(bad_pool_, i); });
  }
  const auto newest_is_known = [&] {
    const auto pools = world_.gateway().Pools();
    return std::ranges::any_of(pools, [&](const fleet::PoolFacts& pool) {
      return pool.pool_uid == bad_pool_ && pool.capacity == fleet::Vector{{"cpu", 900}};
    });
  };
  EXPECT_TRUE(world_.Until(newest_is_known, Duration::Seconds(1)));
  EXPECT_EQ(bad_.refused(), "");
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_ClassesAndFactsSurviveTheFiguresThatCameAfterThem) {
  for (int i = 1; i <= 400; ++i) {
    bad_.Say([&](agent::HostBatch& batch) {
      agent::PoolFacts& facts = *batch.add_facts();
      facts = FactsOf(bad_pool_, 8000);
      if (i != 300) return;  // behind what is acted upon at once, and not the last word
      facts.set_classes_changed(true);
      facts.add_classes()->set_name("large");
      facts.set_runtime_facts_changed(true);
      (*facts.mutable_runtime_facts())["hypervisor"] = "late";
    });
  }
  EXPECT_TRUE(world_.Until([&] {
    const meta::Object pool = world_.Pool("pool-bad");
    const auto& status = pool.as<apis::compute::MachinePool>().status;
    const auto& classes = status.available_machine_classes;
    return classes.size() == 1 && classes.front().name == "large" &&
           status.facts.contains("hypervisor");
  }));
}

TEST_F(FloodTest, R5_8_FactsOfOthersPoolsCutTheHostOff) {
  const agent::PoolFacts facts = FactsOf(good_pool_, 1);
  for (int i = 0; i < 150; ++i) {
    Flood(1, [&](agent::HostBatch& batch) { *batch.add_facts() = facts; });
  }
  EXPECT_TRUE(bad_.WaitRefused());
  EXPECT_EQ(bad_.refused(), kLimits);
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_AnswersThatNobodyAskedForAreNotAnsweredAndCutTheHostOff) {
  uint64_t number = 0;
  Flood(kFlood, [&](agent::HostBatch& batch) {
    agent::Answer& answer = *batch.add_answers();
    answer.mutable_id()->set_term(1);
    answer.mutable_id()->set_number(++number);
    answer.set_verdict(agent::Answer::ACCEPTED);
  });
  EXPECT_TRUE(bad_.WaitRefused());
  EXPECT_EQ(bad_.refused(), kLimits);
  EXPECT_FALSE(bad_.Any([](const auto& message) { return message.batch().releases_size() > 0; }));
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_AcknowledgementsWithoutEndAreNotRead) {
  Flood(kFlood, [&](agent::HostBatch& batch) {
    agent::AssignAck& ack = *batch.add_acks();
    ack.set_uid(assign_.uid());
    ack.set_placement(assign_.placement());
  });
  world_.Pass(Duration::Seconds(1));
  // The first ones of nobody's objects are strikes; those beyond the limit are not even looked at.
  EXPECT_EQ(bad_.refused(), "");
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_ARefusalCountsOnceAndTooManyCutTheHostOff) {
  Flood(kFlood, [&](agent::HostBatch& batch) {
    agent::AssignRefused& refused = *batch.add_refusals();
    refused.set_uid(assign_.uid());
    refused.set_placement(assign_.placement());
    refused.set_reason("NoRoom");
  });
  EXPECT_TRUE(bad_.WaitRefused());
  EXPECT_EQ(bad_.refused(), kLimits);
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, G2_ARefusalThatIsSaidTwiceIsToldOnce) {
  Flood(20, [&](agent::HostBatch& batch) {
    agent::AssignRefused& refused = *batch.add_refusals();
    refused.set_uid(assign_.uid());
    refused.set_placement(assign_.placement());
  });
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(bad_.refused(), "");
  EXPECT_EQ(CountOf(Unread(), FleetEvent::Type::kRefused), 1U);
}

TEST_F(FloodTest, R5_8_RemovalsFasterThanAllowedCutTheHostOff) {
  int number = 0;
  Flood(kFlood, [&](agent::HostBatch& batch) {
    agent::Gone& gone = *batch.add_gone();
    gone.set_uid("nobodys-" + std::to_string(++number));
    gone.set_incarnation(1);
    gone.set_placement(1);
  });
  EXPECT_TRUE(bad_.WaitRefused());
  EXPECT_EQ(bad_.refused(), kLimits);
  EXPECT_LE(bad_.forgets().size(), 2 * kGonePerSecond);
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_StatisticsBeyondTheLimitAreLeftOut) {
  double cores = 0;
  Flood(kFlood, [&](agent::HostBatch& batch) {
    agent::Statistics& statistics = *batch.add_statistics();
    statistics.set_uid(assign_.uid());
    statistics.set_cpu_cores(++cores);
  });
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(bad_.refused(), "");
  const auto all = world_.gateway().StatisticsOf(bad_pool_);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().cpu_cores, kStatisticsBurst);
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_EventsBeyondTheLimitAreLeftOut) {
  int number = 0;
  Flood(kFlood, [&](agent::HostBatch& batch) {
    agent::HostEvent& event = *batch.add_events();
    event.set_uid(assign_.uid());
    event.set_reason("Reason" + std::to_string(++number));
  });
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(bad_.refused(), "");
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_ListsOfOrphansAreMergedAndTheNewestCounts) {
  const std::string before = world_.Pool("pool-bad").metadata().resource_version;
  for (int i = 1; i <= 400; ++i) {
    bad_.Say([&](agent::HostBatch& batch) {
      batch.set_orphans_changed(true);
      for (int k = 0; k < i; ++k) {
        agent::Orphan& orphan = *batch.add_orphans();
        orphan.set_uid(std::to_string(k));
        orphan.set_pool("pool-bad");
      }
    });
  }
  const auto has_newest = [&] { return world_.gateway().OrphansOf(bad_pool_).size() == 400; };
  EXPECT_TRUE(world_.Until(has_newest, Duration::Seconds(2)));
  EXPECT_EQ(bad_.refused(), "");
  ExpectNobodyElseNotices();
}

// What is announced is kept until its end: neither is without one.
TEST_F(FloodTest, R5_8_AnAnnouncementWithoutEndCutsTheHostOff) {
  ASSERT_TRUE(bad_.Connect());
  int chunks = 0;
  // Slowly, so that it is not the rate of its bytes that ends it.
  for (; chunks < 16 && bad_.refused().empty(); ++chunks) {
    bad_.Announce(Labels(chunks));
    world_.Pass(Duration::Seconds(1));
  }
  EXPECT_EQ(bad_.refused(), kLimits);
  EXPECT_EQ(chunks, kLabelChunksMax + 1);
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_AnAnnouncementMayBeLarge) {
  ASSERT_TRUE(bad_.Connect());
  for (int chunk = 0; chunk < kLabelChunksMax; ++chunk) {
    bad_.Announce(Labels(chunk));
    world_.Pass(Duration::Seconds(1));
  }
  agent::Announce last;
  *last.add_pools() = TestHost::PoolNamed("pool-bad", {{"cpu", 8000}});
  last.set_last(true);
  bad_.Announce(last);
  EXPECT_TRUE(bad_.WaitSynced()) << bad_.refused();
  EXPECT_EQ(bad_.PoolUid("pool-bad"), bad_pool_);
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_AnAnnouncementThatDoesNotEndIsNotWaitedFor) {
  ASSERT_TRUE(bad_.Connect());
  for (Duration time; time < kAnnounceLimit - Duration::Seconds(1); time += Duration::Seconds(1)) {
    bad_.Announce(agent::Announce());
    world_.Pass(Duration::Seconds(1));
  }
  EXPECT_EQ(bad_.refused(), "");
  world_.Pass(Duration::Seconds(3));
  EXPECT_EQ(bad_.refused(), kProtocol);
  EXPECT_EQ(world_.gateway().sessions(), 1U);
  ExpectNobodyElseNotices();
}

TEST_F(FloodTest, R5_8_AHostThatComesBackAfterEachLimitIsKeptOutAndOthersAreNot) {
  const agent::PoolFacts facts = FactsOf(bad_pool_, 4000);
  int sessions = 0;
  for (; sessions < 100 && bad_.Join("pool-bad") == bad_pool_; ++sessions) {
    Flood(150, [&](agent::HostBatch& batch) { *batch.add_facts() = facts; });
    ASSERT_TRUE(bad_.WaitRefused());
    ASSERT_EQ(bad_.refused(), kLimits);
  }
  EXPECT_GE(sessions, kConnectBurst - 1) << "the first one was before";
  EXPECT_LE(sessions, kConnectBurst * 2);
  ASSERT_EQ(bad_.refused(), kLimits);
  EXPECT_FALSE(bad_.welcome().has_value());
  EXPECT_EQ(bad_.received.back().refused().retry_after_ms(), 1000U);
  // Nor is it let in more often if it does not wait.
  const Time since = world_.loop().Now();
  int let_in = 0;
  for (int i = 0; i < 100; ++i) let_in += bad_.Connect() ? 1 : 0;
  EXPECT_LE(let_in, 1 + (world_.loop().Now() - since).seconds());
  world_.Enrol("late");
  TestHost late(world_, "late");
  EXPECT_NE(late.Join("pool-late"), "");
  ExpectNobodyElseNotices();
  // Who has waited may come in.
  EXPECT_EQ(bad_.Join("pool-bad"), bad_pool_);
}

// More than may be queued for it: it waits in the store.
TEST_F(FloodTest, R5_8_BodiesWaitForAHostThatDoesNotReadAndOthersGetTheirs) {
  constexpr int kBodies = 150;
  constexpr size_t kBodyBytes = size_t{64} * 1024;
  static_assert(kBodies * kBodyBytes > kOutboxBytesMax);
  world_.MakeSecret("large", {{"ignition.yaml", std::string(kBodyBytes, 'x')}});
  bad_.StopReading();
  for (int i = 0; i < kBodies; ++i) {
    meta::Object draft = GatewayWorld::Machine("m-" + std::to_string(i));
    draft.as<apis::compute::Machine>().spec.ignition_ref =
        apis::core::SecretKeySelector{.name = "large"};
    const meta::Object machine =
        GatewayWorld::Must(world_.Run(world_.client().Create(std::move(draft), {})));
    const client::BindItem item =
        GatewayWorld::ItemFor(machine, "pool-bad", bad_pool_, {{"cpu", 1}});
    ASSERT_TRUE(world_.Bind(GatewayWorld::RequestFor({item})).ok()) << i;
  }
  const meta::Object machine = world_.MakeMachine("good");
  ASSERT_TRUE(world_.Bind(machine, "pool-good", good_pool_).ok());
  EXPECT_TRUE(world_.Until([&] { return good_.assigns().size() == 1; }, Duration::Millis(500)));
  ExpectNobodyElseNotices();
  EXPECT_LT(bad_.assigns().size(), 5U) << "it reads none of it";
  EXPECT_FALSE(bad_.end().has_value()) << *bad_.end();
  // Nothing is lost.
  bad_.StartReading();
  world_.Pass(Duration::Seconds(5));
  EXPECT_EQ(bad_.assigns().size(), kBodies + 1U);
  EXPECT_EQ(bad_.refused(), "");
}

// Offers do not wait.
TEST_F(FloodTest, R5_8_AHostThatTakesNothingLosesItsSession) {
  constexpr size_t kOfferBytes = size_t{1024} * 1024;
  bad_.StopReading();
  std::vector<fleet::Answer> answers;
  fleet::Offer offer;
  offer.item = {.pool_uid = bad_pool_,
                .uid = "new",
                .placement = 1,
                .class_name = std::string(kOfferBytes, 'x'),
                .resources = {{"cpu", 1000}}};
  offer.id = {.term = 1, .number = 0};
  while (world_.gateway().sessions() == 2 && offer.id.number < 32) {
    ++offer.id.number;
    world_.gateway().Ask(offer, Duration::Seconds(30), [&](const fleet::Answer& answer) {
      answers.push_back(answer);
    });
    world_.Pass(Duration::Millis(100));
  }
  // One more was on its way already.
  EXPECT_LE(offer.id.number, kOutboxBytesMax / kOfferBytes + 2);
  EXPECT_EQ(world_.gateway().sessions(), 1U) << "that of the other host";
  EXPECT_EQ(answers.size(), offer.id.number) << "whoever has asked is not kept waiting";
  ExpectNobodyElseNotices();
  bad_.StartReading();
  EXPECT_TRUE(bad_.WaitRefused());
  EXPECT_EQ(bad_.refused(), kLimits);
}

// 300 machines, 16 pools' worth of figures, and everything at once.
TEST_F(FloodTest, R5_8_AnHonestHostWithMuchToSayIsNotCutOff) {
  constexpr int kMachines = 300;
  constexpr int kRounds = 10;
  std::vector<agent::Assign> assigns;
  for (int i = 0; i < kMachines; ++i) {
    meta::Object machine = world_.MakeMachine("m-" + std::to_string(i));
    client::BindRequest request = apiserver::PlacementWorld::RequestFor(
        {apiserver::PlacementWorld::ItemFor(machine, "pool-good", good_pool_, {{"cpu", 1}})});
    ASSERT_TRUE(world_.Bind(std::move(request)).ok()) << i;
  }
  ASSERT_TRUE(good_.WaitAssigns(kMachines));
  for (int round = 0; round < kRounds; ++round) {
    good_.Say([&](agent::HostBatch& batch) {
      for (const agent::Assign& assign : good_.assigns()) {
        agent::AssignAck& ack = *batch.add_acks();
        ack.set_uid(assign.uid());
        ack.set_placement(assign.placement());
        agent::ObjectStatus& status = *batch.add_statuses();
        status.set_uid(assign.uid());
        status.set_incarnation(assign.incarnation());
        status.set_placement(assign.placement());
        status.set_kind(assign.kind());
        status.set_state(round % 2 == 0 ? "Pending" : "Running");
        batch.add_statistics()->set_uid(assign.uid());
      }
      *batch.add_facts() = FactsOf(good_pool_, 8000);
    });
    world_.Pass(Duration::Millis(200));
  }
  good_.Say([&](agent::HostBatch& batch) {
    for (const agent::Assign& assign : good_.assigns()) {
      agent::Gone& gone = *batch.add_gone();
      gone.set_uid(assign.uid());
      gone.set_incarnation(assign.incarnation());
      gone.set_placement(assign.placement());
    }
  });
  EXPECT_TRUE(world_.Until([&] { return good_.forgets().size() >= kMachines; }));
  EXPECT_EQ(good_.refused(), "");
}

}  // namespace
}  // namespace berth::gateway
