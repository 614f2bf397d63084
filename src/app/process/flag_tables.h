// SPDX-License-Identifier: Apache-2.0
// Commands that share some of their flags put their tables together from parts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "cli/command.h"

namespace berth::app {

template <size_t... kSizes>
consteval auto JoinFlags(const std::array<cli::Flag, kSizes>&... tables) {
  std::array<cli::Flag, (kSizes + ...)> all;
  auto end = all.begin();
  ((end = std::ranges::copy(tables, end).out), ...);
  return all;
}

}  // namespace berth::app
