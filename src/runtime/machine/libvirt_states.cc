// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/libvirt_states.h"

#include <libvirt/libvirt.h>

namespace berth::runtime {
namespace {

OffReason StoppedBecause(int detail) {
  switch (detail) {
    case VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN: return OffReason::kShutDown;
    case VIR_DOMAIN_EVENT_STOPPED_DESTROYED: return OffReason::kDestroyed;
    case VIR_DOMAIN_EVENT_STOPPED_CRASHED:
    case VIR_DOMAIN_EVENT_STOPPED_FAILED: return OffReason::kFailed;
    default: return OffReason::kUnknown;
  }
}

PauseReason SuspendedBecause(int detail) {
  switch (detail) {
    case VIR_DOMAIN_EVENT_SUSPENDED_IOERROR: return PauseReason::kDiskFull;
    case VIR_DOMAIN_EVENT_SUSPENDED_WATCHDOG: return PauseReason::kWatchdog;
    case VIR_DOMAIN_EVENT_SUSPENDED_API_ERROR: return PauseReason::kLibvirtFailed;
    default: return PauseReason::kTold;
  }
}

}  // namespace

GuestState GuestStateOf(int state) {
  switch (state) {
    case VIR_DOMAIN_RUNNING:
    case VIR_DOMAIN_BLOCKED: return GuestState::kRunning;
    case VIR_DOMAIN_PAUSED:
    case VIR_DOMAIN_PMSUSPENDED: return GuestState::kPaused;
    case VIR_DOMAIN_SHUTDOWN: return GuestState::kStopping;
    default: return GuestState::kOff;
  }
}

OffReason OffReasonOf(int reason) {
  switch (reason) {
    case VIR_DOMAIN_SHUTOFF_SHUTDOWN: return OffReason::kShutDown;
    case VIR_DOMAIN_SHUTOFF_DESTROYED: return OffReason::kDestroyed;
    case VIR_DOMAIN_SHUTOFF_CRASHED:
    case VIR_DOMAIN_SHUTOFF_FAILED: return OffReason::kFailed;
    default: return OffReason::kUnknown;
  }
}

PauseReason PauseReasonOf(int state, int reason) {
  if (state == VIR_DOMAIN_PMSUSPENDED) return PauseReason::kAsleep;
  switch (reason) {
    case VIR_DOMAIN_PAUSED_IOERROR: return PauseReason::kDiskFull;
    case VIR_DOMAIN_PAUSED_WATCHDOG: return PauseReason::kWatchdog;
    default: return PauseReason::kTold;  // of a failure of libvirt nothing is left in the state
  }
}

std::optional<DomainEvent> LifeEventOf(int event, int detail) {
  DomainEvent told;
  switch (event) {
    case VIR_DOMAIN_EVENT_DEFINED:
      if (detail != VIR_DOMAIN_EVENT_DEFINED_ADDED) return std::nullopt;
      told.kind = DomainEvent::Kind::kDefined;
      break;
    case VIR_DOMAIN_EVENT_STARTED:
      // One that wakes up was there all the time.
      told.kind = detail == VIR_DOMAIN_EVENT_STARTED_WAKEUP ? DomainEvent::Kind::kResumed
                                                            : DomainEvent::Kind::kStarted;
      break;
    case VIR_DOMAIN_EVENT_RESUMED: told.kind = DomainEvent::Kind::kResumed; break;
    case VIR_DOMAIN_EVENT_SUSPENDED:
      told.kind = DomainEvent::Kind::kPaused;
      told.pause = SuspendedBecause(detail);
      break;
    case VIR_DOMAIN_EVENT_PMSUSPENDED:
      told.kind = DomainEvent::Kind::kPaused;
      told.pause = PauseReason::kAsleep;
      break;
    case VIR_DOMAIN_EVENT_STOPPED:
      told.kind = DomainEvent::Kind::kStopped;
      told.reason = StoppedBecause(detail);
      break;
    default: return std::nullopt;
  }
  return told;
}

}  // namespace berth::runtime
