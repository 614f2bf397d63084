// SPDX-License-Identifier: Apache-2.0
// Defends that durations and times survive writing and reading, and that ages look as Kubernetes
// prints them.
#include "base/time.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"
#include "base/result.h"

namespace berth {
namespace {

TEST(Duration, IsWrittenAsASumOfUnits) {
  EXPECT_EQ(FormatDuration(Duration()), "0s");
  EXPECT_EQ(FormatDuration(Duration::Millis(250)), "250ms");
  EXPECT_EQ(FormatDuration(Duration::Minutes(90)), "1h30m");
  EXPECT_EQ(FormatDuration(Duration::Hours(49)), "49h");
  EXPECT_EQ(FormatDuration(Duration::Seconds(-5)), "-5s");
  EXPECT_EQ(FormatDuration(Duration::Nanos(1'000'001)), "1ms1ns");
}

TEST(Duration, TheMostNegativeOneIsWrittenToo) {
  EXPECT_EQ(FormatDuration(Duration::Nanos(std::numeric_limits<int64_t>::min())),
            "-2562047h47m16s854ms775us808ns");
}

TEST(Duration, ReadsBackWhatWasWritten) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const Duration duration =
        Duration::Nanos(random.Between(0, std::numeric_limits<int64_t>::max() / 2));
    const auto parsed = ParseDuration(FormatDuration(duration));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, duration);
  }
  EXPECT_EQ(ParseDuration("2d").value(), Duration::Hours(48));
  EXPECT_EQ(ParseDuration("0").value(), Duration());
}

TEST(Duration, AnythingElseIsRefusedWithTheText) {
  for (const char* text : {"",
                           "5",
                           "s",
                           "1x",
                           "1m-",
                           "-1s",
                           "1.5s",
                           "1 s",
                           "99999999999999s",
                           "9999999999d",
                           "9000000000s9000000000s"}) {
    const auto parsed = ParseDuration(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_TRUE(parsed.status().Is(Reason::kBadRequest));
    EXPECT_NE(parsed.status().message().find(text), std::string_view::npos);
  }
}

TEST(Age, LooksAsKubernetesPrintsIt) {
  const struct {
    int64_t seconds;
    const char* text;
  } cases[] = {
      {-5, "0s"},
      {0, "0s"},
      {119, "119s"},
      {120, "2m"},
      {192, "3m12s"},
      {600, "10m"},
      {179 * 60, "179m"},
      {180 * 60, "3h"},
      {7 * 3600 + 59 * 60, "7h59m"},
      {8 * 3600, "8h"},
      {47 * 3600, "47h"},
      {48 * 3600, "2d"},
      {99 * 3600, "4d3h"},
      {8 * 86'400, "8d"},
      {729 * 86'400, "729d"},
      {730 * 86'400, "2y"},
      {(3 * 365 + 20) * 86'400, "3y20d"},
      {9 * 365 * 86'400, "9y"},
  };
  for (const auto& c : cases) EXPECT_EQ(FormatAge(Duration::Seconds(c.seconds)), c.text);
}

TEST(Rfc3339, WritesCivilTime) {
  EXPECT_EQ(FormatRfc3339(WallTime::FromSeconds(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatRfc3339(WallTime::FromSeconds(1'709'208'000)), "2024-02-29T12:00:00Z");
  EXPECT_EQ(FormatRfc3339(WallTime::FromSeconds(-1)), "1969-12-31T23:59:59Z");
  EXPECT_EQ(FormatRfc3339Micro(WallTime::FromMicros(1)), "1970-01-01T00:00:00.000001Z");
  EXPECT_EQ(FormatRfc3339Micro(WallTime::FromMicros(-1)), "1969-12-31T23:59:59.999999Z");
}

TEST(Rfc3339, ReadsBackWhatWasWritten) {
  Random random(2);
  const int64_t first = ParseRfc3339("0001-01-01T00:00:00Z").value().micros();
  const int64_t last = ParseRfc3339("9999-12-31T23:59:59.999999Z").value().micros();
  for (int i = 0; i < 5000; ++i) {
    const WallTime time = WallTime::FromMicros(random.Between(first, last));
    const auto parsed = ParseRfc3339(FormatRfc3339Micro(time));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, time);
  }
}

TEST(Rfc3339, UnderstandsOffsetsAndFractions) {
  const WallTime noon = ParseRfc3339("2026-08-22T12:00:00Z").value();
  EXPECT_EQ(ParseRfc3339("2026-08-22T14:00:00+02:00").value(), noon);
  EXPECT_EQ(ParseRfc3339("2026-08-22T06:30:00-05:30").value(), noon);
  EXPECT_EQ(ParseRfc3339("2026-08-22t12:00:00z").value(), noon);
  EXPECT_EQ(ParseRfc3339("2026-08-22T12:00:00.5Z").value(), noon + Duration::Millis(500));
  EXPECT_EQ(ParseRfc3339("2026-08-22T12:00:00.123456789Z").value(),
            noon + Duration::Micros(123'456));
}

TEST(Rfc3339, RefusesWhatIsNoTime) {
  for (const char* text : {"",
                           "2026-08-22",
                           "2026-08-22T12:00:00",
                           "2026-08-22 12:00:00Z",
                           "2026-02-29T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-01-32T00:00:00Z",
                           "2026-01-01T24:00:00Z",
                           "2026-01-01T00:60:00Z",
                           "2026-01-01T00:00:60Z",
                           "2026-01-01T00:00:00.Z",
                           "2026-01-01T00:00:00.1234567890Z",
                           "2026-01-01T00:00:00+24:00",
                           "2026-01-01T00:00:00Zx",
                           "0000-01-01T00:00:00Z",
                           "+026-01-01T00:00:00Z"}) {
    EXPECT_FALSE(ParseRfc3339(text).ok()) << text;
  }
}

}  // namespace
}  // namespace berth
