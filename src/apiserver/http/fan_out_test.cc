// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/fan_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rt/scope.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"

namespace berth::apiserver {
namespace {

rt::Task<Status> Tell(FanOut* fan_out, std::vector<size_t>* told, size_t who) {
  CO_TRY_STATUS(co_await fan_out->Next());
  told->push_back(who);
  co_return OkStatus();
}

rt::Task<Status> Ask(std::vector<size_t>* told, size_t* told_before) {
  CO_TRY_STATUS(co_await rt::Yield());
  CO_TRY_STATUS(co_await rt::Yield());
  *told_before = told->size();
  co_return OkStatus();
}

TEST(FanOut, OthersHaveTheirTurnBeforeAllAreTold) {
  constexpr size_t kWatchers = 2'000;
  rt::SimLoop loop(1);
  FanOut fan_out(loop);
  std::vector<size_t> told;
  size_t told_before = kWatchers;
  rt::TaskScope scope(loop);
  for (size_t i = 0; i < kWatchers; ++i) scope.Spawn("test.tell", Tell(&fan_out, &told, i));
  scope.Spawn("test.ask", Ask(&told, &told_before));
  loop.RunFor(Duration::Seconds(1));
  ASSERT_EQ(told.size(), kWatchers);
  EXPECT_TRUE(std::ranges::is_sorted(told)) << "in the order of arrival";
  EXPECT_LE(told_before, 4 * FanOut::kPerTurn);
}

TEST(FanOut, WhoGoesAwayIsPassedOver) {
  rt::SimLoop loop(1);
  FanOut fan_out(loop);
  std::vector<size_t> told;
  rt::TaskScope staying(loop);
  rt::TaskScope leaving(loop);
  for (size_t i = 0; i < FanOut::kPerTurn; ++i) {
    staying.Spawn("test.tell", Tell(&fan_out, &told, i));
  }
  leaving.Spawn("test.tell", Tell(&fan_out, &told, 1'000));
  staying.Spawn("test.tell", Tell(&fan_out, &told, 1'001));
  leaving.Cancel();
  loop.RunFor(Duration::Seconds(1));
  EXPECT_EQ(told.size(), FanOut::kPerTurn + 1);
  EXPECT_EQ(told.back(), 1'001);
}

}  // namespace
}  // namespace berth::apiserver
