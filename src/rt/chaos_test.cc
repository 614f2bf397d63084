// SPDX-License-Identifier: Apache-2.0
// Chaos marks answer from a seed and only under a plan; reached marks count.
#include "rt/chaos.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::rt {
namespace {

#ifdef BERTH_CHAOS
std::vector<bool> Answers(uint64_t seed) {
  ChaosPlan plan(seed, {.site_chance = 0.5, .hit_chance = 0.5});
  std::vector<bool> answers;
  for (int i = 0; i < 50; ++i) {
    answers.push_back(CHAOS("a"));
    answers.push_back(CHAOS("b"));
    answers.push_back(CHAOS("c"));
  }
  return answers;
}

TEST(Chaos, IsQuietWithoutAPlan) {
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(CHAOS("quiet"));
}

TEST(Chaos, AnswersFromTheSeed) {
  EXPECT_EQ(Answers(3), Answers(3));
  EXPECT_NE(Answers(3), Answers(4));
}

TEST(Chaos, CountsHitsBySite) {
  ChaosPlan plan(1, {.site_chance = 1, .hit_chance = 1});
  EXPECT_TRUE(CHAOS("x"));
  EXPECT_TRUE(CHAOS("x"));
  EXPECT_EQ(plan.hits().at("x"), 2U);
}

TEST(Reached, CountsEveryPass) {
  for (int i = 0; i < 3; ++i) REACHED("test.reached");
  EXPECT_EQ(ReachedCounts()["test.reached"], 3U);
}
#else
TEST(Chaos, IsFalseInReleaseBuilds) {
  ChaosPlan plan(1, {.site_chance = 1, .hit_chance = 1});
  EXPECT_FALSE(CHAOS("x"));
}
#endif

}  // namespace
}  // namespace berth::rt
