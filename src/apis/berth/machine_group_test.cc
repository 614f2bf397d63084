// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of MachineGroup.
#include "apis/berth/machine_group.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::berth_dev {
namespace {

using testing::CellOf;
using testing::Parse;

constexpr std::string_view kGroup = R"({
    "metadata": {"name": "ring", "namespace": "ns"}, "spec": {"minMembers": 3}})";

TEST(MachineGroup, R8_5_HasRules) {
  testing::ExpectRules<MachineGroup>(
      Parse<MachineGroup>(kGroup),
      {
          {"nobody", [](auto& g) { g.spec.min_members = 0; }, {"Required spec.minMembers"}},
          {"less", [](auto& g) { g.spec.min_members = -1; }, {"Invalid spec.minMembers"}},
          {"too many",
           [](auto& g) { g.spec.min_members = kGroupMembersMax + 1; },
           {"Invalid spec.minMembers"}},
          {"no time", [](auto& g) { g.spec.timeout = "0s"; }, {"Invalid spec.timeout"}},
          {"a day", [](auto& g) { g.spec.timeout = "24h"; }, {"Invalid spec.timeout"}},
          {"a word", [](auto& g) { g.spec.timeout = "soon"; }, {"Invalid spec.timeout"}},
          {"a minute", [](auto& g) { g.spec.timeout = "1m"; }, {}},
      });
  testing::ExpectUpdateRules<MachineGroup>(
      Parse<MachineGroup>(kGroup),
      {
          {"more", [](auto& g) { g.spec.min_members = 4; }, {"Forbidden spec.minMembers"}},
          {"another timeout", [](auto& g) { g.spec.timeout = "2m"; }, {}},
      });
}

TEST(MachineGroup, R8_5_ShowsHowFarItIs) {
  MachineGroup group = testing::WithDefaults(Parse<MachineGroup>(kGroup));
  EXPECT_EQ(TimeoutOf(group.spec), Duration::Seconds(30));
  group.status = {.phase = "Pending", .members = 2, .bound = 1, .committed = {}, .conditions = {}};
  EXPECT_EQ(CellOf(kMachineGroupKind, "Min", &group), "3");
  EXPECT_EQ(CellOf(kMachineGroupKind, "Members", &group), "2");
  EXPECT_EQ(CellOf(kMachineGroupKind, "Bound", &group), "1");
  EXPECT_EQ(CellOf(kMachineGroupKind, "Phase", &group), "Pending");
}

}  // namespace
}  // namespace berth::apis::berth_dev
