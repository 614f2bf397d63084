// SPDX-License-Identifier: Apache-2.0
#include "poollet/fencer/host_sleep.h"

#include <ctime>

#include "base/check.h"

namespace berth::poollet {
namespace {

Duration NowOf(clockid_t clock) {
  timespec time = {};
  CHECK(clock_gettime(clock, &time) == 0);
  return Duration::Seconds(time.tv_sec) + Duration::Nanos(time.tv_nsec);
}

}  // namespace

// Off by what passes between the two readings, for which leases have a kill budget.
Duration SleptSinceBoot() {
  const Duration awake = NowOf(CLOCK_MONOTONIC);
  return NowOf(CLOCK_BOOTTIME) - awake;
}

}  // namespace berth::poollet
