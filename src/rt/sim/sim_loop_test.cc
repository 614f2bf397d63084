// SPDX-License-Identifier: Apache-2.0
// One seed is one run: the trace says so. Different seeds explore different orders.
#include "rt/sim/sim_loop.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "rt/channel.h"
#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_blocking_pool.h"
#include "rt/sleep.h"

namespace berth::rt {
namespace {

Task<Status> Beat(Loop* loop, int beats) {
  for (int i = 0; i < beats; ++i) {
    CO_TRY_STATUS(co_await Sleep(loop->random().Jitter(Duration::Millis(10), 0.5)));
  }
  co_return OkStatus();
}

uint64_t TraceOf(uint64_t seed) {
  SimLoop world(seed);
  TaskScope scope(world);
  for (int i = 0; i < 10; ++i) scope.Spawn("beat", Beat(&world, 20));
  EXPECT_TRUE(world.RunUntilIdle());
  return world.trace_hash();
}

TEST(SimLoop, RepeatsARunExactlyFromItsSeed) {
  EXPECT_EQ(TraceOf(7), TraceOf(7));
  EXPECT_NE(TraceOf(7), TraceOf(8));
}

TEST(SimLoop, PermutesWhatHappensAtOneInstant) {
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimLoop world(seed);
    std::vector<int> order;
    for (int i = 0; i < 3; ++i) {
      world.After("t", Duration::Millis(1), [&order, i] { order.push_back(i); });
    }
    world.RunUntilIdle();
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6U) << "all orders of three timers occur";
}

TEST(SimLoop, KeepsTheOrderOfPostsBetweenTwoLoops) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimLoop world(seed);
    SimLoop::View& a = world.NewLoop("a");
    SimLoop::View& b = world.NewLoop("b");
    SimLoop::View& target = world.NewLoop("target");
    std::vector<int> from_a;
    std::vector<int> from_b;
    a.Post("go", [&] {
      for (int i = 0; i < 10; ++i) target.Post("a", [&from_a, i] { from_a.push_back(i); });
    });
    b.Post("go", [&] {
      for (int i = 0; i < 10; ++i) target.Post("b", [&from_b, i] { from_b.push_back(i); });
    });
    world.RunUntilIdle();
    EXPECT_TRUE(std::is_sorted(from_a.begin(), from_a.end()));
    EXPECT_TRUE(std::is_sorted(from_b.begin(), from_b.end()));
    EXPECT_EQ(from_a.size() + from_b.size(), 20U);
  }
}

TEST(SimLoop, KnowsOnWhichLoopCodeRuns) {
  SimLoop world(1);
  SimLoop::View& a = world.NewLoop("a");
  SimLoop::View& b = world.NewLoop("b");
  EXPECT_TRUE(a.IsOnLoop()) << "the driver is on every loop";
  a.Post("check", [&] {
    EXPECT_TRUE(a.IsOnLoop());
    EXPECT_FALSE(b.IsOnLoop());
    EXPECT_FALSE(world.IsOnLoop());
  });
  world.RunUntilIdle();
  EXPECT_EQ(world.events(), 1U);
}

TEST(SimLoop, MovesTimeOnlyAsFarAsAsked) {
  SimLoop world(1);
  int fired = 0;
  world.After("late", Duration::Seconds(10), [&] { ++fired; });
  world.RunFor(Duration::Seconds(9));
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(world.Now() - Time(), Duration::Seconds(9));
  EXPECT_FALSE(world.RunUntilIdle(Duration::Millis(999)));
  EXPECT_FALSE(world.RunUntil([&] { return fired == 1; }, Duration::Millis(999)));
  EXPECT_TRUE(world.RunUntil([&] { return fired == 1; }, Duration::Seconds(1)));
  EXPECT_EQ(world.Now() - Time(), Duration::Seconds(10));
}

TEST(SimLoop, SkewsTheCivilClockOfOneLoopOnly) {
  SimLoop world(1);
  SimLoop::View& skewed = world.NewLoop("skewed");
  skewed.SetWallSkew(Duration::Minutes(-5));
  EXPECT_EQ(FormatRfc3339(world.WallNow()), "2026-01-01T00:00:00Z");
  EXPECT_EQ(world.WallNow() - skewed.WallNow(), Duration::Minutes(5));
}

Task<Status> RunJob(SimBlockingPool* pool, int* ran) {
  const auto count = [ran] { return ++*ran; };
  CO_TRY(const int answer, co_await pool->Run("job", count));
  EXPECT_GE(answer, 1);
  co_return OkStatus();
}

TEST(SimBlockingPool, TakesVirtualTimeAndRefusesTooMuch) {
  SimLoop world(1);
  SimBlockingPool pool(
      {.latency_min = Duration::Millis(1), .latency_max = Duration::Millis(2), .jobs_max = 2});
  int ran = 0;
  TaskScope scope(world);
  scope.Spawn("job", RunJob(&pool, &ran));
  scope.Spawn("job", RunJob(&pool, &ran));
  const Status third = RunTask(world, RunJob(&pool, &ran));
  EXPECT_EQ(third.reason(), Reason::kTooManyRequests);
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(world.RunUntilIdle());
  EXPECT_EQ(ran, 2);
  EXPECT_GE(world.Now() - Time(), Duration::Millis(1));
}

}  // namespace
}  // namespace berth::rt
