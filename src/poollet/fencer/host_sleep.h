// SPDX-License-Identifier: Apache-2.0
// How long a host was suspended: what CLOCK_BOOTTIME counts and the clock of loops does not.
#pragma once

#include "base/time.h"

namespace berth::poollet {

// Since the host was booted.
Duration SleptSinceBoot();

}  // namespace berth::poollet
