// SPDX-License-Identifier: Apache-2.0
// Defends what a report writes besides its condition, and that it is no reason for a write.
#include "scheduler/placing/pending_reports.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/placement.h"

namespace berth::scheduler {
namespace {

constexpr WallTime kNow = WallTime::FromSeconds(1000);

Pending Because(const std::string& reason) {
  return {.reason = reason, .reasons = reason, .message = "because"};
}

meta::Object MachineWith(std::optional<apis::core::PlacementStatus> placement) {
  apis::compute::Machine machine;
  machine.metadata.name = "web";
  machine.status.placement = std::move(placement);
  return meta::Object::Of(apis::compute::kMachineKind, std::move(machine));
}

TEST(SetNotScheduled, CountsSearchesWithAConditionThatChanged) {
  meta::Object machine = MachineWith(std::nullopt);
  EXPECT_TRUE(SetNotScheduled(machine, Because("Unschedulable"), 3, kNow));
  ASSERT_TRUE(apis::PlacementOf(machine).has_value());
  EXPECT_EQ(apis::PlacementOf(machine)->attempt, 3);
  EXPECT_EQ(apis::PlacementOf(machine)->reason, "Unschedulable");
  const meta::Object before = machine;
  EXPECT_FALSE(SetNotScheduled(machine, Because("Unschedulable"), 7, kNow));
  EXPECT_EQ(machine, before);
  EXPECT_TRUE(SetNotScheduled(machine, Because("AllPoolsRefused"), 8, kNow));
  EXPECT_EQ(apis::PlacementOf(machine)->attempt, 11);
  EXPECT_EQ(apis::PlacementOf(machine)->reason, "AllPoolsRefused");
}

TEST(SetNotScheduled, LeavesWhyThePlaceWasLost) {
  meta::Object machine =
      MachineWith(apis::core::PlacementStatus{.epoch = 2, .attempt = 1, .reason = "NoDisk"});
  EXPECT_TRUE(SetNotScheduled(machine, Because("Unschedulable"), 2, kNow));
  EXPECT_EQ(apis::PlacementOf(machine)->attempt, 3);
  EXPECT_EQ(apis::PlacementOf(machine)->reason, "NoDisk");
}

TEST(SetNotScheduled, ANumberFromOutsideIsNoMoreThanANumber) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const auto& [attempt, expected] :
       {std::pair<int64_t, int64_t>{-5, 2}, {kMost, int64_t{1} << 53}}) {
    meta::Object machine = MachineWith(apis::core::PlacementStatus{.attempt = attempt});
    EXPECT_TRUE(SetNotScheduled(machine, Because("Unschedulable"), 2, kNow));
    EXPECT_EQ(apis::PlacementOf(machine)->attempt, expected);
  }
}

}  // namespace
}  // namespace berth::scheduler
