// SPDX-License-Identifier: Apache-2.0
// The pure part: names, what guests may send, and the answers to their requests, also to those that
// were made to break something.
#include <gtest/gtest.h>

#include <set>

#include "apis/networking/neighbours.h"
#include "base/random.h"
#include "base/strings.h"
#include "iri/labels.h"
#include "runtime/network/dhcp4.h"
#include "runtime/network/packet.h"
#include "runtime/network/port_rules.h"

namespace berth::runtime {
namespace {

using Kind = Dhcp4Query::Kind;

iri::MachineNic Nic(std::vector<std::string> ips, std::string network = "net-1") {
  iri::MachineNic nic;
  nic.name = "primary";
  nic.network_id = std::move(network);
  nic.ips = std::move(ips);
  return nic;
}

NetworkPort Port(std::vector<std::string> ips = {"10.1.2.3"}) {
  return *PortOf(NetworkOwner("/machines"), "m-1", Nic(std::move(ips)));
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(NetworkPort, IsTheSameWheneverItIsAskedForAndAnotherForEveryInterface) {
  const NetworkOwner owner("/machines");
  EXPECT_EQ(Port(), Port());
  std::set<std::string> taps;
  std::set<std::string> macs;
  for (int i = 0; i < 1000; ++i) {
    const auto port = PortOf(owner, "m-" + std::to_string(i), Nic({}));
    ASSERT_TRUE(port.ok());
    EXPECT_EQ(port->tap.size(), 15U);
    EXPECT_EQ(port->bridge, Port().bridge);
    EXPECT_TRUE(owner.Owns(port->tap) && owner.Owns(port->bridge));
    taps.insert(port->tap);
    macs.insert(ToText(port->mac));
  }
  EXPECT_EQ(taps.size(), 1000U);
  EXPECT_EQ(macs.size(), 1000U);
  EXPECT_NE(PortOf(owner, "m-1", Nic({}, "net-2"))->bridge, Port().bridge);
}

TEST(NetworkPort, NetworksAreToldApartByWhatTheServerSaysAndNotByTheirIds) {
  const NetworkOwner owner("/machines");
  const auto port = [&](const std::string& id, const char* uid) {
    iri::MachineNic nic = Nic({}, id);
    if (uid != nullptr) nic.attributes[std::string(iri::kNetworkUidAttribute)] = uid;
    return PortOf(owner, "m-1", nic);
  };
  const auto bridge = [&](const std::string& id, const char* uid) { return port(id, uid)->bridge; };
  EXPECT_NE(bridge("same", "u-1"), bridge("same", "u-2"));
  EXPECT_NE(bridge("u-1", "u-1"), bridge("u-1", "u-2")) << "the UID of another as its id";
  EXPECT_EQ(bridge("before", "u-1"), bridge("after", "u-1")) << "one network, whatever its id";
  EXPECT_EQ(port("name", "u-1")->network, "u-1");
  // Who says none is in a space of its own.
  EXPECT_EQ(bridge("u-1", nullptr), bridge("u-1", nullptr));
  EXPECT_NE(bridge("u-1", nullptr), bridge("u-1", "u-1"));
  const auto key = [](const std::string& id, const char* uid) {
    iri::MachineNic nic = Nic({}, id);
    if (uid != nullptr) nic.attributes[std::string(iri::kNetworkUidAttribute)] = uid;
    return NetworkKeyOf(nic);
  };
  for (const char* const id : {"u-1", "/u-1", "-uid/u-1", "network-uid/u-1"}) {
    EXPECT_NE(key(id, nullptr), key("any", "u-1")) << id;
  }
  EXPECT_TRUE(port("id", "").status().Is(Reason::kBadRequest));
  const std::string long_uid(kNetworkIdBytesMax + 1, 'x');
  EXPECT_TRUE(port("id", long_uid.c_str()).status().Is(Reason::kBadRequest));
}

TEST(NetworkPort, AGuestFromBeforeServersSaidWhichStaysOnItsBridge) {
  const NetworkOwner owner("/machines");
  EXPECT_EQ(PortOf(owner, "m-1", Nic({}))->bridge, owner.BridgeOf("network/net-1"));
}

TEST(NetworkPort, BelongsToItsRuntimeAlone) {
  const NetworkOwner mine("/machines");
  const NetworkOwner other("/other");
  EXPECT_NE(mine.BridgeOf("n"), other.BridgeOf("n"));
  EXPECT_FALSE(mine.Owns(other.TapOf("m", "n")));
  for (const char* const name :
       {"", "lo", "eth0", "bt", "btx", "docker0", "virbr0", "bridge1234567890"}) {
    EXPECT_FALSE(mine.Owns(name)) << name;
  }
}

TEST(NetworkPort, RefusesWhatNoGuestCanHave) {
  const NetworkOwner owner("/machines");
  for (const char* const ip : {"",
                               "10.0.0",
                               "10.0.0.1/24",
                               "0.0.0.0",
                               "127.0.0.1",
                               "169.254.0.67",
                               "224.0.0.1",
                               "255.255.255.255",
                               "::",
                               "::1",
                               "::ffff:10.0.0.1",
                               "fe80::1",
                               "ff02::1",
                               "10.0.0.1 } accept",
                               "10.0.0.1\n"}) {
    const auto port = PortOf(owner, "m", Nic({ip}));
    ASSERT_FALSE(port.ok()) << ip;
    EXPECT_TRUE(port.status().Is(Reason::kBadRequest));
    EXPECT_TRUE(Has(port.status().message(), Quote(ip))) << port.status();
  }
  EXPECT_FALSE(PortOf(owner, "m", Nic({}, "")).ok());
  EXPECT_FALSE(PortOf(owner, "m", Nic({}, std::string(kNetworkIdBytesMax + 1, 'x'))).ok());
  EXPECT_FALSE(PortOf(owner, "m", Nic({"10.0.0.1", "10.0.0.1"})).ok());
  EXPECT_FALSE(PortOf(owner, "m", Nic(std::vector<std::string>(kPortAddressesMax + 1))).ok());
}

TEST(NetworkPort, NeighboursAreThoseOfTheRangeOrThoseThatAreTold) {
  const NetworkOwner owner("/machines");
  const auto length = [&](const std::string& ip) {
    return PortOf(owner, "m", Nic({ip}))->prefix_length;
  };
  EXPECT_EQ(length("10.1.2.3"), 8);
  EXPECT_EQ(length("172.20.0.1"), 12);
  EXPECT_EQ(length("192.168.7.7"), 16);
  EXPECT_EQ(length("100.100.0.1"), 10);
  EXPECT_EQ(length("203.0.113.9"), 24);
  iri::MachineNic nic = Nic({"10.1.2.3"});
  nic.attributes[std::string(apis::networking::kPrefixLengthAttribute)] = "24";
  EXPECT_EQ(PortOf(owner, "m", nic)->prefix_length, 24);
  for (const char* const bad : {"", "0", "33", "-1", "x"}) {
    nic.attributes[std::string(apis::networking::kPrefixLengthAttribute)] = bad;
    EXPECT_FALSE(PortOf(owner, "m", nic).ok()) << bad;
  }
}

TEST(PortRules, TextFromOutsideIsNeverPartOfThem) {
  const std::string evil = "x\" ; } flush ruleset \n#`$(id)\x1b[2J";
  iri::MachineNic nic = Nic({"10.1.2.3", "fd00::1"}, evil);
  nic.name = evil;
  const auto port = PortOf(NetworkOwner(evil), evil, nic);
  ASSERT_TRUE(port.ok()) << port.status();
  const std::string rules = PortRules(NetworkOwner(evil), {&*port, 1});
  EXPECT_FALSE(Has(rules, "flush"));
  EXPECT_EQ(rules.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789 _-.,:;@!={}/\"\n"),
            std::string::npos);
  EXPECT_EQ(port->network.find('\x1b'), std::string::npos);
}

TEST(PortRules, ReplaceEverythingInOneTransaction) {
  const NetworkOwner owner("/machines");
  const std::string none = PortRules(owner, {});
  EXPECT_EQ(none,
            "add table bridge " + owner.table() + "\ndelete table bridge " + owner.table() + "\n");
  const NetworkPort port = Port({"10.1.2.3", "10.1.2.4", "fd00::1"});
  const std::string rules = PortRules(owner, {&port, 1});
  EXPECT_TRUE(rules.starts_with(none));
  EXPECT_TRUE(Has(rules, "ip saddr { 10.1.2.3, 10.1.2.4 } accept"));
  EXPECT_TRUE(Has(rules, "ether saddr != " + ToText(port.mac) + " drop"));
  EXPECT_TRUE(Has(rules, "\"" + port.tap + "\" : goto " + port.tap));
  EXPECT_TRUE(Has(rules, "ip6 saddr { fd00::1, " + LinkLocalOf(port.mac).ToString() + " } accept"));
}

TEST(PortRules, APortWithoutAddressesSendsNothing) {
  const NetworkPort port = Port({});
  EXPECT_FALSE(Has(PortRules(NetworkOwner("/machines"), {&port, 1}), " accept\n"));
}

TEST(Packet, AReaderStopsAtTheEnd) {
  PacketReader reader(std::string_view("\x01\x02\x03", 3));
  EXPECT_EQ(reader.U16(), 0x0102);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.U32(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.U8(), 0U);
  EXPECT_EQ(reader.Take(1), "");
  PacketReader cut("ab");
  cut.Cut(3);
  EXPECT_FALSE(cut.ok());
}

// What a client of our own would send.
struct Request {
  MacAddress mac = Port().mac;
  uint8_t type = 1;
  uint32_t client_address = 0;
  std::string options;  // besides the type

