// SPDX-License-Identifier: Apache-2.0
// Defends what operators see of controllers: one series per figure and controller, however many
// queues and kinds it has, and counters that only grow by what is new.
#include "client/cache/health_report.h"

#include <gtest/gtest.h>

#include <string>

#include "rt/sim/sim_loop.h"

namespace berth::client {
namespace {

TEST(HealthReport, WhatOneControllerHasCountsTogether) {
  rt::SimLoop loop(1);
  WorkQueue one(loop);
  WorkQueue two(loop);
  one.Add("a");
  loop.RunFor(Duration::Seconds(4));
  two.Add("a");
  two.Add("b");
  one.AddAfterFailure("c");
  HealthReport report;
  report.Add("both", one);
  report.Add("both", two);
  ASSERT_EQ(report.all().size(), 1U);
  const ControllerHealth& health = report.all().at("both");
  EXPECT_EQ(health.waiting, 3U);
  EXPECT_EQ(health.waiting_longest, Duration::Seconds(4));
  EXPECT_EQ(health.failing, 1U);
  EXPECT_EQ(health.failures, 1U);
}

TEST(HealthReport, IsShownAsMetrics) {
  rt::SimLoop loop(1);
  WorkQueue queue(loop);
  queue.AddAfterFailure("a");
  queue.AddAfterFailure("b");
  queue.Forget("b");
  loop.RunFor(Duration::Seconds(90));
  metrics::Registry metrics;
  for (int i = 0; i < 3; ++i) {
    HealthReport report;
    report.Add("quota", queue);
    ShowHealth(report, metrics);
  }
  const std::string text = metrics.Text();
  for (const std::string_view line :
       {"berth_controller_queue_keys{controller=\"quota\"} 2\n",
        "berth_controller_failing_keys{controller=\"quota\"} 1\n",
        "berth_controller_failing_seconds{controller=\"quota\"} 90\n",
        "berth_controller_failures_total{controller=\"quota\"} 2\n",
        "berth_controller_follow_unsynced{controller=\"quota\"} 0\n",
        "berth_controller_follow_failing_seconds{controller=\"quota\"} 0\n"}) {
    EXPECT_TRUE(text.contains(line)) << line << text;
  }
  EXPECT_TRUE(text.contains("berth_controller_queue_oldest_seconds{controller=\"quota\"} 8"))
      << text;
}

}  // namespace
}  // namespace berth::client
