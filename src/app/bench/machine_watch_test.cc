// SPDX-License-Identifier: Apache-2.0
#include "app/bench/machine_watch.h"

#include <gtest/gtest.h>

#include <string>

#include "rt/sim/sim_loop.h"

namespace berth::app {
namespace {

std::string Event(const std::string& name, const std::string& pool, const std::string& state) {
  std::string line = R"({"type":"MODIFIED","object":{"kind":"Machine","metadata":{"labels":{"a":)"
                     R"("b"},"name":")" +
                     name + R"(","namespace":"bench","uid":"u-)" + name +
                     R"("},"spec":{"machineClassRef":{"name":"bench"})";
  if (!pool.empty()) line += R"(,"machinePoolRef":{"name":")" + pool + R"("})";
  line += R"(},"status":{"state":")" + state + "\"}}}\n";
  return line;
}

class MachineWatchTest : public ::testing::Test {
 protected:
  MachineWatchTest() { loop_.RunFor(Duration::Seconds(1)); }  // zero means never

  rt::SimLoop loop_{1};
  MachineWatch watch_{loop_};
};

TEST_F(MachineWatchTest, AMachineCountsWhenItIsBoundAndNotBefore) {
  watch_.Take(Event("m-1", "", "Pending"));
  EXPECT_EQ(watch_.bound(), 0U);
  watch_.Take(Event("m-1", "p-1", "Pending"));
  ASSERT_NE(watch_.Find("m-1"), nullptr);
  EXPECT_EQ(watch_.Find("m-1")->pool, "p-1");
  EXPECT_EQ(watch_.Find("m-1")->uid, "u-m-1");
  EXPECT_EQ(watch_.running(), 0U);
  watch_.Take(Event("m-1", "p-1", "Running"));
  watch_.Take(Event("m-1", "p-1", "Running"));
  EXPECT_EQ(watch_.bound(), 1U);
  EXPECT_EQ(watch_.running(), 1U);
}

TEST_F(MachineWatchTest, EventsArriveInAnyPortions) {
  const std::string events =
      Event("m-1", "p-1", "Pending") + Event("m-2", "", "Pending") + Event("m-3", "p-2", "Running");
  for (size_t size = 1; size < 64; ++size) {
    watch_.Clear();
    for (size_t at = 0; at < events.size(); at += size) watch_.Take(events.substr(at, size));
    EXPECT_EQ(watch_.bound(), 2U) << size;
    EXPECT_EQ(watch_.running(), 1U) << size;
  }
}

TEST_F(MachineWatchTest, AMoveIsSeenByAnotherPool) {
  watch_.Take(Event("m-1", "p-1", "Pending"));
  watch_.Take(Event("m-1", "", "Pending"));
  EXPECT_EQ(watch_.Find("m-1")->moved, Time());
  loop_.RunFor(Duration::Seconds(5));
  watch_.Take(Event("m-1", "p-2", "Pending"));
  EXPECT_EQ(watch_.Find("m-1")->moved - watch_.Find("m-1")->bound, Duration::Seconds(5));
}

}  // namespace
}  // namespace berth::app
