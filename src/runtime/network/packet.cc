// SPDX-License-Identifier: Apache-2.0
#include "runtime/network/packet.h"

#include <algorithm>

#include "base/strings.h"

namespace berth::runtime {
namespace {

constexpr size_t kUdpHeaderBytes = 8;
constexpr size_t kIpHeaderBytes = 20;
constexpr unsigned kHops = 255;  // what neighbours send each other; a router would count it down

uint8_t Byte(char c) { return static_cast<uint8_t>(c); }

// RFC 1071; `sum` is that of what stands before, of even length.
uint32_t SumOf(std::string_view bytes, uint32_t sum) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    sum += static_cast<uint32_t>(Byte(bytes[i])) << (i % 2 == 0 ? 8 : 0);
    if (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

unsigned ChecksumOf(uint32_t sum) { return ~sum & 0xffff; }

void Overwrite(std::string& bytes, size_t at, unsigned value) {
  bytes[at] = static_cast<char>(value >> 8);
  bytes[at + 1] = static_cast<char>(value & 0xff);
}

// What UDP and ICMPv6 add up of the header below them.
uint32_t PseudoSum(const PacketEnds& ends, unsigned protocol, size_t bytes) {
  std::string pseudo;
  PutAddress(pseudo, ends.from);
  PutAddress(pseudo, ends.to);
  PutU32(pseudo, static_cast<uint32_t>(bytes));
  PutU32(pseudo, protocol);
  return SumOf(pseudo, 0);
}

std::string Frame(const PacketEnds& ends, unsigned protocol, std::string_view payload) {
  const bool is_v4 = ends.to.family() == meta::IpFamily::kV4;
  std::string out;
  PutMac(out, ends.to_mac);
  PutMac(out, ends.from_mac);
  PutU16(out, is_v4 ? kEtherTypeIp : kEtherTypeIp6);
  const auto bytes = static_cast<unsigned>(payload.size());
  if (is_v4) {
    std::string header;
    PutU16(header, 0x4500);  // version 4, five words, ordinary
    PutU16(header, kIpHeaderBytes + bytes);
    PutU32(header, 0x4000);  // no identification; never a fragment
    PutU8(header, kHops);
    PutU8(header, protocol);
    PutU16(header, 0);
    PutAddress(header, ends.from);
    PutAddress(header, ends.to);
    constexpr size_t kChecksumAt = 10;
    Overwrite(header, kChecksumAt, ChecksumOf(SumOf(header, 0)));
    out += header;
  } else {
    PutU32(out, 0x60000000);
    PutU16(out, bytes);
    PutU8(out, protocol);
    PutU8(out, kHops);
    PutAddress(out, ends.from);
    PutAddress(out, ends.to);
  }
  out += payload;
  return out;
}

}  // namespace

std::string ToText(const MacAddress& mac) {
  std::string text;
  for (const uint8_t byte : mac) {
    if (!text.empty()) text += ':';
    text += HexEncode(std::string(1, static_cast<char>(byte)));
  }
  return text;
}

std::string_view PacketReader::Take(size_t count) {
  if (count > left_.size()) {
    ok_ = false;
    left_ = {};
    return {};
  }
  const std::string_view taken = left_.substr(0, count);
  left_.remove_prefix(count);
  return taken;
}

MacAddress PacketReader::Mac() {
  MacAddress mac = {};
  const std::string_view bytes = Take(mac.size());
  std::ranges::transform(bytes, mac.begin(), Byte);
  return mac;
}

void PacketReader::Cut(size_t count) {
  if (count > left_.size()) ok_ = false;
  left_ = left_.substr(0, count);
}

uint64_t PacketReader::Number(size_t bytes) {
  uint64_t value = 0;
  for (const char c : Take(bytes)) value = (value << 8) | Byte(c);
  return value;
}

void PutU8(std::string& out, unsigned value) { out += static_cast<char>(value & 0xff); }
void PutU16(std::string& out, unsigned value) {
  PutU8(out, value >> 8);
  PutU8(out, value);
}
void PutU32(std::string& out, uint32_t value) {
  PutU16(out, value >> 16);
  PutU16(out, value);
}
void PutMac(std::string& out, const MacAddress& mac) {
  for (const uint8_t byte : mac) PutU8(out, byte);
}
void PutAddress(std::string& out, const meta::IpAddress& address) {
  const auto count = static_cast<size_t>(address.bits()) / 8;
  for (size_t i = 0; i < count; ++i) PutU8(out, address.bytes()[i]);
}

std::string UdpFrame(const PacketEnds& ends, unsigned from, unsigned to, std::string_view content) {
  std::string datagram;
  PutU16(datagram, from);
  PutU16(datagram, to);
  PutU16(datagram, static_cast<unsigned>(kUdpHeaderBytes + content.size()));
  PutU16(datagram, 0);
  datagram += content;
  const uint32_t sum = SumOf(datagram, PseudoSum(ends, kProtocolUdp, datagram.size()));
  constexpr size_t kChecksumAt = 6;
  const unsigned checksum = ChecksumOf(sum);
  Overwrite(datagram, kChecksumAt, checksum == 0 ? 0xffff : checksum);  // zero says "none"
  return Frame(ends, kProtocolUdp, datagram);
}

std::string Icmp6Frame(const PacketEnds& ends, std::string message) {
  const uint32_t sum = SumOf(message, PseudoSum(ends, kProtocolIcmp6, message.size()));
  constexpr size_t kChecksumAt = 2;
  Overwrite(message, kChecksumAt, ChecksumOf(sum));
  return Frame(ends, kProtocolIcmp6, message);
}

meta::IpAddress LinkLocalOf(const MacAddress& mac) {
  constexpr uint8_t kUniversalBit = 0x02;
  std::array<uint8_t, 16> bytes = {0xfe, 0x80};
  bytes[8] = mac[0] ^ kUniversalBit;
  bytes[9] = mac[1];
  bytes[10] = mac[2];
  bytes[11] = 0xff;
  bytes[12] = 0xfe;
  bytes[13] = mac[3];
  bytes[14] = mac[4];
  bytes[15] = mac[5];
  return meta::IpAddress::V6(bytes);
}

}  // namespace berth::runtime
