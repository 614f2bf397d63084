// SPDX-License-Identifier: Apache-2.0
// Defends: what libvirt tells of a guest in an event is what a look at the guest tells.
#include "runtime/machine/libvirt_states.h"

#include <gtest/gtest.h>
#include <libvirt/libvirt.h>

namespace berth::runtime {
namespace {

using Kind = DomainEvent::Kind;

TEST(LibvirtStates, AGuestThatPausesIsTheSameInAnEventAndInALook) {
  const struct {
    int event;
    int detail;
    int state;
    int state_reason;
    PauseReason pause;
  } kCases[] = {
      {VIR_DOMAIN_EVENT_SUSPENDED,
       VIR_DOMAIN_EVENT_SUSPENDED_PAUSED,
       VIR_DOMAIN_PAUSED,
       VIR_DOMAIN_PAUSED_USER,
       PauseReason::kTold},
      {VIR_DOMAIN_EVENT_SUSPENDED,
       VIR_DOMAIN_EVENT_SUSPENDED_IOERROR,
       VIR_DOMAIN_PAUSED,
       VIR_DOMAIN_PAUSED_IOERROR,
       PauseReason::kDiskFull},
      {VIR_DOMAIN_EVENT_SUSPENDED,
       VIR_DOMAIN_EVENT_SUSPENDED_WATCHDOG,
       VIR_DOMAIN_PAUSED,
       VIR_DOMAIN_PAUSED_WATCHDOG,
       PauseReason::kWatchdog},
      {VIR_DOMAIN_EVENT_PMSUSPENDED,
       VIR_DOMAIN_EVENT_PMSUSPENDED_MEMORY,
       VIR_DOMAIN_PMSUSPENDED,
       VIR_DOMAIN_PMSUSPENDED_UNKNOWN,
       PauseReason::kAsleep},
  };
  for (const auto& c : kCases) {
    const auto told = LifeEventOf(c.event, c.detail);
    ASSERT_TRUE(told.has_value()) << PauseReasonText(c.pause);
    EXPECT_EQ(told->kind, Kind::kPaused) << PauseReasonText(c.pause);
    EXPECT_EQ(told->pause, c.pause) << PauseReasonText(told->pause);
    EXPECT_EQ(GuestStateOf(c.state), GuestState::kPaused);
    EXPECT_EQ(PauseReasonOf(c.state, c.state_reason), c.pause) << PauseReasonText(c.pause);
  }
}

TEST(LibvirtStates, AGuestThatWakesUpRunsAgainAndIsNotANewOne) {
  EXPECT_EQ(LifeEventOf(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_WAKEUP)->kind,
            Kind::kResumed);
  EXPECT_EQ(LifeEventOf(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_BOOTED)->kind,
            Kind::kStarted);
  EXPECT_EQ(LifeEventOf(VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_UNPAUSED)->kind,
            Kind::kResumed);
}

TEST(LibvirtStates, AGuestThatEndsIsTheSameInAnEventAndInALook) {
  const struct {
    int detail;
    int state_reason;
    OffReason off;
  } kCases[] = {
      {VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN, VIR_DOMAIN_SHUTOFF_SHUTDOWN, OffReason::kShutDown},
      {VIR_DOMAIN_EVENT_STOPPED_DESTROYED, VIR_DOMAIN_SHUTOFF_DESTROYED, OffReason::kDestroyed},
      {VIR_DOMAIN_EVENT_STOPPED_CRASHED, VIR_DOMAIN_SHUTOFF_CRASHED, OffReason::kFailed},
      {VIR_DOMAIN_EVENT_STOPPED_FAILED, VIR_DOMAIN_SHUTOFF_FAILED, OffReason::kFailed},
  };
  for (const auto& c : kCases) {
    const auto told = LifeEventOf(VIR_DOMAIN_EVENT_STOPPED, c.detail);
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->kind, Kind::kStopped);
    EXPECT_EQ(told->reason, c.off);
    EXPECT_EQ(OffReasonOf(c.state_reason), c.off);
  }
  EXPECT_EQ(GuestStateOf(VIR_DOMAIN_SHUTOFF), GuestState::kOff);
}

TEST(LibvirtStates, ADomainIsToldOfWhenItIsNew) {
  EXPECT_EQ(LifeEventOf(VIR_DOMAIN_EVENT_DEFINED, VIR_DOMAIN_EVENT_DEFINED_ADDED)->kind,
            Kind::kDefined);
  EXPECT_FALSE(LifeEventOf(VIR_DOMAIN_EVENT_DEFINED, VIR_DOMAIN_EVENT_DEFINED_UPDATED).has_value());
}

}  // namespace
}  // namespace berth::runtime
