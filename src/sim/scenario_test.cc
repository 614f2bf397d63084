// SPDX-License-Identifier: Apache-2.0
// A scenario is read, or an error says which field is wrong and what it may be.
#include "sim/scenario.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace berth::sim {
namespace {

TEST(Scenario, IsTheDefaultOneWhenNothingIsSaid) {
  const auto scenario = ParseScenario("");
  ASSERT_TRUE(scenario.ok());
  EXPECT_EQ(scenario->pools, 60);
  EXPECT_EQ(scenario->machines, 600);
  EXPECT_EQ(scenario->minutes, 20);
}

TEST(Scenario, TakesWhatAFileNamesAndKeepsTheRest) {
  const auto scenario = ParseScenario("pools: 12\nmachines: 20\nfaults: {serverCrash: 2.5}\n");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->pools, 12);
  EXPECT_EQ(scenario->server_crash, 2.5);
  EXPECT_EQ(scenario->minutes, 20);
}

TEST(Scenario, NamesTheFieldTheValueAndTheLimit) {
  struct Case {
    std::string yaml;
    std::string message;
  };
  const Case cases[] = {
      {"poools: 3", "unknown field poools"},
      {"faults: {fire: 1}", "unknown field faults.fire"},
      {"pools: 0", "pools is 0: expected 1 to 1000"},
      {"pools: 1.5", "pools is 1.5: expected a whole number"},
      {"pools: many", "pools: expected a number, not a string"},
      {"faults: 3", "faults: expected fields, not a number"},
      {"faults: {serverCrash: 1000}", "faults.serverCrash is 1000: expected 0 to 600"},
      {"moments: {bindSlow: 1.5}", "moments.bindSlow is 1.5: expected 0 to 1"},
      {"pools: 4\nmachines: 4", "goneMax is 3: at most a quarter of pools"},
      {"pools: 60\nforeignPools: 61", "foreignPools is 61: at most pools, which is 60"},
      {"pools: 60\nbucketPools: 61", "bucketPools is 61: at most pools, which is 60"},
      {"users: {hostDrains: -1}", "users.hostDrains is -1: expected 0 to 600"},
      {"tiedShare: 2", "tiedShare is 2: expected 0 to 1"},
      {"pools: 20\nmachines: 500", "machines is 500: at most 256 with this many pools"},
      {"servers: 3", "faults.restoreBackup is 0.05: expected 0 with several servers"},
      {"servers: 3\nfaults: {restoreBackup: 0}", "secondLeader is 0.3: expected 0 with several"},
      {"faults: {cutServer: 1}", "faults.cutServer is 1: expected 0 with one server"},
      {"- 1", "expected fields, not a list"},
  };
  for (const Case& one : cases) {
    const auto scenario = ParseScenario(one.yaml);
    ASSERT_FALSE(scenario.ok()) << one.yaml;
    EXPECT_NE(scenario.status().message().find(one.message), std::string::npos)
        << scenario.status();
  }
}

TEST(Scenario, EveryFieldHasAPlaceOfItsOwn) {
  for (const ScenarioField& field : ScenarioFields()) {
    for (const ScenarioField& other : ScenarioFields()) {
      if (&field == &other) continue;
      EXPECT_FALSE(field.section == other.section && field.name == other.name) << field.name;
      EXPECT_NE(field.value, other.value) << field.name;
    }
    const Scenario fallback;
    EXPECT_GE(fallback.*field.value, field.min) << field.name;
    EXPECT_LE(fallback.*field.value, field.max) << field.name;
  }
}

TEST(Scenario, EveryFileOfOursIsRead) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BERTH_SCENARIOS)) {
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const auto scenario = ParseScenario(text.str());
    EXPECT_TRUE(scenario.ok()) << entry.path() << ": " << scenario.status();
    ++files;
  }
  EXPECT_GE(files, 3);
}

}  // namespace
}  // namespace berth::sim
