// SPDX-License-Identifier: Apache-2.0
// Defends: what is supposed counts while it is supposed, and is as if it had never been afterwards.
#include "scheduler/core/supposition.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "scheduler/core/board_builders.h"

namespace berth::scheduler {
namespace {

class SuppositionTest : public testing::Test {
 protected:
  SuppositionTest() {
    PoolSpec only = Pool("only");
    only.capacity = {{"cpu", 3'000}, {"memory", 3'000}};
    pool_ = board_.SetPool(only);
    for (int i = 0; i < 5; ++i) requests_.push_back(Ask(board_, Small()));
  }
  int64_t Free() { return board_.RoomOf(pool_).free.at("cpu"); }
  std::span<const Request> First(size_t count) { return std::span(requests_).first(count); }

  Board board_{{}};
  PoolIndex pool_{};
  std::vector<Request> requests_;
};

TEST_F(SuppositionTest, WhatIsSupposedTakesRoomUntilItEnds) {
  {
    Supposition first(board_);
    ASSERT_TRUE(first.Place(First(2)));
    EXPECT_EQ(Free(), 1'000);
    EXPECT_EQ(CountTogether(board_, std::span(requests_).subspan(2)), 1U) << "one within another";
    EXPECT_FALSE(first.Place(std::span(requests_).subspan(2, 2))) << "all or none";
    EXPECT_EQ(Free(), 1'000);
  }
  EXPECT_EQ(Free(), 3'000);
  EXPECT_EQ(board_.object_count(), 0U);
}

TEST_F(SuppositionTest, NobodyIsToldOfItAndWhatWasToBeToldStillIs) {
  const std::vector<Change> known = board_.TakeChanges();
  board_.TellAgain(known);
  EXPECT_EQ(CountTogether(board_, requests_), 3U);
  const std::vector<Change> after = board_.TakeChanges();
  ASSERT_EQ(after.size(), known.size());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].pool, known[i].pool);
    EXPECT_EQ(after[i].events, known[i].events);
  }
  EXPECT_EQ(CountTogether(board_, requests_), 3U);
  EXPECT_TRUE(board_.TakeChanges().empty());
}

TEST_F(SuppositionTest, AsManyAsFitAreCounted) {
  EXPECT_EQ(CountTogether(board_, First(0)), 0U);
  EXPECT_EQ(CountTogether(board_, First(1)), 1U);
  EXPECT_EQ(CountTogether(board_, First(3)), 3U);
  EXPECT_EQ(CountTogether(board_, First(4)), 3U);
  board_.Settle(requests_[4], pool_);
  EXPECT_EQ(CountTogether(board_, First(4)), 2U);
}

TEST_F(SuppositionTest, WhoGoesIntoASupposedReservationLeavesNothingEither) {
  Request kept = Ask(board_, Small());
  kept.is_reservation = true;
  Request user = Ask(board_, Small());
  user.reservation = {kept.key};
  {
    Supposition trial(board_);
    ASSERT_TRUE(trial.Place({&kept, 1}));
    ASSERT_TRUE(trial.Place({&user, 1}));
    EXPECT_EQ(Free(), 2'000) << "it has the reservation's room";
  }
  EXPECT_EQ(Free(), 3'000);
  EXPECT_EQ(board_.object_count(), 0U);
}

}  // namespace
}  // namespace berth::scheduler
