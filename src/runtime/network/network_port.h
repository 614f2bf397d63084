// SPDX-License-Identifier: Apache-2.0
// An interface of a guest as the host knows it: one end of a tap on the bridge of its Network.
// Pure: everything follows from who asks and what for, so it is found again without being written
// down.
//
// Names begin with what they are and whose they are: "bn" and "bt", three characters of the
// runtime, ten of the network or of the interface.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "iri/machine.h"
#include "meta/ip.h"
#include "runtime/machine/host_networks.h"
#include "runtime/network/packet.h"

namespace berth::runtime {

constexpr size_t kPortAddressesMax = 16;
constexpr size_t kNetworkIdBytesMax = 1024;

// One runtime on a host; there may be several.
class NetworkOwner {
 public:
  // `text` tells runtimes apart, such as the folder of their machines.
  explicit NetworkOwner(std::string_view text);

  std::string BridgeOf(std::string_view network_key) const;
  std::string TapOf(std::string_view machine_id, std::string_view nic) const;
  // Of all bridges and taps of this runtime, and of nobody else.
  bool Owns(std::string_view link) const;
  // Of the rules.
  std::string table() const { return "berth_" + mark_; }

 private:
  std::string mark_;
};

struct NetworkPort {
  std::string owner;  // "machine/interface"
  std::string tap;
  std::string network_key;  // NetworkKeyOf
  std::string bridge;
  MacAddress mac = {};
  std::vector<meta::IpAddress> ips4;
  std::vector<meta::IpAddress> ips6;
  int prefix_length = 0;  // of the first of ips4, as apis/networking/neighbours.h says
  std::string network;    // for people: no control characters
  std::string hostname;   // of the guest: one label (RFC 1123), or "" for what is none
  bool operator==(const NetworkPort&) const = default;
};

// What tells Networks apart: the UID that a Berth server says (iri::kNetworkUidAttribute), whatever
// the network's id is, which users may choose. For clients that say none the id alone counts; no id
// has the key of a UID. REQUIRES: the attribute, if there is one, is not empty.
std::string NetworkKeyOf(const iri::MachineNic& nic);

// BadRequest names the field: a network without an id, an address that no guest can have.
Result<NetworkPort> PortOf(const NetworkOwner& owner,
                           std::string_view machine_id,
                           const iri::MachineNic& nic);
// The same with the guest's hostname.
Result<NetworkPort> PortOf(const NetworkOwner& owner, const PluggedNic& plugged);

}  // namespace berth::runtime
