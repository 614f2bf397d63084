// SPDX-License-Identifier: Apache-2.0
// The pools, classes and requests of the scheduler's bench, drawn from a seed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "scheduler/core/board.h"

namespace berth::scheduler {

inline constexpr size_t kBenchClasses = 16;

// cpu (thousandths), memory, storage (bytes).
using BenchVector = std::array<int64_t, 3>;
inline constexpr std::array<const char*, 3> kBenchResources = {"cpu", "memory", "storage"};

struct BenchClass {
  std::string name;
  BenchVector demand{};
};

// 16 classes: four sizes in four proportions of cpu to memory.
std::vector<BenchClass> BenchClasses();

struct BenchFleet {
  std::vector<PoolSpec> pools;
  std::vector<BenchVector> capacities;  // of pools
};

// Pools of four kinds of hardware over three zones, four generations, two kinds of disk; a tenth is
// tainted; each offers most classes.
BenchFleet DrawFleet(size_t pools, Random& random);
// The same hardware without labels and taints, every class everywhere: for measuring packing alone.
BenchFleet DrawPlainFleet(size_t pools, Random& random);

Resources ToResources(const BenchVector& vector);

}  // namespace berth::scheduler
