// SPDX-License-Identifier: Apache-2.0
// Why an object has lost its pool without a word of its host; PoolLost is in reservation.h.
#pragma once

#include <string_view>

namespace berth::apis::core {

// PlacementStatus::reason: an operator has said that the host is off. What an unbinding with that
// proof says of it, and no other one.
inline constexpr std::string_view kReasonOperatorFenced = "OperatorFenced";

}  // namespace berth::apis::core
