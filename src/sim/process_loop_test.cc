// SPDX-License-Identifier: Apache-2.0
// A process' clock has its own rate, and a pause loses nothing.
#include "sim/process_loop.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::sim {
namespace {

TEST(ProcessLoop, AClockThatIsFastShowsMoreTime) {
  rt::SimLoop world(1);
  const ProcessLoop fast(world, "fast", 10'000);
  const ProcessLoop slow(world, "slow", -10'000);
  world.RunFor(Duration::Seconds(100));
  EXPECT_EQ(fast.Now() - Time(), Duration::Seconds(101));
  EXPECT_EQ(slow.Now() - Time(), Duration::Seconds(99));
}

TEST(ProcessLoop, ATimerIsNeverEarlyByItsOwnClock) {
  rt::SimLoop world(1);
  for (const int64_t rate : {-10'000, -7, 0, 3, 9'999}) {
    ProcessLoop loop(world, "p", rate);
    for (int64_t nanos = 1; nanos < 1'000'000'000; nanos = nanos * 7 + 3) {
      const Time due = loop.Now() + Duration::Nanos(nanos);
      bool fired = false;
      loop.After("t", Duration::Nanos(nanos), [&] {
        fired = true;
        EXPECT_GE(loop.Now(), due);
      });
      world.RunFor(Duration::Nanos(nanos * 2 + 2));
      EXPECT_TRUE(fired);
    }
  }
}

TEST(ProcessLoop, WhatIsDueInAPauseHappensAfterItInOrder) {
  rt::SimLoop world(1);
  ProcessLoop loop(world, "p", 0);
  std::vector<int> seen;
  loop.After("a", Duration::Seconds(1), [&] { seen.push_back(1); });
  loop.After("b", Duration::Seconds(2), [&] { seen.push_back(2); });
  loop.Pause();
  loop.Post("c", [&] { seen.push_back(0); });
  world.RunFor(Duration::Seconds(5));
  EXPECT_TRUE(seen.empty());
  loop.Resume();
  world.RunReady();
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
}

TEST(ProcessLoop, ATimerThatCameDueInAPauseCanBeCancelled) {
  rt::SimLoop world(1);
  ProcessLoop loop(world, "p", 0);
  bool fired = false;
  const rt::TimerId timer = loop.After("a", Duration::Seconds(1), [&] { fired = true; });
  loop.Pause();
  world.RunFor(Duration::Seconds(2));
  loop.Resume();
  EXPECT_TRUE(loop.CancelTimer(timer));
  EXPECT_FALSE(loop.CancelTimer(timer));
  world.RunFor(Duration::Seconds(2));
  EXPECT_FALSE(fired);
}

}  // namespace
}  // namespace berth::sim
