// SPDX-License-Identifier: Apache-2.0
// What a world has to become once nothing goes wrong any more: everything wanted runs exactly where
// the store says, everything unwanted is gone, and nothing is counted that is not there.
#pragma once

#include <string>

#include "sim/troubles.h"
#include "sim/world.h"

namespace berth::sim {

// "" if it is so; else what is still missing, for people.
std::string WhyNotConverged(const World& world, const Troubles& troubles);

}  // namespace berth::sim
