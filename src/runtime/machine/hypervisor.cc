// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/hypervisor.h"

namespace berth::runtime {

std::string_view GuestStateName(GuestState state) {
  switch (state) {
    case GuestState::kOff: return "Off";
    case GuestState::kRunning: return "Running";
    case GuestState::kPaused: return "Paused";
    case GuestState::kStopping: return "Stopping";
  }
  return "Unknown";
}

std::string_view OffReasonName(OffReason reason) {
  switch (reason) {
    case OffReason::kUnknown: return "Unknown";
    case OffReason::kShutDown: return "ShutDown";
    case OffReason::kDestroyed: return "Destroyed";
    case OffReason::kFailed: return "Failed";
  }
  return "Unknown";
}

std::string_view PauseReasonText(PauseReason reason) {
  switch (reason) {
    case PauseReason::kTold: return "it was told to";
    case PauseReason::kDiskFull: return "its disk cannot be written";
    case PauseReason::kAsleep: return "it put itself to sleep";
    case PauseReason::kWatchdog: return "its watchdog fired";
    case PauseReason::kLibvirtFailed: return "an operation of libvirt failed";
  }
  return "nobody knows why";
}

}  // namespace berth::runtime
