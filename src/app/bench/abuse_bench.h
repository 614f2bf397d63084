// SPDX-License-Identifier: Apache-2.0
// Measures what others notice of clients that behave badly (app/bench/abuse_process.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/abuse_process.h"
#include "app/bench/figures.h"
#include "base/result.h"
#include "base/time.h"

namespace berth::app {

struct AbuseBenchOptions {
  std::string dir;
  AbuseCounts counts;
  size_t machines = 10'000;                   // that are listed
  int clients = 4;                            // that are measured
  Duration duration = Duration::Seconds(20);  // of each of the two measurements
  std::function<void(std::string_view)> progress;
};

// Figures: idle_p99_ms, rss_idle_mb, abuse_p99_ms, rss_abuse_mb, abuse_ratio (of the two p99). What
// each sort of abuser may take of the server's memory, and so its bar, are parameters of
// rss_abuse_mb.
// Blocks; makes its own loop.
Result<std::vector<Figure>> RunAbuseBench(const AbuseBenchOptions& options);

}  // namespace berth::app
