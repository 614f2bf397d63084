// SPDX-License-Identifier: Apache-2.0
// How full a fleet is when the first request finds no place.
#pragma once

#include <cstdint>

#include "scheduler/core/words.h"

namespace berth::scheduler {

// Best fit in the strict sense: every pool is looked at, the one with least left over wins.
enum class ExactFit : uint8_t {
  kSum,      // least sum of leftover fractions
  kSquares,  // least sum of their squares
};

// Mean of cpu and memory utilisation, 0 to 1, of `pools` pools filled with machines of 16 classes
// until one is refused. The seed fixes pools and machines.
double UtilisationOfBoard(Policy policy, size_t pools, uint64_t seed);
double UtilisationOfExactFit(ExactFit fit, size_t pools, uint64_t seed);

}  // namespace berth::scheduler
