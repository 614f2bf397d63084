// SPDX-License-Identifier: Apache-2.0
// Measures how a cluster comes back: a server that is killed and started again under its hosts, and
// hosts that fall silent as if every packet from and to them were dropped.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/figures.h"
#include "base/result.h"

namespace berth::app {

struct RecoveryBenchOptions {
  std::string dir;  // where a folder for the server is made
  int hosts = 1'000;
  size_t machines = 5'000;
  int restarts = 3;
  int creators = 64;
  // Machines of a set (Replace) and with onPoolLoss Move: enough that one host has some of each.
  int set_replicas = 2'000;
  size_t movable = 2'000;
  std::function<void(std::string_view)> progress;
};

// Figures: fsync_per_s, recovery_ms (from the restart to the first new placement), recovery_all_s
// (until every host is back), loss_to_replacement_s and loss_to_move_s (from the last packet of a
// host until all that it had is bound elsewhere; of the latter with guests, none of which may run
// any more when the first is bound). Blocks; makes its own loop and processes.
// REQUIRES: no threads.
Result<std::vector<Figure>> RunRecoveryBench(const RecoveryBenchOptions& options);

}  // namespace berth::app