  std::string Message() const {
    std::string out("\x01\x01\x06\x00\xde\xad\xbe\xef\x00\x00\x80\x00", 12);
    PutU32(out, client_address);
    out.append(12, '\0');
    PutMac(out, mac);
    out.append(10 + 64 + 128, '\0');
    PutU32(out, 0x63825363);
    out += "\x35\x01" + std::string(1, static_cast<char>(type)) + options + "\xff";
    return out;
  }
  std::string Frame() const {
    const PacketEnds ends = {.from_mac = mac,
                             .to_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
                             .from = meta::IpAddress::V4(client_address),
                             .to = meta::IpAddress::V4(0xffffffff)};
    return UdpFrame(ends, 68, 67, Message());
  }
};

// An answer, taken apart by hand.
struct Answer {
  explicit Answer(const std::string& frame) : bytes(frame) {}
  constexpr static size_t kMessage = 14 + 20 + 8;
  uint32_t U32(size_t at) const { return PacketReader(std::string_view(bytes).substr(at)).U32(); }
  uint32_t your_address() const { return U32(kMessage + 16); }
  std::optional<std::string> Option(uint8_t wanted) const {
    PacketReader options(std::string_view(bytes).substr(kMessage + 240));
    while (options.ok()) {
      const uint8_t code = options.U8();
      if (code == 0xff || code == 0) break;
      const std::string_view value = options.Take(options.U8());
      if (code == wanted) return std::string(value);
    }
    return std::nullopt;
  }
  std::string bytes;
};

std::optional<std::string> Ask(const Request& request, const NetworkPort& port = Port()) {
  const auto query = ParseDhcp4(request.Frame());
  return query.has_value() ? AnswerDhcp4(*query, port) : std::nullopt;
}

std::string Address(uint32_t bits) {
  std::string bytes;
  PutU32(bytes, bits);
  return bytes;
}

TEST(Dhcp4, AGuestIsToldTheAddressOfItsInterface) {
  const auto offered = Ask(Request());
  ASSERT_TRUE(offered.has_value());
  const Answer offer(*offered);
  EXPECT_EQ(offer.your_address(), 0x0a010203U);
  EXPECT_EQ(offer.U32(Answer::kMessage + 4), 0xdeadbeefU);
  EXPECT_EQ(offer.Option(53), "\x02");
  EXPECT_EQ(offer.Option(1), Address(0xff000000));
  EXPECT_EQ(offer.Option(51), Address(0xffffffff));
  EXPECT_EQ(offer.Option(54), Address(kResponderAddress));
  std::string mac;
  PutMac(mac, Port().mac);
  EXPECT_EQ(offer.bytes.substr(0, 6), mac);
  EXPECT_GE(offer.bytes.size(), Answer::kMessage + 300);

  Request request;
  request.type = 3;
  request.options = "\x32\x04" + Address(0x0a010203) + "\x36\x04" + Address(kResponderAddress) +
                    "\x3d\x03" + "abc" + "\x0c\x05" + "`id`\n";
  const auto taken = Ask(request);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(Answer(*taken).Option(53), "\x05");
  EXPECT_EQ(Answer(*taken).Option(61), "abc");
  EXPECT_FALSE(Has(*taken, "`id`"));
}

NetworkPort PortOfGuest(std::string hostname) {
  const PluggedNic plugged = {
      .machine_id = "m-1", .nic = Nic({"10.1.2.3"}), .hostname = std::move(hostname)};
  return *PortOf(NetworkOwner("/machines"), plugged);
}

TEST(Dhcp4, AGuestIsToldItsHostname) {
  const NetworkPort port = PortOfGuest("web-1");
  EXPECT_EQ(Answer(*Ask(Request(), port)).Option(12), "web-1");
  Request request;
  request.type = 3;
  request.options = "\x32\x04" + Address(0x0a010203) + "\x0c\x05other";
  EXPECT_EQ(Answer(*Ask(request, port)).Option(12), "web-1");
  Request inform;
  inform.type = 8;
  inform.client_address = 0x0a010203;
  EXPECT_EQ(Answer(*Ask(inform, port)).Option(12), "web-1");
  // Who is denied is told nothing else.
  request.options = "\x32\x04" + Address(0x0a010204);
  EXPECT_EQ(Answer(*Ask(request, port)).Option(53), "\x06");
  EXPECT_FALSE(Answer(*Ask(request, port)).Option(12).has_value());
}

TEST(Dhcp4, WhatIsNoSingleLabelIsNotTold) {
  const std::string longest(63, 'x');
  for (const std::string& good :
       {std::string("a"), std::string("7"), std::string("Web-1"), longest}) {
    EXPECT_EQ(Answer(*Ask(Request(), PortOfGuest(good))).Option(12), good);
  }
  for (const std::string& bad : {std::string(),
                                 longest + "x",
                                 std::string("web.example"),
                                 std::string("-web"),
                                 std::string("web-"),
                                 std::string("a b"),
                                 std::string("a_b"),
                                 std::string("$(id)"),
                                 std::string("`id`\n"),
                                 std::string("\xc3\xbc"),
                                 std::string("web\0", 4)}) {
    EXPECT_FALSE(Answer(*Ask(Request(), PortOfGuest(bad))).Option(12).has_value()) << Quote(bad);
  }
}

TEST(Dhcp4, AnAnswerIsNeverLongerThanEveryClientTakes) {
  Request request;
  request.options = "\x3d\xff" + std::string(255, 'i');
  const Answer answer(*Ask(request, PortOfGuest(std::string(63, 'x'))));
  EXPECT_FALSE(answer.Option(12).has_value());
  EXPECT_EQ(answer.Option(61), std::string(255, 'i'));
  EXPECT_LE(answer.bytes.size(), Answer::kMessage + 548);
}

TEST(Dhcp4, AnotherAddressIsDeniedAndAnotherServerIsLeftAlone) {
  Request request;
  request.type = 3;
  request.options = "\x32\x04" + Address(0x0a010204);
  const auto denied = Ask(request);
  ASSERT_TRUE(denied.has_value());
  EXPECT_EQ(Answer(*denied).Option(53), "\x06");
  EXPECT_EQ(Answer(*denied).your_address(), 0U);
  request.options += "\x36\x04" + Address(0x01020304);
  EXPECT_FALSE(Ask(request).has_value());
  // It goes on with what it has.
  Request renews;
  renews.type = 3;
  renews.client_address = 0x0a010203;
  const auto renewed = Ask(renews);
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(Answer(*renewed).Option(53), "\x05");
  EXPECT_EQ(renewed->substr(30, 4), Address(0x0a010203));  // to it, not to everybody
  renews.client_address = 0x0a010209;
  EXPECT_EQ(Answer(*Ask(renews)).Option(53), "\x06");
}

TEST(Dhcp4, WhoAsksForMoreGetsNoSecondAddress) {
  Request inform;
  inform.type = 8;
  inform.client_address = 0x0a010203;
  const auto told = Ask(inform);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(Answer(*told).your_address(), 0U);
  EXPECT_FALSE(Answer(*told).Option(51).has_value());
}

TEST(Dhcp4, NobodyElseIsAnswered) {
  Request foreign;
  foreign.mac = {2, 0, 0, 0, 0, 1};
  EXPECT_FALSE(Ask(foreign).has_value());
  EXPECT_FALSE(Ask(Request(), Port({})).has_value());
  EXPECT_FALSE(Ask(Request(), Port({"fd00::1"})).has_value());
  for (const int type : {0, 2, 4, 5, 6, 7, 9, 255}) {
    Request other;
    other.type = static_cast<uint8_t>(type);
    EXPECT_FALSE(Ask(other).has_value()) << type;
  }
}

TEST(Dhcp4, EveryPrefixOfARequestIsReadWithoutHarm) {
  Request request;
  request.options =
      "\x3d\x07\x01"
      "abcdef"
      "\x0c\x04name";
  const std::string whole = request.Frame();
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ParseDhcp4(whole.substr(0, length)).has_value()) << length;
  }
  EXPECT_TRUE(ParseDhcp4(whole).has_value());
  EXPECT_TRUE(ParseDhcp4(whole + "padding").has_value());
}

