// SPDX-License-Identifier: Apache-2.0
#include "scheduler/bench/fleet.h"

namespace berth::scheduler {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

// 16 to 128 cores, 4 GiB per core but for the third, which has 8; local disk.
constexpr std::array<BenchVector, 4> kHardware = {{
    {16'000, 64 * kGib, 1'000 * kGib},
    {32'000, 128 * kGib, 2'000 * kGib},
    {64'000, 512 * kGib, 4'000 * kGib},
    {128'000, 512 * kGib, 4'000 * kGib},
}};

}  // namespace

std::vector<BenchClass> BenchClasses() {
  std::vector<BenchClass> classes;
  for (const int64_t cores : {1, 2, 4, 8}) {
    for (const int64_t gib_per_core : {1, 2, 4, 8}) {
      classes.push_back(
          {.name = "c" + std::to_string(cores) + "m" + std::to_string(cores * gib_per_core),
           .demand = {cores * 1'000, cores * gib_per_core * kGib, cores * 20 * kGib}});
    }
  }
  return classes;
}

Resources ToResources(const BenchVector& vector) {
  Resources resources;
  for (size_t d = 0; d < vector.size(); ++d) resources[kBenchResources[d]] = vector[d];
  return resources;
}

BenchFleet DrawPlainFleet(size_t pools, Random& random) {
  BenchFleet fleet;
  for (size_t i = 0; i < pools; ++i) {
    const BenchVector& capacity = kHardware[random.Below(kHardware.size())];
    PoolSpec spec{.name = "pool-" + std::to_string(i)};
    spec.host = "host-" + std::to_string(i);
    spec.capacity = ToResources(capacity);
    for (const auto& one : BenchClasses()) spec.classes.push_back(one.name);
    fleet.pools.push_back(std::move(spec));
    fleet.capacities.push_back(capacity);
  }
  return fleet;
}

BenchFleet DrawFleet(size_t pools, Random& random) {
  BenchFleet fleet = DrawPlainFleet(pools, random);
  for (auto& spec : fleet.pools) {
    spec.labels = {{"topology.ironcore.dev/zone", "z" + std::to_string(random.Below(3))},
                   {"generation", "g" + std::to_string(random.Below(4))},
                   {"disk", random.Chance(0.5) ? "ssd" : "hdd"}};
    if (random.Chance(0.1)) spec.taints.push_back({.key = "dedicated", .value = "batch"});
    std::erase_if(spec.classes, [&](const auto&) { return random.Chance(0.1); });
  }
  return fleet;
}

}  // namespace berth::scheduler
