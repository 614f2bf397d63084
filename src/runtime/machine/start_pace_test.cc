// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/start_pace.h"

#include <gtest/gtest.h>

namespace berth::runtime {
namespace {

TEST(StartPace, LetsSomeGoAtOnceAndTheRestOneByOne) {
  StartPace pace({.at_once = 3, .interval = Duration::Millis(100)});
  const Time begin = Time() + Duration::Hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(pace.Take(begin)) << i;
  // Whoever asks again after the time that it was told goes next.
  Time now = begin;
  for (int i = 0; i < 50; ++i) {
    const auto wait = pace.Take(now);
    ASSERT_TRUE(wait);
    EXPECT_LE(*wait, Duration::Millis(100));
    now = now + *wait;
    EXPECT_FALSE(pace.Take(now)) << i;
  }
  EXPECT_EQ(now - begin, Duration::Millis(5000));
  // After a pause it is as in the beginning.
  now = now + Duration::Seconds(10);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(pace.Take(now)) << i;
  EXPECT_TRUE(pace.Take(now));
}

}  // namespace
}  // namespace berth::runtime
