// SPDX-License-Identifier: Apache-2.0
// Arithmetic on amounts by name. An amount that is not named is zero.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fleet/fleet.h"

namespace berth::poollet {

using Amounts = fleet::Vector;
inline constexpr std::string_view kCpu = "cpu";
inline constexpr std::string_view kShare = "share";
inline constexpr std::string_view kStorage = "storage";

int64_t AmountOf(const Amounts& amounts, std::string_view name);
// Sums end at the largest number instead of going round. Zeros are dropped.
void Add(Amounts& to, const Amounts& amounts);
void Subtract(Amounts& from, const Amounts& amounts);
// What of `need` is not in `have`: only positive amounts.
Amounts Beyond(const Amounts& need, const Amounts& have);
// The smaller of both, by name.
Amounts Common(const Amounts& a, const Amounts& b);
// "cpu 500m, memory 1073741824": for people.
std::string Format(const Amounts& amounts);

// The part of a pool that one object takes whose pool says only that `quantity` of its size fit if
// nothing else ran: `size` is 1 for a machine, bytes for a volume. Rounded down, so that as many
// fit as the runtime says: thirds that are rounded up make no whole, and the last one would be
// refused.
int64_t ShareOf(int64_t size, int64_t quantity);

}  // namespace berth::poollet
