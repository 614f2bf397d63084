// SPDX-License-Identifier: Apache-2.0
// Defends that a seed fixes the sequence for ever, and that ranges are kept and even.
#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/uid.h"

namespace berth {
namespace {

TEST(Random, TheSequenceOfASeedNeverChanges) {
  Random random(42);
  EXPECT_EQ(random.Next(), 1546998764402558742ULL);
  EXPECT_EQ(random.Next(), 6990951692964543102ULL);
  Random same(42);
  same.Next();
  same.Next();
  EXPECT_EQ(same.Next(), random.Next());
  EXPECT_NE(Random(43).Next(), Random(42).Next());
}

TEST(Random, RangesAreKeptAndEven) {
  Random random(1);
  std::array<int, 5> seen{};
  for (int i = 0; i < 10'000; ++i) ++seen[random.Below(5)];
  for (const int count : seen) EXPECT_NEAR(count, 2000, 200);
  std::set<int64_t> values;
  for (int i = 0; i < 1000; ++i) values.insert(random.Between(-2, 2));
  EXPECT_EQ(values, (std::set<int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(random.Between(7, 7), 7);
  random.Between(INT64_MIN, INT64_MAX);
  for (int i = 0; i < 1000; ++i) {
    const double unit = random.Unit();
    EXPECT_GE(unit, 0.0);
    EXPECT_LT(unit, 1.0);
  }
}

TEST(Random, JitterStaysWithinItsFraction) {
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    const Duration jittered = random.Jitter(Duration::Seconds(10), 0.2);
    EXPECT_GE(jittered, Duration::Seconds(8));
    EXPECT_LE(jittered, Duration::Seconds(12));
  }
  EXPECT_EQ(random.Jitter(Duration::Seconds(10), 0), Duration::Seconds(10));
}

TEST(Random, NamesHaveNoVowels) {
  Random random(3);
  const std::string name = random.NameSuffix(1000);
  EXPECT_EQ(name.size(), 1000U);
  EXPECT_EQ(name.find_first_of("aeiou013y"), std::string::npos);
}

TEST(Uid, IsARandomUuid) {
  Random random(4);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string uid = NewUid(random);
    EXPECT_TRUE(IsUid(uid)) << uid;
    EXPECT_EQ(uid[14], '4');
    EXPECT_NE(std::string_view("89ab").find(uid[19]), std::string_view::npos);
    EXPECT_TRUE(seen.insert(uid).second);
  }
  for (const char* bad : {"",
                          "x",
                          "00000000-0000-4000-8000-00000000000",
                          "00000000-0000-4000-8000-00000000000G",
                          "00000000x0000-4000-8000-000000000000"})
    EXPECT_FALSE(IsUid(bad)) << bad;
}

}  // namespace
}  // namespace berth
