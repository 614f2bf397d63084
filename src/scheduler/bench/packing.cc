// SPDX-License-Identifier: Apache-2.0
#include "scheduler/bench/packing.h"

#include <limits>

#include "base/check.h"
#include "base/random.h"
#include "scheduler/bench/fleet.h"
#include "scheduler/core/board.h"

namespace berth::scheduler {
namespace {

double Utilisation(const BenchFleet& fleet, const BenchVector& used) {
  BenchVector capacity{};
  for (const auto& one : fleet.capacities)
    for (size_t d = 0; d < one.size(); ++d) capacity[d] += one[d];
  return (static_cast<double>(used[0]) / static_cast<double>(capacity[0]) +
          static_cast<double>(used[1]) / static_cast<double>(capacity[1])) /
         2;
}

// Places machines until place(class) says no. Pools and machines depend on the seed alone.
template <class Place>
double FillUp(const BenchFleet& fleet, uint64_t seed, Place place) {
  const auto classes = BenchClasses();
  Random random(seed ^ 0x5eed);
  BenchVector used{};
  for (;;) {
    const size_t kind = random.Below(classes.size());
    if (!place(kind)) return Utilisation(fleet, used);
    for (size_t d = 0; d < used.size(); ++d) used[d] += classes[kind].demand[d];
  }
}

// How much is left over on a pool; nothing if it does not fit.
double LeftOver(ExactFit fit,
                const BenchVector& free,
                const BenchVector& capacity,
                const BenchVector& demand) {
  double sum = 0;
  for (size_t d = 0; d < free.size(); ++d) {
    if (free[d] < demand[d]) return std::numeric_limits<double>::infinity();
    const double rest = static_cast<double>(free[d] - demand[d]) / static_cast<double>(capacity[d]);
    sum += fit == ExactFit::kSum ? rest : rest * rest;
  }
  return sum;
}

}  // namespace

double UtilisationOfBoard(Policy policy, size_t pools, uint64_t seed) {
  Random random(seed);
  const BenchFleet fleet = DrawPlainFleet(pools, random);
  Board board({.seed = seed});
  for (const auto& spec : fleet.pools) board.SetPool(spec);
  std::vector<Shape> shapes;
  for (const auto& one : BenchClasses()) {
    Requirements requirements{.class_name = one.name};
    requirements.resources = ToResources(one.demand);
    requirements.policy = policy;
    shapes.push_back(board.Intern(requirements));
  }
  uint64_t key = 0;
  Decision decision;
  return FillUp(fleet, seed, [&](size_t kind) {
    const Request request{.key = {.high = 1, .low = ++key}, .shape = shapes[kind]};
    board.Decide(request, 1, decision);
    if (decision.ranked.empty()) return false;
    CHECK(board.Assume(request, decision.ranked[0]) == AssumeVerdict::kAssumed);
    return true;
  });
}

double UtilisationOfExactFit(ExactFit fit, size_t pools, uint64_t seed) {
  Random random(seed);
  const BenchFleet fleet = DrawPlainFleet(pools, random);
  const auto classes = BenchClasses();
  std::vector<BenchVector> free = fleet.capacities;
  return FillUp(fleet, seed, [&](size_t kind) {
    double least = std::numeric_limits<double>::infinity();
    size_t best = 0;
    for (size_t pool = 0; pool < free.size(); ++pool) {
      const double left = LeftOver(fit, free[pool], fleet.capacities[pool], classes[kind].demand);
      if (left >= least) continue;
      least = left;
      best = pool;
    }
    if (least == std::numeric_limits<double>::infinity()) return false;
    for (size_t d = 0; d < free[best].size(); ++d) free[best][d] -= classes[kind].demand[d];
    return true;
  });
}

}  // namespace berth::scheduler
