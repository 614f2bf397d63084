// SPDX-License-Identifier: Apache-2.0
// Which addresses a guest takes for those of its own wire. Whoever gives out addresses and whoever
// tells guests the mask have to mean the same.
#pragma once

#include <string_view>

#include "base/result.h"
#include "meta/ip.h"

namespace berth::apis::networking {

// The attribute of a NetworkInterface that says how many bits of an IPv4 address all of its Network
// share.
inline constexpr std::string_view kPrefixLengthAttribute = "prefix-length";

// What it says; BadRequest if that is no number from 1 to 32.
Result<int> ParsePrefixLength(std::string_view attribute);
// What it is without the attribute, by the range that the address is in. REQUIRES: IPv4.
int UsualPrefixLength(const meta::IpAddress& address);

// Whether the address is the wire's own where so many bits are shared: the first is the network
// itself, which older guests take for everybody, and the last is everybody. Never so with 31 and
// more bits (RFC 3021), and with IPv6.
bool IsOfTheWire(const meta::IpAddress& address, int prefix_length);

}  // namespace berth::apis::networking
