// SPDX-License-Identifier: Apache-2.0
// Defends 3.5: of many hosts that come back at once, those are let in first whose lease ends first.
#include "gateway/lease_gate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

class LeaseGateTest : public testing::Test {
 protected:
  // Takes a second inside.
  rt::Task<Status> Come(std::string host, Duration lease_left) {
    CO_TRY(const LeaseGate::Place place, co_await gate_.Enter(lease_left));
    entered_.push_back(host);
    co_return co_await rt::Sleep(Duration::Seconds(1));
  }
  void Close(rt::TaskScope& scope) { EXPECT_TRUE(rt::RunTask(loop_, scope.Close()).ok()); }

  rt::SimLoop loop_{1};
  LeaseGate gate_{1};
  std::vector<std::string> entered_;
};

TEST_F(LeaseGateTest, R3_5_WhoseLeaseEndsFirstComesInFirst) {
  rt::TaskScope scope(loop_);
  scope.Spawn("first", Come("first", Duration::Seconds(8)));
  loop_.RunFor(Duration::Millis(1));
  scope.Spawn("long", Come("long", Duration::Seconds(7)));
  scope.Spawn("short", Come("short", Duration::Seconds(1)));
  scope.Spawn("none", Come("none", Duration()));
  scope.Spawn("middle", Come("middle", Duration::Seconds(4)));
  loop_.RunFor(Duration::Seconds(10));
  EXPECT_EQ(entered_, (std::vector<std::string>{"first", "none", "short", "middle", "long"}));
  Close(scope);
}

TEST_F(LeaseGateTest, WhoGivesUpWaitingTakesNobodysPlace) {
  rt::TaskScope inside(loop_);
  inside.Spawn("first", Come("first", Duration::Seconds(8)));
  loop_.RunFor(Duration::Millis(1));
  rt::TaskScope leaving(loop_);
  leaving.Spawn("gone", Come("gone", Duration()));
  inside.Spawn("second", Come("second", Duration::Seconds(1)));
  loop_.RunFor(Duration::Millis(1));
  Close(leaving);
  loop_.RunFor(Duration::Seconds(10));
  EXPECT_EQ(entered_, (std::vector<std::string>{"first", "second"}));
  Close(inside);
}

}  // namespace
}  // namespace berth::gateway
