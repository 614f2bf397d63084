// SPDX-License-Identifier: Apache-2.0
#include "runtime/network/dhcp4.h"

namespace berth::runtime {
namespace {

using Kind = Dhcp4Query::Kind;

constexpr unsigned kServerPort = 67;
constexpr unsigned kClientPort = 68;
constexpr uint8_t kRequestOp = 1;
constexpr uint8_t kReplyOp = 2;
constexpr uint8_t kEthernet = 1;
constexpr uint32_t kCookie = 0x63825363;
constexpr size_t kUnusedChaddrBytes = 10;
constexpr size_t kNamesBytes = 64 + 128;  // server's name and boot file
constexpr size_t kUdpHeaderBytes = 8;
constexpr size_t kMessageBytesMin = 300;  // some clients take no less (RFC 1542)
constexpr size_t kMessageBytesMax = 548;  // and no client has to take more (RFC 2131)
constexpr uint32_t kForEver = 0xffffffff;

enum class Option : uint8_t {
  kPad = 0,
  kMask = 1,
  kHostname = 12,
  kRequestedAddress = 50,
  kLeaseTime = 51,
  kMessageType = 53,
  kServer = 54,
  kClientId = 61,
  kEnd = 255,
};
enum class Reply : uint8_t { kOffer = 2, kAck = 5, kNak = 6 };

// The content of the UDP datagram to a DHCP server, "" if it is none.
std::string_view ServerDatagram(PacketReader& frame) {
  constexpr unsigned kFragment = 0x3fff;  // a later part, or more to come
  constexpr size_t kWord = 4;
  if (frame.U16() != kEtherTypeIp) return {};
  const uint8_t version = frame.U8();
  const size_t header = (version & 0x0fU) * kWord;
  frame.U8();
  const size_t total = frame.U16();
  frame.U16();
  const unsigned fragment = frame.U16() & kFragment;
  frame.U8();
  const uint8_t protocol = frame.U8();
  frame.Take(2 + 4 + 4);  // checksum and addresses
  constexpr size_t kFixed = 20;
  if (!frame.ok() || version >> 4 != 4 || header < kFixed || total < header + kUdpHeaderBytes) {
    return {};
  }
  if (fragment != 0 || protocol != kProtocolUdp) return {};
  frame.Cut(total - kFixed);
  frame.Take(header - kFixed);
  frame.U16();
  const unsigned to = frame.U16();
  const size_t length = frame.U16();
  frame.U16();  // its checksum may be left to a network card that is none
  if (!frame.ok() || to != kServerPort || length < kUdpHeaderBytes) return {};
  frame.Cut(length - kUdpHeaderBytes);
  return frame.ok() ? frame.rest() : std::string_view();
}

std::optional<uint32_t> AddressIn(std::string_view value) {
  PacketReader reader(value);
  const uint32_t address = reader.U32();
  if (!reader.ok() || !reader.rest().empty()) return std::nullopt;
  return address;
}

std::optional<Kind> KindIn(std::string_view value) {
  if (value.size() != 1) return std::nullopt;
  for (const Kind kind : {Kind::kDiscover, Kind::kRequest, Kind::kInform}) {
    if (static_cast<uint8_t>(value[0]) == static_cast<uint8_t>(kind)) return kind;
  }
  return std::nullopt;
}

// False: cut off, or without a kind.
bool ReadOptions(PacketReader& reader, Dhcp4Query& query) {
  std::optional<Kind> kind;
  while (!reader.rest().empty()) {
    const auto option = static_cast<Option>(reader.U8());
    if (option == Option::kPad) continue;
    if (option == Option::kEnd) break;
    const std::string_view value = reader.Take(reader.U8());
    if (!reader.ok()) return false;
    switch (option) {
      case Option::kMessageType: kind = KindIn(value); break;
      case Option::kRequestedAddress: query.requested_address = AddressIn(value); break;
      case Option::kServer: query.server = AddressIn(value); break;
      case Option::kClientId: query.client_id = value; break;
      default: break;  // names and wishes
    }
  }
  if (!kind.has_value()) return false;
  query.kind = *kind;
  return true;
}

void PutOption(std::string& out, Option option, std::string_view value) {
  PutU8(out, static_cast<unsigned>(option));
  PutU8(out, static_cast<unsigned>(value.size()));
  out += value;
}

std::string Word(uint32_t value) {
  std::string bytes;
  PutU32(bytes, value);
  return bytes;
}

uint32_t BitsOf(const meta::IpAddress& address) {
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; ++i) bits = bits << 8 | address.bytes()[i];
  return bits;
}

std::string Message(const Dhcp4Query& query, const NetworkPort& port, Reply reply) {
  const uint32_t address = BitsOf(port.ips4.front());
  const bool gives = reply != Reply::kNak && query.kind != Kind::kInform;
  std::string out;
  PutU8(out, kReplyOp);
  PutU8(out, kEthernet);
  PutU8(out, static_cast<unsigned>(port.mac.size()));
  PutU8(out, 0);
  PutU32(out, query.transaction);
  PutU16(out, 0);
  PutU16(out, query.flags);
  PutU32(out, reply == Reply::kNak ? 0 : query.client_address);
  PutU32(out, gives ? address : 0);
  PutU32(out, 0);
  PutU32(out, 0);
  PutMac(out, port.mac);
  out.append(kUnusedChaddrBytes + kNamesBytes, '\0');
  PutU32(out, kCookie);
  PutOption(out, Option::kMessageType, std::string(1, static_cast<char>(reply)));
  PutOption(out, Option::kServer, Word(kResponderAddress));
  if (gives) PutOption(out, Option::kLeaseTime, Word(kForEver));
  if (reply != Reply::kNak) {
    PutOption(out, Option::kMask, Word(~uint32_t{0} << (32 - port.prefix_length)));
  }
  if (!query.client_id.empty()) PutOption(out, Option::kClientId, query.client_id);
  constexpr size_t kAroundText = 2 + 1;  // what it is and how long, and the end of all
  const bool has_room = out.size() + kAroundText + port.hostname.size() <= kMessageBytesMax;
  if (reply != Reply::kNak && !port.hostname.empty() && has_room) {
    PutOption(out, Option::kHostname, port.hostname);
  }
  PutU8(out, static_cast<unsigned>(Option::kEnd));
  if (out.size() < kMessageBytesMin) out.resize(kMessageBytesMin, '\0');
  return out;
}

std::optional<Reply> ReplyTo(const Dhcp4Query& query, const NetworkPort& port) {
  const uint32_t address = BitsOf(port.ips4.front());
  switch (query.kind) {
    case Kind::kDiscover: return Reply::kOffer;
    case Kind::kInform: return Reply::kAck;
    case Kind::kRequest: break;
  }
  if (query.server.has_value() && *query.server != kResponderAddress) return std::nullopt;
  const uint32_t wanted = query.requested_address.value_or(query.client_address);
  return wanted == address ? Reply::kAck : Reply::kNak;
}

}  // namespace

