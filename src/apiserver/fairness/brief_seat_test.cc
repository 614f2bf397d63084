// SPDX-License-Identifier: Apache-2.0
// Defends: whoever reads slowly what it asked for keeps others from being worked on for a second
// only.
#include "apiserver/fairness/brief_seat.h"

#include <gtest/gtest.h>

#include <optional>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::apiserver {
namespace {

class BriefSeatTest : public testing::Test {
 protected:
  BriefSeatTest() {
    auto seat = rt::RunTask(loop_, gate_.Enter(PriorityLevel::kListing, "ann"));
    CHECK(seat.ok()) << seat.status();
    seat_.emplace(loop_, *std::move(seat));
  }
  size_t Seated() const { return gate_.level(PriorityLevel::kListing).seated(); }

  rt::SimLoop loop_{1};
  metrics::Registry metrics_;
  RequestGate gate_{loop_, LevelLimits(), metrics_};
  std::optional<BriefSeat> seat_;
};

TEST_F(BriefSeatTest, IsGivenBackAfterASecond) {
  loop_.RunFor(Duration::Millis(900));
  EXPECT_EQ(Seated(), 1);
  loop_.RunFor(Duration::Millis(200));
  EXPECT_EQ(Seated(), 0);
}

TEST_F(BriefSeatTest, IsGivenBackOnceAndBeforeIfItsOwnerLeaves) {
  seat_->Leave();
  EXPECT_EQ(Seated(), 0);
  auto next = rt::RunTask(loop_, gate_.Enter(PriorityLevel::kListing, "ben"));
  ASSERT_TRUE(next.ok());
  loop_.RunFor(Duration::Seconds(2));
  EXPECT_EQ(Seated(), 1) << "the next one's is not taken away";
}

TEST_F(BriefSeatTest, EndsWithItsOwner) {
  seat_.reset();
  EXPECT_EQ(Seated(), 0);
  loop_.RunFor(Duration::Seconds(2));
}

}  // namespace
}  // namespace berth::apiserver
