// SPDX-License-Identifier: Apache-2.0
// Defends that a server may use what its host allows, whatever the shell that started it says.
#include "app/process/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace berth::app {
namespace {

class OpenFilesTest : public ::testing::Test {
 protected:
  OpenFilesTest() { EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0); }
  ~OpenFilesTest() override { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

  static uint64_t Soft() {
    rlimit limit{};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur;
  }
  void SetSoft(uint64_t soft) const {
    const rlimit limit{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

  rlimit before_{};
};

TEST_F(OpenFilesTest, ALowSoftLimitIsRaisedToTheHardOne) {
  SetSoft(64);
  const uint64_t wanted = std::min<uint64_t>(before_.rlim_max, kOpenFilesMax);
  EXPECT_EQ(RaiseOpenFiles(), wanted);
  EXPECT_EQ(Soft(), wanted);
}

TEST_F(OpenFilesTest, ALimitIsNeverLowered) {
  SetSoft(before_.rlim_max);
  EXPECT_EQ(RaiseOpenFiles(), before_.rlim_max);
  EXPECT_EQ(Soft(), before_.rlim_max);
}

TEST_F(OpenFilesTest, TooFewToServeAreAnError) {
  EXPECT_EQ(CheckOpenFiles(100).message(),
            "open files: at most 100 at once, a server needs 256: ulimit -Hn, LimitNOFILE=");
  EXPECT_TRUE(CheckOpenFiles(kOpenFilesMin).ok());
  EXPECT_TRUE(CheckOpenFiles(0).ok());
}

}  // namespace
}  // namespace berth::app
