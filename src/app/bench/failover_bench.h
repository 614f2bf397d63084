// SPDX-License-Identifier: Apache-2.0
// Measures how several servers on one etcd come over the loss of the one that leads: it is killed,
// or paused as if it were cut off, again and again while machines are created.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/figures.h"
#include "base/result.h"

namespace berth::app {

struct FailoverBenchOptions {
  std::string dir;  // where folders for the servers are made
  int servers = 3;
  int members = 3;  // of etcd
  int hosts = 50;
  int failovers = 30;
  std::function<void(std::string_view)> progress;
};

// Figures: failover_ms (median), failover_p99_ms and failover_max_ms, from the moment the leader is
// lost until a machine that is created then is seen bound; acknowledged, lost and placed_twice of
// the machines that were created meanwhile. NotFound without etcd. Blocks; makes its own loop and
// processes. REQUIRES: no threads.
Result<std::vector<Figure>> RunFailoverBench(const FailoverBenchOptions& options);

}  // namespace berth::app
