// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/pull_progress.h"

#include <gtest/gtest.h>

namespace berth::runtime {
namespace {

constexpr int64_t kMiB = 1 << 20;
Time At(int64_t ms) { return Time() + Duration::Millis(ms); }

TEST(PullProgress, IsToldOnceASecondAndAtTheEnd) {
  PullProgress progress(At(0));
  EXPECT_FALSE(progress.Note(kMiB, 4 * kMiB, At(999)));
  EXPECT_EQ(progress.text(), "");
  EXPECT_TRUE(progress.Note(kMiB, 4 * kMiB, At(1000)));
  EXPECT_EQ(progress.text(), "25 % of 4.0 MiB");
  EXPECT_FALSE(progress.Note(2 * kMiB, 4 * kMiB, At(1500)));
  EXPECT_FALSE(progress.Note(kMiB, 4 * kMiB, At(2100))) << "nothing new";
  EXPECT_TRUE(progress.Note(4 * kMiB, 4 * kMiB, At(2200))) << "the last word";
  EXPECT_EQ(progress.text(), "100 % of 4.0 MiB, unpacking");
  EXPECT_FALSE(progress.Note(4 * kMiB, 4 * kMiB, At(9000)));
  progress.End();
  EXPECT_EQ(progress.text(), "");
}

TEST(PullProgress, GoesOnWhileItIsUnpacked) {
  PullProgress progress(At(0));
  EXPECT_FALSE(progress.NoteUnpacked(kMiB, 4 * kMiB, At(999))) << "one that is quick";
  EXPECT_TRUE(progress.NoteUnpacked(kMiB, 4 * kMiB, At(1000)));
  EXPECT_EQ(progress.text(), "25 % of 4.0 MiB unpacked");
  EXPECT_FALSE(progress.NoteUnpacked(2 * kMiB, 4 * kMiB, At(1500)));
  EXPECT_TRUE(progress.NoteUnpacked(3 * kMiB, 4 * kMiB, At(2000)));
  EXPECT_EQ(progress.text(), "75 % of 4.0 MiB unpacked");
  EXPECT_FALSE(progress.NoteUnpacked(1, 0, At(9000)));
}

TEST(PullProgress, SaysNothingOfWhatIsThereAlready) {
  PullProgress progress(At(0));
  for (int part = 1; part <= 4; ++part) {
    EXPECT_FALSE(progress.Note(part * kMiB, 4 * kMiB, At(part)));
  }
  EXPECT_EQ(progress.text(), "");
}

TEST(PullProgress, BelievesNoImpossibleNumbers) {
  PullProgress progress(At(0), Duration());
  EXPECT_FALSE(progress.Note(1, 0, At(1)));
  EXPECT_FALSE(progress.Note(1, -1, At(1)));
  EXPECT_TRUE(progress.Note(-5, 10 * kMiB, At(2)));
  EXPECT_EQ(progress.text(), "0 % of 10.0 MiB");
  EXPECT_TRUE(progress.Note(INT64_MAX, INT64_MAX, At(3)));
  EXPECT_TRUE(progress.text().starts_with("100 % of "));
}

}  // namespace
}  // namespace berth::runtime
