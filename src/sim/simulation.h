// SPDX-License-Identifier: Apache-2.0
// One run of a scenario from a seed: a safety phase in which things go wrong, then a liveness phase
// in which nothing does and everything has to become as it is wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/branches.h"
#include "sim/broken.h"
#include "sim/scenario.h"
#include "sim/world.h"

namespace berth::sim {

struct Outcome {
  uint64_t seed = 0;
  size_t pools = 0;
  size_t machines = 0;  // that there were in all
  uint64_t faults = 0;
  uint64_t events = 0;
  size_t losses = 0;     // of leaders, of several servers: killed, asleep for long, or cut off
  size_t failovers = 0;  // of these, that were measured
  Duration failover_max;
  Duration converged_after;  // faults had ended
  std::set<Branch> reached;
  uint64_t hash = 0;
  std::optional<Violation> violation;
  std::vector<std::string> trace;  // the last lines
};

Outcome RunSimulation(const Scenario& scenario, uint64_t seed, Broken broken);
// The same twice; another second run is a violation of the checker "same-run".
using Runner = std::function<Outcome(const Scenario& scenario, uint64_t seed, Broken broken)>;
Outcome RunTwice(const Scenario& scenario,
                 uint64_t seed,
                 Broken broken,
                 const Runner& run = &RunSimulation);

// "pools=60 machines=612 faults=133 reached=14 seed=7 hash=0123456789abcdef".
std::string FormatOutcome(const Outcome& outcome);

}  // namespace berth::sim
