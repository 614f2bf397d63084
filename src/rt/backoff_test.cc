// SPDX-License-Identifier: Apache-2.0
// Pauses grow, stay within their jitter and never exceed the bound.
#include "rt/backoff.h"

#include <gtest/gtest.h>

namespace berth::rt {
namespace {

TEST(Backoff, GrowsToItsBoundAndStartsAnew) {
  Random random(1);
  const BackoffOptions options = {
      .initial = Duration::Millis(100), .max = Duration::Millis(1'000), .factor = 2, .jitter = 0.2};
  Backoff backoff(options);
  for (int64_t nominal : {100, 200, 400, 800, 1000, 1000, 1000}) {
    const Duration pause = backoff.Next(random);
    EXPECT_GE(pause, Duration::Millis(nominal * 8 / 10));
    EXPECT_LE(pause, Duration::Millis(std::min<int64_t>(nominal * 12 / 10, 1'000)));
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(random), Duration::Millis(120));
}

TEST(Backoff, SaturatesInsteadOfOverflowing) {
  Random random(1);
  Backoff backoff({.initial = Duration::Hours(1), .max = Duration::Hours(2), .factor = 1e30});
  for (int i = 0; i < 100; ++i) EXPECT_LE(backoff.Next(random), Duration::Hours(2));
}

}  // namespace
}  // namespace berth::rt
