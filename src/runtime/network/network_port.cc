// SPDX-License-Identifier: Apache-2.0
#include "runtime/network/network_port.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "apis/networking/neighbours.h"
#include "base/strings.h"
#include "pki/digest.h"
#include "runtime/machine/domain_xml.h"

namespace berth::runtime {
namespace {

using meta::IpAddress;
using meta::IpFamily;
using meta::IpPrefix;

constexpr std::string_view kBridgeMark = "bn";
constexpr std::string_view kTapMark = "bt";
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

std::string NetworkOwner::BridgeOf(std::string_view network_id) const {
  return std::string(kBridgeMark) + mark_ +
         Letters("network/" + std::string(network_id), kNameLetters);
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

Result<NetworkPort> PortOf(const NetworkOwner& owner,
                           std::string_view machine_id,
                           const iri::MachineNic& nic) {
  const std::string where = "network interface " + Quote(nic.name);
  if (nic.network_id.empty()) return BadRequest(where + " has no network");
  if (nic.network_id.size() > kNetworkIdBytesMax) {
    return BadRequest(fmt::format("{}: a network id of {} bytes, at most {}",
                                  where,
                                  nic.network_id.size(),
                                  kNetworkIdBytesMax));
  }
  if (nic.ips.size() > kPortAddressesMax) {
    return BadRequest(
        fmt::format("{}: {} addresses, at most {}", where, nic.ips.size(), kPortAddressesMax));
  }
  NetworkPort port;
  port.owner = std::string(machine_id) + "/" + nic.name;
  port.tap = owner.TapOf(machine_id, nic.name);
  port.bridge = owner.BridgeOf(nic.network_id);
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
  port.network = Printable(nic.network_id);
  return port;
}

}  // namespace berth::runtime
