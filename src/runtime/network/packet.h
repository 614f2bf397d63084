// SPDX-License-Identifier: Apache-2.0
// Bytes of packets: read with bounds, written in network order. What a guest sent is read here and
// nowhere else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "meta/ip.h"

namespace berth::runtime {

using MacAddress = std::array<uint8_t, 6>;
std::string ToText(const MacAddress& mac);  // "52:54:00:12:34:56"

// Reads from the front. Past the end everything is zero or empty, and ok() says so.
class PacketReader {
 public:
  explicit PacketReader(std::string_view bytes) : left_(bytes) {}

  uint8_t U8() { return static_cast<uint8_t>(Number(1)); }
  uint16_t U16() { return static_cast<uint16_t>(Number(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  std::string_view Take(size_t count);
  MacAddress Mac();
  // Forgets what is behind the next `count` bytes.
  void Cut(size_t count);
  std::string_view rest() const { return left_; }
  bool ok() const { return ok_; }

 private:
  uint64_t Number(size_t bytes);
  std::string_view left_;
  bool ok_ = true;
};

void PutU8(std::string& out, unsigned value);
void PutU16(std::string& out, unsigned value);
void PutU32(std::string& out, uint32_t value);
void PutMac(std::string& out, const MacAddress& mac);
// Its 4 or 16 bytes.
void PutAddress(std::string& out, const meta::IpAddress& address);

constexpr size_t kEthernetHeaderBytes = 14;
constexpr unsigned kEtherTypeIp = 0x0800;
constexpr unsigned kEtherTypeIp6 = 0x86dd;
constexpr uint8_t kProtocolUdp = 17;
constexpr uint8_t kProtocolIcmp6 = 58;

// One datagram, or for the second one message of ICMPv6, from us to a guest. Checksums are those of
// RFC 1071; that of ICMPv6 stands at its usual place and is zero in `message`.
struct PacketEnds {
  MacAddress from_mac;
  MacAddress to_mac;
  meta::IpAddress from;  // of one family with `to`
  meta::IpAddress to;
};
std::string UdpFrame(const PacketEnds& ends, unsigned from, unsigned to, std::string_view content);
std::string Icmp6Frame(const PacketEnds& ends, std::string message);

// The fe80:: address of an interface with this MAC (RFC 4291, appendix A).
meta::IpAddress LinkLocalOf(const MacAddress& mac);

}  // namespace berth::runtime
