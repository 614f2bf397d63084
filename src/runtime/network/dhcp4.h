// SPDX-License-Identifier: Apache-2.0
// DHCP for IPv4 (RFC 2131, 2132) as a port needs it: it has one address, and whoever asks at its
// tap is told that one. Pure: a frame in, a frame out. There are no leases to remember: an address
// is the interface's for as long as it is plugged in, so it is given for ever.
//
// A guest is told its hostname, too (option 12), as its port has it.
//
// Of what a guest sends only numbers are looked at. Names that it says are skipped; its client
// identifier goes back to it (RFC 6842) and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/network/network_port.h"

namespace berth::runtime {

struct Dhcp4Query {
  enum class Kind : uint8_t { kDiscover = 1, kRequest = 3, kInform = 8 };
  Kind kind = Kind::kDiscover;
  MacAddress sender = {};  // of the frame
  MacAddress client = {};
  uint32_t transaction = 0;
  uint16_t flags = 0;
  uint32_t client_address = 0;                // 0: it has none yet
  std::optional<uint32_t> requested_address;  // option 50
  std::optional<uint32_t> server;             // option 54: whom it chose
  std::string client_id;                      // option 61
};

// Nullopt: nothing that we answer, whatever else it is.
std::optional<Dhcp4Query> ParseDhcp4(std::string_view frame);

// The frame to send back. Nullopt: not for us, or the port has no such address.
std::optional<std::string> AnswerDhcp4(const Dhcp4Query& query, const NetworkPort& port);

// Whom guests see: on no wire, so that nobody else can be reached there.
constexpr MacAddress kResponderMac = {0x02, 0x62, 0x65, 0x72, 0x74, 0x68};
constexpr uint32_t kResponderAddress = 0xa9fe0043;  // 169.254.0.67

}  // namespace berth::runtime
