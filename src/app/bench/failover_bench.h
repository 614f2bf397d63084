// SPDX-License-Identifier: Apache-2.0
// Measures how several servers on one etcd come over the loss of the one that leads: it is killed,
// paused, or cut off from etcd while it lives on, in turn and again and again while machines are
// created.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/figures.h"
#include "base/result.h"

namespace berth::app {

struct FailoverBenchOptions {
  std::string dir;  // where folders for servers and etcd are made
  int servers = 3;
  int members = 3;  // of etcd
  int hosts = 50;
  int losses = 30;
  std::function<void(std::string_view)> progress;
};

struct FailoverOutcome {
  std::vector<Figure> figures;
  // Not ok if something was lost or placed twice, with names: that is no noise.
  Status verdict;
};

// Figures: failover_ms (median), failover_p99_ms and failover_max_ms, from the moment the leader is
// lost until a machine that is created then is seen bound; acknowledged, lost and placed_twice of
// the machines that were created meanwhile, by the API and by the hosts (placement_tally.h).
// NotFound without etcd. Blocks; makes its own loop and processes. REQUIRES: no threads.
Result<FailoverOutcome> RunFailoverBench(const FailoverBenchOptions& options);

}  // namespace berth::app
