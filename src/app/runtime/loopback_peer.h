// SPDX-License-Identifier: Apache-2.0
// Which user of this host is at the other end of a connection over the loopback.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::app {

// From what /proc/net/tcp says: the owner of the established socket 127.0.0.1:`peer_port` whose
// other end is 127.0.0.1:`own_port`. nullopt if there is none. Pure.
std::optional<uid_t> LoopbackOwner(std::string_view table, uint16_t peer_port, uint16_t own_port);

// The same of this host, now. Blocks.
std::optional<uid_t> LoopbackOwner(uint16_t peer_port, uint16_t own_port);

}  // namespace berth::app
