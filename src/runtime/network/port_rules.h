// SPDX-License-Identifier: Apache-2.0
// What guests may send, as rules of nftables. Pure: ports in, the text for `nft -f` out.
//
// The text replaces all rules of one runtime in one transaction: there is no moment without them.
// A guest sends from its own MAC and its own addresses, answers for those alone (ARP and neighbour
// discovery), is no DHCP server and no router, and nothing that it sends goes up into the host:
// requests for addresses are read at its tap, before the bridge.
#pragma once

#include <span>
#include <string>

#include "runtime/network/network_port.h"

namespace berth::runtime {

// About a kilobyte of rules each.
constexpr size_t kPortsMax = 4096;

// REQUIRES: at most kPortsMax ports.
std::string PortRules(const NetworkOwner& owner, std::span<const NetworkPort> ports);

}  // namespace berth::runtime
