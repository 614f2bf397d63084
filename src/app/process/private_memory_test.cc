// SPDX-License-Identifier: Apache-2.0
// Defends: a process of the same user finds nothing in /proc of one that keeps its memory private,
// which itself goes on to find there what it needs.
#include "app/process/private_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

namespace berth::app {
namespace {

constexpr uid_t kSomebody = 65534;

bool CanOpen(pid_t pid, const std::string& name) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

// How many of the files that are nobody's business a child of ours opens.
int OpenedByAnother(pid_t pid) {
  const pid_t child = fork();
  if (child == 0) {
    int opened = 0;
    for (const char* name : {"environ", "fd", "maps"}) opened += CanOpen(pid, name) ? 1 : 0;
    _exit(opened);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

// In a child, which is not root: root reads everything.
int InAChild(int (*test)()) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setresuid(kSomebody, kSomebody, kSomebody) != 0) _exit(100);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // as after an execve; a new user takes it away
    _exit(test());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

int WhatOthersOpen() {
  constexpr int kAll = 3;
  if (OpenedByAnother(getpid()) != kAll) return 102;  // else this says nothing
  KeepMemoryPrivate();
  return OpenedByAnother(getpid());
}

int WhatItselfMisses() {
  KeepMemoryPrivate();
  int missing = 0;
  for (const char* name : {"status", "stat", "cmdline", "statm", "maps", "fd"}) {
    missing += CanOpen(getpid(), name) ? 0 : 1;
  }
  // As sockets are found whose path is long, and our own program.
  const int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const std::string inside = "/proc/self/fd/" + std::to_string(folder) + "/proc/self/stat";
  missing += access(inside.c_str(), R_OK) == 0 ? 0 : 1;
  missing += std::filesystem::read_symlink("/proc/self/exe").empty() ? 1 : 0;
  return missing;
}

TEST(PrivateMemory, OthersOfOurUserFindNothing) { EXPECT_EQ(InAChild(&WhatOthersOpen), 0); }

TEST(PrivateMemory, ItselfFindsWhatItNeeds) { EXPECT_EQ(InAChild(&WhatItselfMisses), 0); }

}  // namespace
}  // namespace berth::app
