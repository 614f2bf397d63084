// SPDX-License-Identifier: Apache-2.0
// Silence, leases and fences (PROTOCOL 3.3 to 3.6), without a clock.
#include "gateway/rules/health_book.h"

#include <gtest/gtest.h>

namespace berth::gateway {
namespace {

using Ready = HealthBook::Ready;
using Contact = fleet::PoolHealth::Contact;

Time At(int64_t seconds) { return Time::FromNanos(seconds * 1'000'000'000); }

class HealthBookTest : public testing::Test {
 protected:
  // Ticks every second up to and including `to`; the turns that came.
  std::vector<HealthBook::Turn> TickTo(int64_t to) {
    std::vector<HealthBook::Turn> turns;
    for (; now_ <= to; ++now_) {
      for (const auto& turn : book_.Tick(At(now_))) turns.push_back(turn);
    }
    return turns;
  }
  void Begin(const std::string& host = "a") {
    book_.Know("p-" + host, host);
    book_.Begin(host, Duration::Seconds(8), At(now_));
  }
  HealthBook book_{At(0), 2};
  int64_t now_ = 0;
};

TEST_F(HealthBookTest, R3_6_SilenceIsToldOnceAfterSixSeconds) {
  Begin();
  EXPECT_TRUE(TickTo(5).empty());
  EXPECT_TRUE(book_.IsReachable("p-a"));
  EXPECT_EQ(TickTo(6), (std::vector<HealthBook::Turn>{{"p-a", Ready::kUnknown}}));
  EXPECT_FALSE(book_.IsReachable("p-a"));
  EXPECT_TRUE(TickTo(60).empty());
  book_.Word("a", At(now_));
  EXPECT_EQ(TickTo(now_), (std::vector<HealthBook::Turn>{{"p-a", Ready::kYes}}));
}

TEST_F(HealthBookTest, AllPoolsOfAHostShareItsSession) {
  book_.Know("p-2", "a");
  Begin();
  EXPECT_EQ(TickTo(6).size(), 2);
  EXPECT_EQ(book_.All(At(6)).size(), 2);
}

TEST_F(HealthBookTest, R5_1_TheEndOfASessionIsNotReachableAtOnceButUnknownOnlyAfterTheGrace) {
  Begin();
  TickTo(2);
  book_.Word("a", At(2));
  book_.End("a", At(2));
  EXPECT_FALSE(book_.IsReachable("p-a"));
  EXPECT_TRUE(TickTo(7).empty());
  EXPECT_EQ(TickTo(8).size(), 1);
}

TEST_F(HealthBookTest, R3_6_AGoodbyeIsAnAbsenceOfFiveMinutes) {
  Begin();
  book_.Goodbye("a", At(1));
  book_.End("a", At(1));
  EXPECT_EQ(TickTo(2), (std::vector<HealthBook::Turn>{{"p-a", Ready::kAway}}));
  EXPECT_EQ(book_.All(At(2)).at(0).contact, Contact::kAway);
  EXPECT_TRUE(TickTo(300).empty());
  EXPECT_EQ(TickTo(301), (std::vector<HealthBook::Turn>{{"p-a", Ready::kUnknown}}));
}

TEST_F(HealthBookTest, R3_4_AServerThatWasPausedGivesEverybodyTheGraceAnew) {
  Begin();
  TickTo(1);
  EXPECT_TRUE(book_.Tick(At(100)).empty());
  EXPECT_TRUE(book_.Tick(At(105)).empty());
  EXPECT_EQ(book_.Tick(At(106)).size(), 1);
}

TEST_F(HealthBookTest, R3_3_3_AFencedHostIsGrantedNothingUntilItsNextSession) {
  Begin();
  EXPECT_TRUE(book_.Grant("a", At(3)));
  const fleet::PoolHealth health = book_.Fence("p-a", At(4));
  EXPECT_EQ(health.last_grant, At(3));
  EXPECT_EQ(health.lease, Duration::Seconds(8));
  EXPECT_FALSE(book_.Grant("a", At(5)));
  EXPECT_EQ(book_.Fence("p-a", At(6)).last_grant, At(3));
  book_.End("a", At(6));
  book_.Begin("a", Duration::Seconds(8), At(7));
  EXPECT_TRUE(book_.Grant("a", At(8)));
}

TEST_F(HealthBookTest, R3_3_6_WhatANewServerDoesNotKnowCountsFromItsStart) {
  book_.Know("p", "never-seen");
  EXPECT_EQ(book_.Fence("p", At(50)).last_grant, At(0));
  EXPECT_EQ(book_.Fence("not-even-known", At(50)).last_grant, At(0));
  EXPECT_EQ(book_.All(At(1)).at(0).contact, Contact::kSilent);
}

TEST_F(HealthBookTest, R3_3_6_ANewServerCountsWithTheLeaseThatAnEarlierOneGranted) {
  book_.Know("p-a", "a", {.lease = Duration::Seconds(40), .planned_until = std::nullopt});
  EXPECT_EQ(book_.Fence("p-a", At(1)).lease, Duration::Seconds(40));
  // Its first session is told today's, and what was granted before holds for as long as it may.
  book_.Begin("a", Duration::Seconds(8), At(2));
  EXPECT_TRUE(book_.Grant("a", At(3)));
  EXPECT_EQ(book_.LeaseOf("a"), Duration::Seconds(8));
  EXPECT_EQ(book_.All(At(3)).at(0).lease, Duration::Seconds(40));
  EXPECT_TRUE(book_.Grant("a", At(41)));
  EXPECT_EQ(book_.All(At(41)).at(0).lease, Duration::Seconds(8));
}

TEST_F(HealthBookTest, R3_3_6_ALeaseThatShrankCountsUntilWhatWasGrantedIsOver) {
  book_.Know("p-a", "a");
  book_.Begin("a", Duration::Seconds(40), At(0));
  EXPECT_TRUE(book_.Grant("a", At(10)));
  book_.End("a", At(11));
  book_.Begin("a", Duration::Seconds(8), At(12));
  EXPECT_EQ(book_.Fence("p-a", At(12)).lease, Duration::Seconds(40));
  book_.Begin("a", Duration::Seconds(8), At(13));
  EXPECT_TRUE(book_.Grant("a", At(50)));
  EXPECT_EQ(book_.All(At(50)).at(0).lease, Duration::Seconds(40));
  EXPECT_TRUE(book_.Grant("a", At(51)));
  EXPECT_EQ(book_.All(At(51)).at(0).lease, Duration::Seconds(8));
}

TEST_F(HealthBookTest, C19_AnAbsenceGoesOnWithANewServer) {
  book_.Know("p-a", "a", {.lease = Duration::Seconds(8), .planned_until = At(100)});
  book_.Know("p-b", "b", {.lease = Duration::Seconds(8), .planned_until = At(100)});
  EXPECT_EQ(book_.All(At(50)).at(0).contact, Contact::kAway);
  EXPECT_TRUE(TickTo(50).empty());
  // One comes back, of the other nothing is heard.
  book_.Begin("b", Duration::Seconds(8), At(50));
  book_.Word("b", At(99));
  EXPECT_EQ(TickTo(100), (std::vector<HealthBook::Turn>{{"p-a", Ready::kUnknown}}));
}

TEST_F(HealthBookTest, R3_5_TheLeaseGrowsWithTheFleetAndTheGraceWithTheLease) {
  EXPECT_EQ(LeaseFor(0, 2), Duration::Seconds(8));
  EXPECT_EQ(LeaseFor(1000, 2), Duration::Seconds(8));
  EXPECT_EQ(LeaseFor(10'000, 2), Duration::Seconds(40));
  EXPECT_EQ(LeaseFor(10'000, 0), Duration::Seconds(80));
  EXPECT_EQ(GraceFor(Duration::Seconds(8)), Duration::Seconds(6));
  EXPECT_EQ(GraceFor(Duration::Seconds(40)), Duration::Seconds(30));
}

TEST_F(HealthBookTest, AForgottenPoolIsForgotten) {
  Begin();
  book_.End("a", At(1));
  book_.Forget("p-a");
  EXPECT_TRUE(TickTo(60).empty());
  EXPECT_EQ(book_.hosts(), 0);
}

}  // namespace
}  // namespace berth::gateway
