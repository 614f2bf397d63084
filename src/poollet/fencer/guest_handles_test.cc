// SPDX-License-Identifier: Apache-2.0
// A process is taken for dead on proof only, and dies at its deadline without a handle, too.
#include "poollet/fencer/guest_handles.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "runtime/fake/guest_processes.h"

namespace berth::poollet {
namespace {

constexpr int kPatienceMillis = 20'000;

// A guest that does nothing, and is reaped with this.
class Guest {
 public:
  Guest() : pid_(fork()) {
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) pause();
    }
    handle_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    process_ = {.pid = pid_, .start_ticks = runtime::StartTicksOf(pid_)};
  }
  ~Guest() {
    End();
    close(handle_);
  }
  // Dead, and nobody asks for it any more.
  void End() {
    if (std::exchange(is_over_, true)) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  bool IsDeadWithin(int millis) const {
    pollfd polled = {.fd = handle_, .events = POLLIN, .revents = 0};
    return poll(&polled, 1, millis) == 1;
  }
  const FenceProcess& process() const { return process_; }

 private:
  const pid_t pid_;
  int handle_ = -1;
  FenceProcess process_;
  bool is_over_ = false;
};

// While it lives, this process can open nothing.
class NoDescriptors {
 public:
  NoDescriptors() {
    // The first line of a log needs descriptors where a sanitizer looks at its types.
    LOG_WARNING("fencer: no descriptors are left");
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(lowest);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_LT(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

TEST(GuestHandles, R3_3_2_AGuestForWhichThereIsNoDescriptorIsNotDead) {
  const Guest guest;
  GuestHandles handles;
  {
    const NoDescriptors none;
    EXPECT_TRUE(handles.Hold({guest.process()}).empty());
    EXPECT_TRUE(handles.descriptors().empty());
    EXPECT_TRUE(handles.unheld().contains(guest.process()));
  }
  EXPECT_TRUE(handles.Hold({guest.process()}).empty());
  EXPECT_TRUE(handles.descriptors().contains(guest.process()));
  EXPECT_TRUE(handles.unheld().empty());
}

TEST(GuestHandles, R3_3_2_AGuestWithoutAHandleDiesAtItsDeadlineAllTheSame) {
  const Guest guest;
  GuestHandles handles;
  const NoDescriptors none;
  EXPECT_TRUE(handles.Hold({guest.process()}).empty());
  handles.Kill({guest.process()});
  EXPECT_TRUE(guest.IsDeadWithin(kPatienceMillis));
}

// Nobody had one when it began, or somebody else of the host took it.
TEST(GuestHandles, R3_3_2_TheReserveComesBackWithTheNextFreeDescriptor) {
  const Guest guest;
  std::optional<GuestHandles> handles;
  {
    const NoDescriptors none;
    handles.emplace();
    EXPECT_TRUE(handles->Hold({guest.process()}).empty());
    handles->Kill({guest.process()});
    EXPECT_FALSE(guest.IsDeadWithin(0)) << "nobody can see whether this is the process";
  }
  EXPECT_TRUE(handles->Hold({}).empty());
  const NoDescriptors none;
  EXPECT_TRUE(handles->Hold({guest.process()}).empty());
  EXPECT_TRUE(handles->descriptors().empty());
  handles->Kill({guest.process()});
  EXPECT_TRUE(guest.IsDeadWithin(kPatienceMillis));
}

TEST(GuestHandles, R3_3_2_AnotherProcessOfTheNumberIsProofOfDeathAndIsLeftAlone) {
  const Guest guest;
  FenceProcess earlier = guest.process();
  --earlier.start_ticks;
  GuestHandles handles;
  EXPECT_EQ(handles.Hold({earlier}), std::vector<FenceProcess>{earlier});
  const NoDescriptors none;
  EXPECT_EQ(handles.Hold({earlier}), std::vector<FenceProcess>{earlier});
  handles.Kill({earlier});
  EXPECT_FALSE(guest.IsDeadWithin(0));
}

TEST(GuestHandles, WhatIsGoneIsGoneWithAndWithoutDescriptors) {
  Guest guest;
  guest.End();
  GuestHandles handles;
  EXPECT_EQ(handles.Hold({guest.process()}), std::vector<FenceProcess>{guest.process()});
  const NoDescriptors none;
  EXPECT_EQ(handles.Hold({guest.process()}), std::vector<FenceProcess>{guest.process()});
  EXPECT_TRUE(handles.unheld().empty());
}

}  // namespace
}  // namespace berth::poollet
