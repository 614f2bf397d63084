// SPDX-License-Identifier: Apache-2.0
#include "net/handshake_lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rt/scope.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

constexpr uint64_t kSeed = 7;

struct Step {
  int peer = 0;
  int number = 0;
};

// Peers that answer after `answer`, and what they were let do, in order.
struct Street {
  rt::SimLoop loop{kSeed};
  HandshakeLane lane{loop};
  std::vector<Step> steps;
  int computing = 0;
  int computing_most = 0;

  rt::Task<Status> Shake(int peer, int count, Duration answer) {
    HandshakeLane::Passage passage(lane);
    for (int number = 1; number <= count; ++number) {
      {
        CO_TRY(const HandshakeLane::Turn turn, co_await passage.Next());
        computing_most = std::max(computing_most, ++computing);
        CO_TRY_STATUS(co_await rt::Yield());
        --computing;
        steps.push_back({.peer = peer, .number = number});
      }
      CO_TRY_STATUS(co_await rt::Sleep(answer));
    }
    co_return OkStatus();
  }
  size_t Begun() const {
    return static_cast<size_t>(
        std::ranges::count_if(steps, [](const Step& step) { return step.number == 1; }));
  }
};

TEST(HandshakeLane, OneComputesAtATimeAndAllGetThrough) {
  Street street;
  rt::TaskScope peers(street.loop);
  for (int i = 0; i < 200; ++i) {
    peers.Spawn("peer", street.Shake(i, 3, Duration::Millis(1)));
  }
  ASSERT_TRUE(street.loop.RunUntilIdle());
  EXPECT_EQ(street.computing_most, 1);
  EXPECT_EQ(street.steps.size(), 600U);
  EXPECT_EQ(street.lane.begun(), 0U);
}

TEST(HandshakeLane, TheFirstIsDoneBeforeTheLastHasBegun) {
  Street street;
  rt::TaskScope peers(street.loop);
  for (int i = 0; i < 1'000; ++i) peers.Spawn("peer", street.Shake(i, 2, Duration()));
  ASSERT_TRUE(street.loop.RunUntilIdle());
  const auto done =
      std::ranges::find_if(street.steps, [](const Step& step) { return step.number == 2; });
  ASSERT_NE(done, street.steps.end());
  EXPECT_LE(done - street.steps.begin(), 3);
}

TEST(HandshakeLane, WhoDoesNotAnswerKeepsOthersOutForAMomentOnly) {
  Street street;
  rt::TaskScope peers(street.loop);
  for (size_t i = 0; i < HandshakeLane::kBegunMax; ++i) {
    peers.Spawn("silent", street.Shake(static_cast<int>(i), 2, Duration::Hours(1)));
  }
  street.loop.RunReady();
  ASSERT_EQ(street.Begun(), HandshakeLane::kBegunMax);
  constexpr int kMore = 100;
  for (int i = 0; i < kMore; ++i) {
    peers.Spawn("silent too", street.Shake(i + 1'000, 2, Duration::Hours(1)));
  }
  street.loop.RunFor(HandshakeLane::kPatience / 2);
  EXPECT_EQ(street.Begun(), HandshakeLane::kBegunMax);
  street.loop.RunFor(HandshakeLane::kPatience * (kMore + 1));
  EXPECT_EQ(street.Begun(), HandshakeLane::kBegunMax + kMore);
  ASSERT_TRUE(street.loop.RunUntilIdle());
}

TEST(HandshakeLane, WhoIsGivenUpWhileWaitingLetsTheNextIn) {
  Street street;
  rt::TaskScope first(street.loop);
  rt::TaskScope given_up(street.loop);
  rt::TaskScope last(street.loop);
  first.Spawn("first", street.Shake(0, 1, Duration()));
  given_up.Spawn("given up", street.Shake(1, 1, Duration()));
  last.Spawn("last", street.Shake(2, 1, Duration()));
  given_up.Cancel();
  ASSERT_TRUE(street.loop.RunUntilIdle());
  ASSERT_EQ(street.steps.size(), 2U);
  EXPECT_EQ(street.steps[0].peer, 0);
  EXPECT_EQ(street.steps[1].peer, 2);
  EXPECT_EQ(street.lane.begun(), 0U);
}

}  // namespace
}  // namespace berth::net
