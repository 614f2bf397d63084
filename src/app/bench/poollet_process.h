// SPDX-License-Identifier: Apache-2.0
// A real `berth poollet` on a `berth runtime fake`, both child processes.
#pragma once

#include "app/bench/bench_world.h"
#include "base/result.h"
#include "rt/task.h"

namespace berth::app {

// Lets one join the world's server with a token, and tells its resident memory once its pool is
// ready, in MB. Both are stopped then.
rt::Task<Result<double>> MeasurePoolletRss(BenchWorld* world);

}  // namespace berth::app
