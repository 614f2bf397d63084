// SPDX-License-Identifier: Apache-2.0
// Defends: who finds a crash finds below its report the line that was set last, and status 1.
#include "app/process/crash_line.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "base/check.h"

namespace berth::app {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

TEST(CrashLineDeathTest, FollowsAFailedCheck) {
  const auto crash = [] {
    CrashLine line;
    line.Set("replay: berth sim --seed 6");
    line.Set("replay: berth sim --seed 7");
    CHECK(1 + 1 == 3) << "counted";
  };
  EXPECT_EXIT(
      crash(), ExitedWithCode(1), "CHECK failed at .* counted\nreplay: berth sim --seed 7\n$");
}

TEST(CrashLineDeathTest, FollowsEverySignalOfACrash) {
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    const auto crash = [number] {
      CrashLine line;
      line.Set("last words");
      std::raise(number);
    };
    EXPECT_EXIT(crash(), ExitedWithCode(1), "last words\n") << number;
  }
}

TEST(CrashLineDeathTest, IsNotSaidOnceItIsGone) {
  const auto crash = [] {
    {
      CrashLine line;
      line.Set("last words");
    }
    std::abort();
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGABRT), "^$");
}

}  // namespace
}  // namespace berth::app
