// SPDX-License-Identifier: Apache-2.0
// What libvirt's numbers for states and events of domains mean. Pure.
#pragma once

#include <optional>

#include "runtime/machine/hypervisor.h"

namespace berth::runtime {

// Of virDomainGetState.
GuestState GuestStateOf(int state);
// REQUIRES: the state is one of a guest that is off.
OffReason OffReasonOf(int reason);
// REQUIRES: the state is one of a guest that is paused.
PauseReason PauseReasonOf(int state, int reason);

// Of a lifecycle event, without the domain's name; nullopt: it tells nothing that others do not.
std::optional<DomainEvent> LifeEventOf(int event, int detail);

}  // namespace berth::runtime
