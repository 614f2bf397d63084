// SPDX-License-Identifier: Apache-2.0
#include "fleet/conformance/fleet_contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "rt/sim/run_task.h"

namespace berth::fleet {
namespace {

constexpr Duration kLimit = Duration::Millis(300);
const Vector kRoom = {{"cpu", 4000}, {"memory", 1 << 30}};

Answer Accepted() { return Answer{.verdict = Answer::Verdict::kAccepted}; }

// The answers that came, by the offer's number.
class Asker {
 public:
  explicit Asker(FleetUnderTest& under_test) : under_test_(under_test) {}

  void Ask(const std::string& pool_uid, uint64_t number, Duration limit = kLimit) {
    Offer offer;
    offer.id = {.term = 1, .number = number};
    offer.item = {.pool_uid = pool_uid,
                  .uid = "machine-" + std::to_string(number),
                  .placement = 1,
                  .class_name = "small",
                  .resources = {{"cpu", 1000}}};
    offer.hold_ttl = Duration::Seconds(10);
    under_test_.fleet().Ask(std::move(offer), limit, [this, number](const Answer& answer) {
      answers[number].push_back(answer);
    });
    EXPECT_TRUE(answers[number].empty()) << "answered within the call";
  }
  const Answer& WaitFor(uint64_t number) {
    const bool came = under_test_.loop().RunUntil(
        [this, number] { return !answers[number].empty(); }, Duration::Seconds(5));
    EXPECT_TRUE(came) << "offer " << number << " was not answered";
    static const Answer kNone{.reason = "no answer at all"};
    return came ? answers[number][0] : kNone;
  }

  std::map<uint64_t, std::vector<Answer>> answers;

