// SPDX-License-Identifier: Apache-2.0
// Nothing that was acknowledged is lost or placed twice without being counted and named, whether
// the API says it or only the hosts do.
#include "app/bench/placement_tally.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::app {
namespace {

struct Case {
  const char* what;
  ListedMachine machine;           // of the name "m" and the UID "u"
  std::vector<std::string> hosts;  // that hold it
  bool is_lost = false;
  bool is_twice = false;
};

TEST(PlacementTally, ComparesTheApiWithTheHosts) {
  const std::vector<Case> cases = {
      {"well", {.uid = "u", .pool = "a", .epoch = 1}, {"a"}, false, false},
      {"not bound", {.uid = "u"}, {}, true, false},
      {"its host never got it", {.uid = "u", .pool = "a", .epoch = 1}, {}, true, false},
      {"elsewhere", {.uid = "u", .pool = "a", .epoch = 1}, {"b"}, true, false},
      {"on two hosts", {.uid = "u", .pool = "a", .epoch = 1}, {"a", "b"}, false, true},
      {"on two that it is not bound to", {.uid = "u"}, {"b", "c"}, true, true},
      {"bound again", {.uid = "u", .pool = "a", .epoch = 3}, {"a"}, false, true},
      {"being deleted",
       {.uid = "u", .pool = "a", .epoch = 1, .is_deleting = true},
       {"a", "b"},
       false,
       false},
  };
  for (const Case& each : cases) {
    Holdings holdings;
    if (!each.hosts.empty()) holdings["u"] = each.hosts;
    const PlacementTally tally = CountPlacements({"m"}, {{"m", each.machine}}, holdings);
    EXPECT_EQ(tally.lost.contains("m"), each.is_lost) << each.what;
    EXPECT_EQ(tally.placed_twice.contains("m"), each.is_twice) << each.what;
    EXPECT_EQ(tally.is_clean(), !each.is_lost && !each.is_twice) << each.what;
  }
}

TEST(PlacementTally, WhatIsNotListedIsLostAndNamedByItsUid) {
  const PlacementTally tally = CountPlacements({"m"}, {}, {{"u", {"a", "b"}}});
  EXPECT_EQ(tally.lost, std::set<std::string>{"m"});
  EXPECT_EQ(tally.placed_twice, std::set<std::string>{"u"});
}

TEST(PlacementTally, WhatNobodyAcknowledgedMayBeMissingButNotTwice) {
  const ListedMachine pending{.uid = "u"};
  EXPECT_TRUE(CountPlacements({}, {{"m", pending}}, {}).is_clean());
  EXPECT_FALSE(CountPlacements({}, {{"m", pending}}, {{"u", {"a", "b"}}}).is_clean());
}

TEST(PlacementTally, AVerdictNamesWhatIsWrong) {
  PlacementTally tally{.acknowledged = 40};
  EXPECT_EQ(tally.Verdict(), OkStatus());
  tally.lost = {"m-1"};
  tally.placed_twice = {"m-2", "m-3"};
  EXPECT_EQ(tally.Verdict().message(),
            "of 40 acknowledged machines 1 was lost (m-1), 2 were placed twice (m-2, m-3)");
  EXPECT_FALSE(tally.Verdict().ok());
}

TEST(PlacementTally, AVerdictIsShortHoweverMuchIsWrong) {
  PlacementTally tally{.acknowledged = 40};
  for (int i = 10; i < 30; ++i) tally.lost.insert("m-" + std::to_string(i));
  EXPECT_EQ(tally.Verdict().message(),
            "of 40 acknowledged machines 20 were lost (m-10, m-11, m-12, m-13, m-14, m-15, m-16, "
            "m-17, 12 more)");
}

}  // namespace
}  // namespace berth::app
