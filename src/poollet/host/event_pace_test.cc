// SPDX-License-Identifier: Apache-2.0
// Defends: however many events there are, no more are said at once and in a second than the server
// takes.
#include "poollet/host/event_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace berth::poollet {
namespace {

Time At(int64_t millis) { return Time() + Duration::Hours(1) + Duration::Millis(millis); }

// When events are said that all wait from the beginning, looked at every ten milliseconds.
std::vector<Time> Said(EventPace& pace, int64_t from, int64_t until) {
  std::vector<Time> said;
  for (int64_t now = from; now < until; now += 10) {
    while (pace.Take(At(now))) said.push_back(At(now));
  }
  return said;
}

TEST(EventPace, R5_8_AsManyAtOnceAsInASecondAndThenOneAfterTheOther) {
  EventPace pace;
  pace.Begin(10, At(0));
  const std::vector<Time> said = Said(pace, 0, 3000);
  ASSERT_EQ(said.size(), 10U + 29U);
  EXPECT_EQ(said[9], At(0));
  EXPECT_EQ(said[10], At(100));
  EXPECT_EQ(said.back(), At(2900));
}

// As the server counts them (gateway/identity/bucket.h).
TEST(EventPace, R5_8_NoTwoSecondsHaveMoreThanTheServerTakesInThem) {
  for (const size_t per_second : {1U, 3U, 7U, 10U, 1000U}) {
    EventPace pace;
    pace.Begin(per_second, At(0));
    double room = 2.0 * static_cast<double>(per_second);
    Time last = At(0);
    for (const Time now : Said(pace, 0, 20'000)) {
      room = std::min(2.0 * static_cast<double>(per_second),
                      room + (now - last).to_seconds() * static_cast<double>(per_second));
      last = now;
      room -= 1;
      ASSERT_GE(room, static_cast<double>(per_second) - 1.001) << per_second << " a second";
    }
  }
}

TEST(EventPace, SaysHowLongTheNextOneWaits) {
  EventPace pace;
  pace.Begin(4, At(0));
  EXPECT_EQ(pace.Left(At(0)), Duration());
  EXPECT_EQ(Said(pace, 0, 10).size(), 4U);
  EXPECT_EQ(pace.Left(At(0)), Duration::Millis(250));
  EXPECT_EQ(pace.Left(At(100)), Duration::Millis(150));
  EXPECT_EQ(pace.Left(At(250)), Duration());
}

TEST(EventPace, WhatWasNotUsedIsNotSavedUp) {
  EventPace pace;
  pace.Begin(10, At(0));
  EXPECT_EQ(Said(pace, 60'000, 60'010).size(), 10U);
}

TEST(EventPace, ANewSessionBeginsAnew) {
  EventPace pace;
  pace.Begin(10, At(0));
  EXPECT_EQ(Said(pace, 0, 10).size(), 10U);
  pace.Begin(0, At(20));
  EXPECT_EQ(Said(pace, 20, 30).size(), kEventsPerSecondDefault) << "one that does not say it";
}

}  // namespace
}  // namespace berth::poollet
