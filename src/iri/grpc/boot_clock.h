// SPDX-License-Identifier: Apache-2.0
// Deadlines cross processes of one host on CLOCK_BOOTTIME, which counts while the host sleeps.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace berth::iri {

// `now` is that of the caller's loop. What lies in the past of the clock is 0.
int64_t ToBootNanos(Time time, Time now);
Time FromBootNanos(int64_t nanos, Time now);

}  // namespace berth::iri
