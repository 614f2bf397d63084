// SPDX-License-Identifier: Apache-2.0
// A host has as many turns as it may have, however it asks; what one uses up others still have; and
// the memory for that has an end.
#include "gateway/identity/host_limiter.h"

#include <gtest/gtest.h>

namespace berth::gateway {
namespace {

constexpr Time kStart = Time::FromNanos(1);

int TurnsOf(HostLimiter& limiter, const std::string& host, Time now) {
  int count = 0;
  while (count < 1000 && limiter.Take(host, now)) ++count;
  return count;
}

TEST(HostLimiter, AHostHasItsTurnsAtOnceAndThenOneAfterTheOther) {
  HostLimiter limiter(20, 1);
  EXPECT_EQ(limiter.pause(), Duration::Seconds(1));
  EXPECT_EQ(TurnsOf(limiter, "a", kStart), 20);
  EXPECT_EQ(TurnsOf(limiter, "a", kStart), 0);
  EXPECT_EQ(TurnsOf(limiter, "a", kStart + limiter.pause()), 1);
  EXPECT_EQ(TurnsOf(limiter, "a", kStart + Duration::Hours(1)), 20);
}

TEST(HostLimiter, WhoIsToldNoUsesNothingUpByAskingAgain) {
  HostLimiter limiter(2, 1);
  EXPECT_EQ(TurnsOf(limiter, "a", kStart), 2);
  int turns = 0;
  for (int millis = 1; millis <= 2500; ++millis) {
    turns += limiter.Take("a", kStart + Duration::Millis(millis)) ? 1 : 0;
  }
  EXPECT_EQ(turns, 2);
}

TEST(HostLimiter, WhatOneHostUsesUpOthersStillHave) {
  HostLimiter limiter(20, 1);
  EXPECT_EQ(TurnsOf(limiter, "a", kStart), 20);
  EXPECT_EQ(TurnsOf(limiter, "b", kStart), 20);
}

TEST(HostLimiter, IsBoundedAndForgetsOnlyWhoHasAllTurnsAgain) {
  HostLimiter limiter(20, 1);
  for (size_t i = 0; i < HostLimiter::kHostsMax; ++i) {
    ASSERT_TRUE(limiter.Take("host-" + std::to_string(i), kStart));
  }
  EXPECT_FALSE(limiter.Take("another", kStart));
  EXPECT_EQ(limiter.size(), HostLimiter::kHostsMax);
  EXPECT_EQ(TurnsOf(limiter, "host-0", kStart), 19) << "who is known goes on";
  const Time later = kStart + Duration::Seconds(1);
  EXPECT_TRUE(limiter.Take("another", later));
  EXPECT_EQ(limiter.size(), 2U);
  EXPECT_EQ(TurnsOf(limiter, "host-0", later), 1) << "and does not begin anew";
}

}  // namespace
}  // namespace berth::gateway