std::optional<Dhcp4Query> ParseDhcp4(std::string_view frame) {
  PacketReader ethernet(frame);
  Dhcp4Query query;
  ethernet.Mac();
  query.sender = ethernet.Mac();
  PacketReader reader(ServerDatagram(ethernet));
  const uint8_t op = reader.U8();
  const uint8_t hardware = reader.U8();
  const uint8_t length = reader.U8();
  const uint8_t hops = reader.U8();
  query.transaction = reader.U32();
  reader.U16();  // seconds
  query.flags = reader.U16();
  query.client_address = reader.U32();
  reader.U32();
  reader.U32();
  const uint32_t relay = reader.U32();
  query.client = reader.Mac();
  reader.Take(kUnusedChaddrBytes + kNamesBytes);
  const uint32_t cookie = reader.U32();
  const bool is_ours = reader.ok() && op == kRequestOp && hardware == kEthernet &&
                       length == query.client.size() && hops == 0 && relay == 0 &&
                       cookie == kCookie;
  if (!is_ours || !ReadOptions(reader, query)) return std::nullopt;
  return query;
}

std::optional<std::string> AnswerDhcp4(const Dhcp4Query& query, const NetworkPort& port) {
  if (port.ips4.empty() || query.sender != port.mac || query.client != port.mac) {
    return std::nullopt;
  }
  const std::optional<Reply> reply = ReplyTo(query, port);
  if (!reply.has_value()) return std::nullopt;
  // It is alone on its wire: what is meant for it goes to it, also before it has an address.
  const bool has_address = *reply != Reply::kNak && query.client_address != 0;
  const PacketEnds ends = {
      .from_mac = kResponderMac,
      .to_mac = port.mac,
      .from = meta::IpAddress::V4(kResponderAddress),
      .to = meta::IpAddress::V4(has_address ? query.client_address : 0xffffffffU)};
  return UdpFrame(ends, kServerPort, kClientPort, Message(query, port, *reply));
}

}  // namespace berth::runtime
