// SPDX-License-Identifier: Apache-2.0
// Defends: what a guest said before it was started is not taken for what it says now, also if its
// log is longer than what is told of it, and if each start says the same.
#include "cli/commands/first_words.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::cli {
namespace {

// What one start says.
std::string Boot() {
  std::string said = "Hello from the guest\n";
  for (int line = 0; line < 10'000; ++line) said += std::to_string(line % 977) + " line\n";
  return said;
}

TEST(FirstWords, AShortLogIsKnownWhole) {
  EXPECT_EQ(KnownWords("", "new"), 0U);
  EXPECT_EQ(KnownWords("old ", "old new"), 4U);
  EXPECT_EQ(KnownWords("old ", "ol"), std::nullopt) << "the rest is to come";
  EXPECT_EQ(KnownWords("old ", "another log"), 0U);
  EXPECT_EQ(KnownWords("old ", "d another log"), 0U) << "that is chance";
}

TEST(FirstWords, OfALongLogOnlyTheEndIsTold) {
  const std::string boot = Boot();
  const std::string before = boot + boot + boot;
  // As much as was told before, and the log has grown.
  const std::string whole = before + boot;
  const std::string now = whole.substr(5'000);
  EXPECT_EQ(KnownWords(before, now), before.size() - 5'000) << "not the end of the first of them";
  EXPECT_EQ(KnownWords(before, now.substr(0, 20'000)), std::nullopt);
  EXPECT_EQ(KnownWords(before, now.substr(0, before.size() - 5'000)), std::nullopt)
      << "nothing is new yet";
  EXPECT_EQ(KnownWords(before, "it began anew\n" + boot), 0U);
}

TEST(FirstWords, AGuestThatRepeatsItselfCostsNoTime) {
  const std::string before(1 << 20, 'a');
  EXPECT_EQ(KnownWords(before, std::string(1 << 19, 'a') + "b"), 1U << 19);
  EXPECT_EQ(KnownWords(before + "b", std::string(1 << 20, 'a') + "c"), 0U);
}

}  // namespace
}  // namespace berth::cli
