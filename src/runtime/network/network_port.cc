// SPDX-License-Identifier: Apache-2.0
#include "runtime/network/network_port.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "apis/networking/neighbours.h"
#include "base/strings.h"
#include "iri/labels.h"
#include "meta/names.h"
#include "pki/digest.h"
#include "runtime/machine/domain_xml.h"

namespace berth::runtime {
namespace {

using meta::IpAddress;
using meta::IpFamily;
using meta::IpPrefix;

constexpr std::string_view kBridgeMark = "bn";
constexpr std::string_view kTapMark = "bt";
// Neither begins with the other, so what follows cannot make the keys the same.
constexpr std::string_view kByIdMark = "network/";
constexpr std::string_view kByUidMark = "network-uid/";
constexpr size_t kOwnerLetters = 3;
constexpr size_t kNameLetters = 10;  // 50 bits; with the rest 15, the most that Linux takes

// Five bits of a hash per letter.
std::string Letters(std::string_view text, size_t count) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
  const std::string hash = pki::Sha256(text);
  std::string letters;
  for (size_t i = 0; i < count; ++i) {
    letters += kAlphabet[static_cast<uint8_t>(hash[i]) % kAlphabet.size()];
  }
  return letters;
}

bool IsIn(const IpAddress& address, std::string_view prefix) {
  return IpPrefix::Parse(prefix)->Contains(address);
}

// What stands for nobody, for everybody, for oneself, or for whatever is on the wire.
bool IsOfNoGuest(const IpAddress& address) {
  constexpr std::array<std::string_view, 9> kNever = {"0.0.0.0/8",
                                                      "127.0.0.0/8",
                                                      "169.254.0.0/16",
                                                      "224.0.0.0/3",
                                                      "::/128",
                                                      "::1/128",
                                                      "::ffff:0.0.0.0/96",
                                                      "fe80::/10",
                                                      "ff00::/8"};
  return std::ranges::any_of(kNever, [&](std::string_view range) { return IsIn(address, range); });
}

Result<int> PrefixLengthOf(const iri::MachineNic& nic, const IpAddress& address) {
  const auto told = nic.attributes.find(apis::networking::kPrefixLengthAttribute);
  if (told != nic.attributes.end()) return apis::networking::ParsePrefixLength(told->second);
  return apis::networking::UsualPrefixLength(address);
}

Status AddAddress(std::string_view text, NetworkPort& port) {
  const auto address = IpAddress::Parse(text);
  if (!address.has_value() || IsOfNoGuest(*address)) {
    return BadRequest("address " + Quote(text) + ": expected one that a guest can have");
  }
  auto& ips = address->family() == IpFamily::kV4 ? port.ips4 : port.ips6;
  if (std::ranges::find(ips, *address) != ips.end()) {
    return BadRequest("address " + Quote(text) + " is there twice");
  }
  ips.push_back(*address);
  return OkStatus();
}

// nullptr: nobody says which Network it is.
const std::string* NetworkUidOf(const iri::MachineNic& nic) {
  const auto said = nic.attributes.find(iri::kNetworkUidAttribute);
  return said == nic.attributes.end() ? nullptr : &said->second;
}

Status CheckNetwork(const iri::MachineNic& nic, const std::string& where) {
  if (nic.network_id.empty()) return BadRequest(where + " has no network");
  if (nic.network_id.size() > kNetworkIdBytesMax) {
    return BadRequest(fmt::format("{}: a network id of {} bytes, at most {}",
                                  where,
                                  nic.network_id.size(),
                                  kNetworkIdBytesMax));
  }
  const std::string* const uid = NetworkUidOf(nic);
  if (uid == nullptr) return OkStatus();
  if (uid->empty() || uid->size() > kNetworkIdBytesMax) {
    return BadRequest(fmt::format("{}: {} of {} bytes, from 1 to {}",
                                  where,
                                  iri::kNetworkUidAttribute,
                                  uid->size(),
                                  kNetworkIdBytesMax));
  }
  return OkStatus();
}

// As libvirt writes it.
Result<MacAddress> ParseMac(std::string_view text) {
  MacAddress mac = {};
  const auto parts = Split(text, ':');
  if (parts.size() != mac.size()) return BadRequest("address " + Quote(text));
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (size_t i = 0; i < mac.size(); ++i) {
    const size_t high = parts[i].size() == 2 ? kDigits.find(parts[i][0]) : std::string::npos;
    const size_t low = parts[i].size() == 2 ? kDigits.find(parts[i][1]) : std::string::npos;
    if (high == std::string::npos || low == std::string::npos) {
      return BadRequest("address " + Quote(text));
    }
    mac[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return mac;
}

}  // namespace

NetworkOwner::NetworkOwner(std::string_view text)
    : mark_(Letters("owner/" + std::string(text), kOwnerLetters)) {}

std::string NetworkOwner::BridgeOf(std::string_view network_key) const {
  return std::string(kBridgeMark) + mark_ + Letters(network_key, kNameLetters);
}

std::string NetworkOwner::TapOf(std::string_view machine_id, std::string_view nic) const {
  const std::string whole = "port/" + std::string(machine_id) + "/" + std::string(nic);
  return std::string(kTapMark) + mark_ + Letters(whole, kNameLetters);
}

bool NetworkOwner::Owns(std::string_view link) const {
  const size_t marks = kBridgeMark.size();
  return link.size() == marks + kOwnerLetters + kNameLetters &&
         (link.starts_with(kBridgeMark) || link.starts_with(kTapMark)) &&
         link.substr(marks, kOwnerLetters) == mark_;
}

std::string NetworkKeyOf(const iri::MachineNic& nic) {
  const std::string* const uid = NetworkUidOf(nic);
  return uid == nullptr ? std::string(kByIdMark) + nic.network_id : std::string(kByUidMark) + *uid;
}

Result<NetworkPort> PortOf(const NetworkOwner& owner,
                           std::string_view machine_id,
                           const iri::MachineNic& nic) {
  const std::string where = "network interface " + Quote(nic.name);
  TRY_STATUS(CheckNetwork(nic, where));
  if (nic.ips.size() > kPortAddressesMax) {
    return BadRequest(
        fmt::format("{}: {} addresses, at most {}", where, nic.ips.size(), kPortAddressesMax));
  }
  NetworkPort port;
  port.owner = std::string(machine_id) + "/" + nic.name;
  port.tap = owner.TapOf(machine_id, nic.name);
  port.network_key = NetworkKeyOf(nic);
  port.bridge = owner.BridgeOf(port.network_key);
  TRY(port.mac, ParseMac(MacOf(port.owner)));
  for (const std::string& ip : nic.ips) {
    const Status added = AddAddress(ip, port);
    if (!added.ok()) return added.Wrap(where);
  }
  if (!port.ips4.empty()) {
    const auto length = PrefixLengthOf(nic, port.ips4.front());
    if (!length.ok()) return length.status().Wrap(where);
    port.prefix_length = *length;
  }
  const std::string* const uid = NetworkUidOf(nic);
  port.network = Printable(uid == nullptr ? nic.network_id : *uid);
  return port;
}

Result<NetworkPort> PortOf(const NetworkOwner& owner, const PluggedNic& plugged) {
  TRY(NetworkPort port, PortOf(owner, plugged.machine_id, plugged.nic));
  // Guests put it into files and on command lines.
  if (meta::IsDnsLabel(ToLower(plugged.hostname))) port.hostname = plugged.hostname;
  return port;
}

}  // namespace berth::runtime
