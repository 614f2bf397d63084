// SPDX-License-Identifier: Apache-2.0
// Measures the scheduler's core alone, on one core. What `berth bench scheduler` prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "scheduler/core/words.h"

namespace berth::scheduler {

struct SchedulerBenchOptions {
  std::function<Time()> now;                       // a monotonic clock
  std::function<void(std::string_view)> progress;  // what is being measured
  Duration duration = Duration::Seconds(2);        // of one round
  int rounds = 5;                                  // the median counts
  int quality_seeds = 5;
  size_t quality_pools = 1'000;
  std::vector<size_t> pools = {1'000, 10'000, 100'000};  // the middle one in other ways, too
};

// One line of the result, in the form of all benches.
struct BenchFigure {
  std::string metric;
  double value = 0;
  std::string unit;
  std::map<std::string, std::string> params;
};

// core_rate_<pools>: placements per second, while as many are released. A placement is Decide,
// Assume, the host's answer and the commit; with each comes one release and one report of a host.
// core_rate_10k_spread: the same with the other policy. core_rank3_rate_10k: with three pools
// ranked. core_quality: by how many percent utilisation at the first refusal is below exact best
// fit; below zero: above it. core_utilisation_<policy>: that utilisation in percent.
std::vector<BenchFigure> RunSchedulerBench(const SchedulerBenchOptions& options);

}  // namespace berth::scheduler
