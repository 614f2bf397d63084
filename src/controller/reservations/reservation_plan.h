// SPDX-License-Identifier: Apache-2.0
// A reservation with mode All, and its parts: one reservation for every pool. Pure.
#pragma once

#include <map>
#include <string>

#include "apis/core/reservation.h"
#include "base/time.h"

namespace berth::controller {

// What the part for this pool is called: no longer than the whole's name and nine characters.
std::string PartName(const std::string& whole, const std::string& pool);
// The part for this pool, as it is to be created.
apis::core::Reservation PartFor(const apis::core::Reservation& whole, const std::string& pool);
// Whether room is to be kept on the pool of that name and these labels.
bool IsForPool(const apis::core::Reservation& whole,
               const std::string& pool,
               const std::map<std::string, std::string>& labels);

// State of every part, by pool; what could not be made is Rejected.
using PartStates = std::map<std::string, std::string>;
// Brings state, pools and the condition Scheduled up to date with the parts.
void SumUp(const PartStates& parts, WallTime now, apis::core::Reservation& whole);

}  // namespace berth::controller
