// SPDX-License-Identifier: Apache-2.0
// Defends: a difference is what `diff -u` shows, for small texts and for very large ones.
#include "cli/render/line_diff.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::cli {
namespace {

TEST(LineDiff, TheSameIsNothing) {
  EXPECT_EQ(UnifiedDiff("", ""), "");
  EXPECT_EQ(UnifiedDiff("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(UnifiedDiff("a\nb", "a\nb\n"), "");
}

TEST(LineDiff, ShowsThreeLinesAround) {
  EXPECT_EQ(UnifiedDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(LineDiff, WhatIsNewOrGoneAltogether) {
  EXPECT_EQ(UnifiedDiff("", "a\nb\n"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(UnifiedDiff("a\nb\n", ""), "@@ -1,2 +0,0 @@\n-a\n-b\n");
  EXPECT_EQ(UnifiedDiff("a\n", "a\nb\n"), "@@ -1,1 +1,2 @@\n a\n+b\n");
}

TEST(LineDiff, FarChangesAreHunksOfTheirOwnAndNearOnesAreNot) {
  EXPECT_EQ(UnifiedDiff("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n"),
            "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
  EXPECT_EQ(UnifiedDiff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n"),
            "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

TEST(LineDiff, MovedLinesAreFound) {
  EXPECT_EQ(UnifiedDiff("a\nb\nc\n", "b\nc\na\n"), "@@ -1,3 +1,3 @@\n-a\n b\n c\n+a\n");
}

TEST(LineDiff, VeryLargeTextsAreShownWithoutComparingEachWithEach) {
  std::string before;
  std::string after;
  for (int i = 0; i < 5000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  const std::string shown = UnifiedDiff(before, after);
  EXPECT_TRUE(shown.starts_with("@@ -1,5000 +1,5000 @@\n-a0\n")) << shown.substr(0, 80);
  EXPECT_TRUE(shown.ends_with("+b4999\n"));
}

}  // namespace
}  // namespace berth::cli