TEST(Dhcp4, LengthsThatLieAreNotBelieved) {
  const std::string whole = Request().Frame();
  const auto with = [&](size_t at, int value) {
    std::string frame = whole;
    frame[at] = static_cast<char>(value);
    return ParseDhcp4(frame).has_value();
  };
  EXPECT_FALSE(with(12, 0x86));  // another protocol
  EXPECT_FALSE(with(14, 0x65));  // another version
  EXPECT_FALSE(with(14, 0x44));  // a header of four words
  EXPECT_FALSE(with(14, 0x4f));  // one that takes in the ports
  EXPECT_FALSE(with(16, 0xff));  // longer than it is
  EXPECT_FALSE(with(16, 0x00));  // shorter than its headers
  EXPECT_FALSE(with(20, 0x20));  // more fragments
  EXPECT_FALSE(with(21, 0x01));  // a later fragment
  EXPECT_FALSE(with(23, 6));     // TCP
  EXPECT_FALSE(with(37, 68));    // another port
  EXPECT_FALSE(with(38, 0xff));  // a datagram longer than the packet
  EXPECT_FALSE(with(42, 2));     // a reply
  EXPECT_FALSE(with(44, 16));    // a long hardware address
  EXPECT_FALSE(with(45, 1));     // relayed
  EXPECT_FALSE(with(42 + 24, 1));
  EXPECT_FALSE(with(42 + 236, 0));     // no cookie
  EXPECT_FALSE(with(42 + 241, 0xff));  // an option that is longer than the rest
}

TEST(Dhcp4, NoiseIsNeverAnsweredWithAnotherAddress) {
  Random random(7);
  Request request;
  request.type = 3;
  request.options = "\x32\x04" + Address(0x0a010203) + "\x3d\x05hello";
  const std::string whole = request.Frame();
  int answered = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string frame = whole;
    const int changes = 1 + static_cast<int>(random.Below(6));
    for (int i = 0; i < changes; ++i) {
      frame[random.Below(frame.size())] = static_cast<char>(random.Below(256));
    }
    if (random.Below(4) == 0) frame.resize(random.Below(frame.size()));
    const auto query = ParseDhcp4(frame);
    if (!query.has_value()) continue;
    const auto answer = AnswerDhcp4(*query, Port());
    if (!answer.has_value()) continue;
    ++answered;
    ASSERT_LE(answer->size(), 1514U);
    const uint32_t told = Answer(*answer).your_address();
    ASSERT_TRUE(told == 0x0a010203U || told == 0U);
  }
  EXPECT_GT(answered, 1000);
}

}  // namespace
}  // namespace berth::runtime
