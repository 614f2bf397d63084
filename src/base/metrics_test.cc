// SPDX-License-Identifier: Apache-2.0
// Defends that series are shared by name and labels and come out in Prometheus' text format.
#include "base/metrics.h"

#include <gtest/gtest.h>

namespace berth::metrics {
namespace {

TEST(Metrics, TheSameNameAndLabelsAreOneSeries) {
  Registry registry;
  registry.GetCounter("berth_x_total", "Xs.", {{"verb", "get"}}).Add();
  registry.GetCounter("berth_x_total", "Xs.", {{"verb", "get"}}).Add(2);
  registry.GetCounter("berth_x_total", "Xs.", {{"verb", "list"}}).Add();
  EXPECT_EQ(registry.GetCounter("berth_x_total", "", {{"verb", "get"}}).value(), 3);
  const std::string text = registry.Text();
  EXPECT_NE(text.find("# TYPE berth_x_total counter"), std::string::npos) << text;
  EXPECT_NE(text.find("berth_x_total{verb=\"get\"} 3"), std::string::npos) << text;
}

TEST(Metrics, HistogramsCountIntoTheirBuckets) {
  Registry registry;
  registry.GetHistogram("berth_seconds", "Time.", {0.1, 1}).Observe(0.5);
  const std::string text = registry.Text();
  EXPECT_NE(text.find("berth_seconds_bucket{le=\"1\"} 1"), std::string::npos) << text;
}

}  // namespace
}  // namespace berth::metrics
