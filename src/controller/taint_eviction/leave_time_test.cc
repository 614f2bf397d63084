// SPDX-License-Identifier: Apache-2.0
#include "controller/taint_eviction/leave_time.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::controller {
namespace {

using apis::core::Taint;
using apis::core::Toleration;

constexpr WallTime At(int64_t seconds) { return WallTime::FromSeconds(seconds); }

Taint NoExecute(const std::string& key, int64_t since) {
  return {.key = key, .value = "v", .effect = "NoExecute", .time_added = At(since)};
}
Toleration For(const std::string& key, std::optional<int64_t> seconds) {
  return {.key = key,
          .operator_ = "Exists",
          .value = "",
          .effect = "NoExecute",
          .toleration_seconds = seconds};
}

TEST(LeaveTime, IsWhenTheFirstTaintSaysSo) {
  struct Case {
    std::string what;
    std::vector<Taint> taints;
    std::vector<Toleration> tolerations;
    int64_t bound;
    std::optional<int64_t> at;
  };
  const Taint no_schedule{.key = "a", .value = "", .effect = "NoSchedule", .time_added = {}};
  const std::vector<Case> cases = {
      {"no taint", {}, {}, 5, std::nullopt},
      {"only kept away", {no_schedule}, {}, 5, std::nullopt},
      {"not tolerated", {NoExecute("a", 100)}, {}, 5, 100},
      {"another one tolerated", {NoExecute("a", 100)}, {For("b", std::nullopt)}, 5, 100},
      {"tolerated for ever", {NoExecute("a", 100)}, {For("a", std::nullopt)}, 5, std::nullopt},
      {"tolerated for a while", {NoExecute("a", 100)}, {For("a", 30)}, 5, 130},
      {"not at all", {NoExecute("a", 100)}, {For("a", 0)}, 5, 100},
      {"a negative while is none", {NoExecute("a", 100)}, {For("a", -7)}, 5, 100},
      {"came later than the taint", {NoExecute("a", 100)}, {For("a", 30)}, 200, 230},
      {"the shorter of two", {NoExecute("a", 100)}, {For("a", 30), For("", 10)}, 5, 110},
      {"restricted, and everything tolerated",
       {NoExecute("restricted.berth.dev/a", 100)},
       {For("", std::nullopt)},
       5,
       100},
      {"restricted, and named",
       {NoExecute("restricted.berth.dev/a", 100)},
       {For("restricted.berth.dev/a", std::nullopt)},
       5,
       std::nullopt},
      {"restricted, and named for a while",
       {NoExecute("restricted.berth.dev/a", 100)},
       {For("restricted.berth.dev/a", 30), For("", 10)},
       5,
       130},
      {"two taints",
       {NoExecute("a", 100), NoExecute("b", 50)},
       {For("a", 30), For("b", 10)},
       5,
       60},
  };
  for (const Case& one : cases) {
    const auto leave = FindLeaveTime(one.taints, one.tolerations, At(one.bound));
    ASSERT_EQ(leave.has_value(), one.at.has_value()) << one.what;
    if (leave) EXPECT_EQ(leave->at, At(*one.at)) << one.what;
  }
  EXPECT_EQ(FindLeaveTime(std::vector{NoExecute("a", 1)}, {}, At(0))->taint, "a=v:NoExecute");
}

TEST(LeaveTime, ASillyNumberOfSecondsIsForEverAndNoOverflow) {
  const auto leave =
      FindLeaveTime(std::vector{NoExecute("a", 100)}, std::vector{For("a", INT64_MAX)}, At(5));
  ASSERT_TRUE(leave.has_value());
  EXPECT_GT(leave->at, At(1'000'000'000));
}

}  // namespace
}  // namespace berth::controller
