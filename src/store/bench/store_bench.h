// SPDX-License-Identifier: Apache-2.0
// Measures a rocks store. What `berth bench store` prints.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace berth::store {

struct StoreBenchOptions {
  std::string dir;  // where a folder for the store is made, and removed afterwards
  int producers = 16;
  Duration duration = Duration::Seconds(5);  // of the creates
  size_t objects = 100'000;                  // for start and memory
  size_t value_bytes = 1'500;
};

// One line of the result, in the form of all benches.
struct BenchFigure {
  std::string metric;
  double value = 0;
  std::string unit;
  std::map<std::string, std::string> params;
};

// Figures: fsync_per_s, store_create_rate_N, store_create_p50_ms_N, store_create_p99_ms_N,
// store_group_average_N, store_load_rate, store_open_ms, store_rss_mb. Blocks; makes its own loop.
Result<std::vector<BenchFigure>> RunStoreBench(const StoreBenchOptions& options);

}  // namespace berth::store
