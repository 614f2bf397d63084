// SPDX-License-Identifier: Apache-2.0
// Defends: a process with filters of its own is told from one that has ours, and from one of which
// nobody can tell.
#include "base/seccomp.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace berth {
namespace {

TEST(Seccomp, CountsTheFiltersThatTheKernelSays) {
  EXPECT_EQ(SeccompFilters("Name:\tqemu\nSeccomp:\t2\nSeccomp_filters:\t3\nCpus:\t1\n"), 3);
  EXPECT_EQ(SeccompFilters("Seccomp:\t0\nSeccomp_filters:\t0\n"), 0);
  EXPECT_EQ(SeccompFilters("Seccomp:\t2\n"), 1) << "an older kernel";
  EXPECT_EQ(SeccompFilters("Name:\tSeccomp:\n"), std::nullopt);
  EXPECT_EQ(SeccompFilters(""), std::nullopt) << "it could not be read";
}

bool AddFilter() {
  sock_filter all_pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program{.len = 1, .filter = &all_pass};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A child, with a filter or without, that lives until it is told to go.
TEST(Seccomp, AProcessWithAFilterOfItsOwnIsMoreConfined) {
  for (const bool is_filtered : {false, true}) {
    std::array<int, 2> told{};
    std::array<int, 2> ready{};
    ASSERT_TRUE(pipe(told.data()) == 0 && pipe(ready.data()) == 0);
    const pid_t child = fork();
    if (child == 0) {
      close(told[1]);
      const char has = !is_filtered || AddFilter() ? 'y' : 'n';
      char end = 0;
      if (write(ready[1], &has, 1) == 1 && read(told[0], &end, 1) == 0) _exit(0);
      _exit(1);
    }
    char has = 0;
    EXPECT_EQ(read(ready[0], &has, 1), 1);
    const Confinement wanted = is_filtered ? Confinement::kMore : Confinement::kNotMore;
    if (has == 'y') EXPECT_EQ(ConfinementOf(child), wanted);
    for (const int fd : {told[0], told[1], ready[0], ready[1]}) close(fd);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  }
}

TEST(Seccomp, NobodyIsMoreConfinedThanHimself) {
  EXPECT_EQ(ConfinementOf(getpid()), Confinement::kNotMore);
}

TEST(Seccomp, OfWhomNobodySeesItIsNotSaidThatHeIsNot) {
  EXPECT_EQ(ConfinementOf(0), Confinement::kUnknown) << "of another namespace";
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(ConfinementOf(child), Confinement::kUnknown) << "gone";
}

// The last one went to the connection that it is asked for.
TEST(Seccomp, WithoutADescriptorToLookWithNothingIsKnown) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) _exit(2);
    _exit(ConfinementOf(getppid()) == Confinement::kUnknown ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace berth
