// SPDX-License-Identifier: Apache-2.0
#include "base/proc_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace berth {
namespace {

TEST(ProcFile, IsReadWhole) {
  EXPECT_TRUE(ReadProcFile("/proc/self/stat").starts_with(std::to_string(getpid()) + " "));
  EXPECT_EQ(ReadProcFile("/proc/none/stat"), "");
}

TEST(ProcFile, OfAProcessThatIsGoneMeanwhileIsEmpty) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  const std::string path = "/proc/" + std::to_string(child) + "/stat";
  EXPECT_NE(ReadProcFile(path), "");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(ReadToEnd(fd), "");
  close(fd);
}

}  // namespace
}  // namespace berth
