// SPDX-License-Identifier: Apache-2.0
// Defends: no object stops a controller. One that always fails waits longer and longer, and the
// others have their turns. Whoever asks learns that it fails.
#include "controller/runner.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::controller {
namespace {

class RunnerTest : public ::testing::Test, private Reconciler {
 protected:
  RunnerTest() { scope_.Spawn("runner", runner_.Run()); }
  ~RunnerTest() override { EXPECT_TRUE(rt::RunTask(loop_, scope_.Close()).ok()); }

  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) override {
    ++calls_[key];
    if (key == "poison") co_return poison_;
    co_return std::optional<Duration>();
  }
  void AddOthers() {
    for (int i = 0; i < 100; ++i) runner_.queue().Add("k-" + std::to_string(i));
  }

  rt::SimLoop loop_{1};
  Status poison_ = Internal("it cannot be done");
  std::map<std::string, int> calls_;
  Runner runner_{loop_, "test", *this, 1};
  rt::TaskScope scope_{loop_};
};

TEST_F(RunnerTest, AnObjectThatAlwaysFailsKeepsNobodyFromItsTurn) {
  runner_.queue().Add("poison");
  AddOthers();
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(calls_.size(), 101U);
  loop_.RunFor(Duration::Minutes(10));
  const int tried = calls_["poison"];
  EXPECT_GT(tried, 5);
  EXPECT_LT(tried, 200) << "with growing pauses";
  for (const auto& [key, calls] : calls_) EXPECT_TRUE(key == "poison" || calls == 1) << key;
}

TEST_F(RunnerTest, WhatKeepsFailingIsReported) {
  runner_.queue().Add("poison");
  AddOthers();
  loop_.RunFor(Duration::Minutes(2));
  client::HealthReport report;
  runner_.Report(report);
  const client::ControllerHealth& health = report.all().at("test");
  EXPECT_EQ(health.failing, 1U);
  EXPECT_GT(health.failing_longest, Duration::Seconds(119));
  EXPECT_EQ(health.failures, static_cast<uint64_t>(calls_["poison"]));
  EXPECT_EQ(health.waiting, 0U);
  EXPECT_EQ(health.unsynced, 0U);
}

TEST_F(RunnerTest, AFailureThatSaysCancelledEndsNoWorker) {
  poison_ = Cancelled("a request of its own was given up");
  runner_.queue().Add("poison");
  loop_.RunFor(Duration::Seconds(1));
  AddOthers();
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(calls_.size(), 101U);
  EXPECT_GT(calls_["poison"], 1);
}

}  // namespace
}  // namespace berth::controller
