// SPDX-License-Identifier: Apache-2.0
// Whether some rules grant everything that others do.
#pragma once

#include <vector>

#include "apiserver/authz/policy.h"
#include "base/result.h"

namespace berth::apiserver {

// What of `wanted` no rule of `held` grants, broken down to single rights. Both are canonical. A
// right counts as held only if one single rule holds it. RequestTooLarge if `wanted` spells out
// more than kRightsMax rights that are not held as a whole.
Result<std::vector<PolicyRule>> Uncovered(const std::vector<PolicyRule>& held,
                                          const std::vector<PolicyRule>& wanted);

// 20,000 rights * 100 held rules * 20 ns = 40 ms on the loop at worst.
inline constexpr size_t kRightsMax = 20'000;

}  // namespace berth::apiserver
