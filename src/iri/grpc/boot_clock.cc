// SPDX-License-Identifier: Apache-2.0
#include "iri/grpc/boot_clock.h"

#include <algorithm>
#include <ctime>
#include <limits>

#include "base/check.h"

namespace berth::iri {

namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

int64_t BootNow() {
  timespec time = {};
  CHECK(clock_gettime(CLOCK_BOOTTIME, &time) == 0);
  return int64_t{time.tv_sec} * kNanosPerSecond + time.tv_nsec;
}

}  // namespace

int64_t ToBootNanos(Time time, Time now) {
  int64_t nanos = 0;
  if (__builtin_add_overflow(BootNow(), (time - now).nanos(), &nanos)) {
    return std::numeric_limits<int64_t>::max();
  }
  return std::max<int64_t>(nanos, 0);
}

Time FromBootNanos(int64_t nanos, Time now) {
  int64_t local = 0;
  if (__builtin_add_overflow(now.nanos(), nanos - BootNow(), &local)) {
    return Time::FromNanos(std::numeric_limits<int64_t>::max());
  }
  return Time::FromNanos(local);
}

}  // namespace berth::iri
