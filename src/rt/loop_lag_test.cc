// SPDX-License-Identifier: Apache-2.0
// Defends: a loop that comes late is seen, for about a minute, and nobody is asked after the end.
#include "rt/loop_lag.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "rt/asio/asio_loop.h"
#include "rt/sim/sim_loop.h"

namespace berth::rt {
namespace {

TEST(MinuteMax, RemembersForAboutAMinute) {
  const Time start = Time::FromNanos(0) + Duration::Hours(1);
  const auto at = [start](int seconds) { return start + Duration::Seconds(seconds); };
  MinuteMax max;
  max.Add(at(0), Duration::Millis(5));
  max.Add(at(10), Duration::Millis(70));
  max.Add(at(20), Duration::Millis(3));
  EXPECT_EQ(max.Get(at(29)), Duration::Millis(70));
  max.Add(at(35), Duration::Millis(9));
  EXPECT_EQ(max.Get(at(50)), Duration::Millis(70));
  EXPECT_EQ(max.Get(at(66)), Duration::Millis(9));
  EXPECT_EQ(max.Get(at(300)), Duration());
}

TEST(LoopLag, ShowsALoopThatWasKept) {
  AsioLoop loop("kept");
  metrics::Registry metrics;
  std::optional<LoopLag> lag;
  lag.emplace(loop, "kept", metrics);
  loop.Post("test.keep", [&] {
    const Time until = loop.Now() + Duration::Millis(400);
    while (loop.Now() < until) {
    }
    // The measuring is due since 150 ms by then, and goes first.
    loop.After("test.end", Duration::Millis(1), [&] { loop.Stop(); });
  });
  loop.Run();
  const auto& greatest = metrics.GetGauge("berth_loop_lag_max_seconds", "", {{"loop", "kept"}});
  EXPECT_GE(greatest.value(), 0.1);
  lag.reset();
  EXPECT_NE(metrics.Text().find("berth_loop_lag_seconds_count{loop=\"kept\"}"), std::string::npos);
}

TEST(LoopLag, IsNothingOnALoopThatIsInTime) {
  SimLoop loop(1);
  metrics::Registry metrics;
  std::optional<LoopLag> lag;
  lag.emplace(loop, "punctual", metrics);
  loop.RunFor(Duration::Seconds(10));
  EXPECT_EQ(metrics.GetGauge("berth_loop_lag_max_seconds", "", {{"loop", "punctual"}}).value(), 0);
  lag.reset();
  loop.RunUntilIdle();
}

}  // namespace
}  // namespace berth::rt