 private:
  FleetUnderTest& under_test_;
};

void AnOfferReachesItsHostAndItsAnswerComesBack(FleetUnderTest& world) {
  const std::string pool = world.Join("a", kRoom);
  world.Answers(pool,
                Answer{.verdict = Answer::Verdict::kRejected,
                       .reason = "Full",
                       .message = "no room",
                       .missing = {{"cpu", 500}}},
                {});
  Asker asker(world);
  asker.Ask(pool, 7);
  const Answer& answer = asker.WaitFor(7);
  EXPECT_EQ(answer.id, (OfferId{.term = 1, .number = 7}));
  EXPECT_EQ(answer.verdict, Answer::Verdict::kRejected);
  EXPECT_EQ(answer.reason, "Full");
  EXPECT_EQ(answer.missing, (Vector{{"cpu", 500}}));
  EXPECT_EQ(world.Offers(pool), (std::vector<OfferId>{{.term = 1, .number = 7}}));
}

void ManyOffersAreAnsweredOnceEach(FleetUnderTest& world) {
  const std::string a = world.Join("a", kRoom);
  const std::string b = world.Join("b", kRoom);
  world.Answers(a, Accepted(), {});
  world.Answers(b, Accepted(), {});
  Asker asker(world);
  for (uint64_t number = 1; number <= 40; ++number) asker.Ask(number % 2 == 0 ? a : b, number);
  world.loop().RunFor(Duration::Seconds(2));
  for (uint64_t number = 1; number <= 40; ++number) {
    ASSERT_EQ(asker.answers[number].size(), 1) << number;
    EXPECT_EQ(asker.answers[number][0].verdict, Answer::Verdict::kAccepted) << number;
  }
  EXPECT_EQ(world.Offers(a).size(), 20);
  EXPECT_EQ(world.Offers(b).size(), 20);
}

void SilenceIsNoAnswerAfterTheLimit(FleetUnderTest& world) {
  const std::string pool = world.Join("a", kRoom);
  world.Answers(pool, std::nullopt, {});
  Asker asker(world);
  const Time asked = world.loop().Now();
  asker.Ask(pool, 1);
  EXPECT_EQ(asker.WaitFor(1).verdict, Answer::Verdict::kNoAnswer);
  EXPECT_GE(world.loop().Now() - asked, kLimit);
  EXPECT_LT(world.loop().Now() - asked, kLimit * 2);
}

void EachOfferHasItsOwnLimit(FleetUnderTest& world) {
  const std::string pool = world.Join("a", kRoom);
  world.Answers(pool, std::nullopt, {});
  Asker asker(world);
  const Time asked = world.loop().Now();
  asker.Ask(pool, 1, kLimit * 8);
  asker.Ask(pool, 2);
  EXPECT_EQ(asker.WaitFor(2).verdict, Answer::Verdict::kNoAnswer);
  EXPECT_LT(world.loop().Now() - asked, kLimit * 2);
  EXPECT_TRUE(asker.answers[1].empty());
  EXPECT_EQ(asker.WaitFor(1).verdict, Answer::Verdict::kNoAnswer);
  EXPECT_GE(world.loop().Now() - asked, kLimit * 8);
}

void LateAcceptanceIsReleased(FleetUnderTest& world) {
  const std::string pool = world.Join("a", kRoom);
  world.Answers(pool, Accepted(), Duration::Seconds(1));
  Asker asker(world);
  asker.Ask(pool, 1);
  EXPECT_EQ(asker.WaitFor(1).verdict, Answer::Verdict::kNoAnswer);
  EXPECT_TRUE(world.Releases(pool).empty());
  world.loop().RunFor(Duration::Seconds(2));
  EXPECT_EQ(world.Releases(pool), (std::vector<OfferId>{{.term = 1, .number = 1}}));
  EXPECT_EQ(asker.answers[1].size(), 1);
}

void AReleaseReachesTheHost(FleetUnderTest& world) {
  const std::string pool = world.Join("a", kRoom);
  world.fleet().Release(pool, {.term = 1, .number = 9});
  world.loop().RunFor(Duration::Seconds(1));
  EXPECT_EQ(world.Releases(pool), (std::vector<OfferId>{{.term = 1, .number = 9}}));
}

void TheEndOfASessionAnswersWhatWasAsked(FleetUnderTest& world) {
  const std::string pool = world.Join("a", kRoom);
  world.Answers(pool, std::nullopt, {});
  Asker asker(world);
  const Time asked = world.loop().Now();
  asker.Ask(pool, 1);
  world.loop().RunFor(Duration::Millis(50));
  world.Leave(pool);
  EXPECT_EQ(asker.WaitFor(1).verdict, Answer::Verdict::kNoAnswer);
  EXPECT_LT(world.loop().Now() - asked, kLimit);
}

void APoolWithoutSessionGivesNoAnswer(FleetUnderTest& world) {
  Asker asker(world);
  asker.Ask("no-such-pool", 1);
  EXPECT_EQ(asker.WaitFor(1).verdict, Answer::Verdict::kNoAnswer);
}

void PoolsAreThoseThatCanBeAsked(FleetUnderTest& world) {
  EXPECT_TRUE(world.fleet().Pools().empty());
  const std::string a = world.Join("a", kRoom);
  const std::string b = world.Join("b", {{"cpu", 1000}});
  auto pools = world.fleet().Pools();
  std::ranges::sort(pools, {}, &PoolFacts::pool_uid);
  ASSERT_EQ(pools.size(), 2);
  const PoolFacts& first = pools[0].pool_uid == a ? pools[0] : pools[1];
  EXPECT_EQ(first.capacity, kRoom);
  world.Leave(a);
  world.loop().RunFor(Duration::Seconds(1));
  pools = world.fleet().Pools();
  ASSERT_EQ(pools.size(), 1);
  EXPECT_EQ(pools[0].pool_uid, b);
}

rt::Task<Status> Collect(FleetWatch* watch, std::vector<FleetEvent>* out) {
  for (;;) {
    CO_TRY(std::vector<FleetEvent> events, co_await watch->Next());
    for (FleetEvent& event : events) out->push_back(std::move(event));
  }
}

void AWatchTellsWhoJoinsReportsAndLeaves(FleetUnderTest& world) {
  const std::unique_ptr<FleetWatch> watch = world.fleet().Watch();
  std::vector<FleetEvent> events;
  rt::TaskScope scope(world.loop());
  scope.Spawn("collect", Collect(watch.get(), &events));
  const std::string pool = world.Join("a", kRoom);
  world.Report(pool, {{"cpu", 1500}});
  world.loop().RunFor(Duration::Seconds(1));
  world.Leave(pool);
  world.loop().RunFor(Duration::Seconds(1));
  EXPECT_TRUE(rt::RunTask(world.loop(), scope.Close()).ok());
  ASSERT_GE(events.size(), 3);
  EXPECT_EQ(events.front().type, FleetEvent::Type::kJoined);
  EXPECT_EQ(events.front().pool_uid, pool);
  EXPECT_EQ(events.front().facts.capacity, kRoom);
  EXPECT_EQ(events.back().type, FleetEvent::Type::kLeft);
  const auto reported = std::ranges::find_if(events, [](const FleetEvent& event) {
    return event.type == FleetEvent::Type::kFacts && event.facts.allocated == Vector{{"cpu", 1500}};
  });
  EXPECT_NE(reported, events.end());
}

void AReaderThatFallsBehindIsTold(FleetUnderTest& world) {
  const std::string pool = world.Join("a", kRoom);
  const std::unique_ptr<FleetWatch> watch = world.fleet().Watch();
  for (int i = 0; i < 5000; ++i) {
    world.Report(pool, {{"cpu", i}});
    if (i % 50 == 0) world.loop().RunFor(Duration::Seconds(1));
  }
  world.loop().RunFor(Duration::Seconds(1));
  const auto events = rt::RunTask(world.loop(), watch->Next());
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_LE(events->size(), 4096);
  EXPECT_EQ(events->front().type, FleetEvent::Type::kOverflow);
}

void HealthKnowsWhoIsConnected(FleetUnderTest& world) {
  const std::string pool = world.Join("a", kRoom);
  auto health = world.fleet().Health();
  ASSERT_EQ(health.size(), 1);
  EXPECT_EQ(health[0].pool_uid, pool);
  EXPECT_EQ(health[0].contact, PoolHealth::Contact::kConnected);
  EXPECT_GE(health[0].lease, Duration::Seconds(8));
  world.Leave(pool);
  world.loop().RunFor(Duration::Minutes(1));
  health = world.fleet().Health();
  ASSERT_EQ(health.size(), 1);
  EXPECT_EQ(health[0].contact, PoolHealth::Contact::kSilent);
  EXPECT_GE(world.loop().Now() - health[0].silent_since, Duration::Seconds(50));
}

void AClaimedMoveIsClaimedUntilItEnds(FleetUnderTest& world) {
  EXPECT_TRUE(world.fleet().ClaimMove("u", 3));
  world.fleet().EndMove("u", 3, MoveOutcome::kAbandoned);
  EXPECT_TRUE(world.fleet().ClaimMove("u", 3));
  world.fleet().EndMove("u", 3, MoveOutcome::kCommitted);
}

void ATunnelNeedsASession(FleetUnderTest& world) {
  std::map<std::string, std::string> options;
  const auto tunnel = rt::RunTask(
      world.loop(), world.fleet().OpenTunnel("no-such-pool", "u", 1, "console", options));
  EXPECT_TRUE(tunnel.status().Is(Reason::kNotFound)) << tunnel.status();
}

#define CONTRACT(name) \
  FleetContract { #name, &(name) }
constexpr FleetContract kContracts[] = {
    CONTRACT(AnOfferReachesItsHostAndItsAnswerComesBack),
    CONTRACT(ManyOffersAreAnsweredOnceEach),
    CONTRACT(SilenceIsNoAnswerAfterTheLimit),
    CONTRACT(EachOfferHasItsOwnLimit),
    FleetContract{"S6_Seq15_ALateAcceptanceIsReleased", &LateAcceptanceIsReleased},
    CONTRACT(AReleaseReachesTheHost),
    CONTRACT(TheEndOfASessionAnswersWhatWasAsked),
    CONTRACT(APoolWithoutSessionGivesNoAnswer),
    CONTRACT(PoolsAreThoseThatCanBeAsked),
    CONTRACT(AWatchTellsWhoJoinsReportsAndLeaves),
    CONTRACT(AReaderThatFallsBehindIsTold),
    CONTRACT(HealthKnowsWhoIsConnected),
    CONTRACT(AClaimedMoveIsClaimedUntilItEnds),
    CONTRACT(ATunnelNeedsASession),
};
#undef CONTRACT

}  // namespace

std::span<const FleetContract> FleetContracts() { return kContracts; }

void RunFleetContract(const FleetFactory& factory, const FleetContract& contract) {
  const std::unique_ptr<FleetUnderTest> under_test = factory();
  contract.check(*under_test);
}

}  // namespace berth::fleet
