// SPDX-License-Identifier: Apache-2.0
// Networks on the real kernel, in a network namespace of each test's own. The test is the guest: it
// holds the other end of a tap.
#include "runtime/network/bridge_networks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/strings.h"
#include "rt/asio/loop_thread.h"
#include "rt/process/child_processes.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"
#include "runtime/network/host_links.h"
#include "runtime/network/port_rules.h"

namespace berth::runtime {
namespace {

constexpr int kPatienceMillis = 20'000;

// The guest's end of a tap.
class Guest {
 public:
  explicit Guest(const NetworkPort& port)
      : port_(port), fd_(open("/dev/net/tun", O_RDWR | O_CLOEXEC)) {
    ifreq request = {};
    std::ranges::copy(port.tap, request.ifr_name);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    CHECK(ioctl(fd_, TUNSETIFF, &request) == 0) << port.tap << ": " << strerror(errno);
  }
  ~Guest() { close(fd_); }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  void Send(const std::string& frame) const {
    CHECK(write(fd_, frame.data(), frame.size()) == static_cast<ssize_t>(frame.size()));
  }
  // The next frame; "" if none comes.
  std::string Receive(int patience_millis = kPatienceMillis) const {
    pollfd polled = {.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&polled, 1, patience_millis) != 1) return "";
    std::string frame(4096, '\0');
    frame.resize(static_cast<size_t>(std::max<ssize_t>(read(fd_, frame.data(), frame.size()), 0)));
    return frame;
  }
  // All frames up to this one. Empty: it did not come.
  std::vector<std::string> ReceiveUntil(const std::string& last) const {
    std::vector<std::string> frames;
    for (;;) {
      frames.push_back(Receive());
      if (frames.back() == last) return frames;
      if (frames.back().empty()) return {};
    }
  }
  const NetworkPort& port() const { return port_; }

 private:
  const NetworkPort port_;
  const int fd_;
};

constexpr MacAddress kEverybody = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

std::string Datagram(const Guest& from,
                     const MacAddress& to_mac,
                     std::string_view from_ip,
                     std::string_view to_ip,
                     std::string_view text,
                     unsigned from_port = 4000,
                     unsigned to_port = 4001) {
  const PacketEnds ends = {.from_mac = from.port().mac,
                           .to_mac = to_mac,
                           .from = *meta::IpAddress::Parse(from_ip),
                           .to = *meta::IpAddress::Parse(to_ip)};
  return UdpFrame(ends, from_port, to_port, text);
}

// A bridge takes a moment to notice that somebody has opened a tap.
void AwaitReach(const Guest& from, std::string_view from_ip, const Guest& to) {
  constexpr int kMomentMillis = 20;
  const std::string hello = Datagram(from, kEverybody, from_ip, "10.0.0.99", "hello");
  for (int tries = 0; tries < kPatienceMillis / kMomentMillis; ++tries) {
    from.Send(hello);
    if (!to.Receive(kMomentMillis).empty()) break;
  }
  const std::string last = Datagram(from, kEverybody, from_ip, "10.0.0.99", "last hello");
  from.Send(last);
  EXPECT_FALSE(to.ReceiveUntil(last).empty());
}

struct ArpWords {
  MacAddress frame_mac;
  MacAddress sender_mac;
  std::string sender_ip;
  unsigned operation = 1;
};
std::string Arp(const ArpWords& words) {
  std::string frame;
  PutMac(frame, kEverybody);
  PutMac(frame, words.frame_mac);
  PutU16(frame, 0x0806);
  PutU16(frame, 1);
  PutU16(frame, kEtherTypeIp);
  PutU8(frame, 6);
  PutU8(frame, 4);
  PutU16(frame, words.operation);
  PutMac(frame, words.sender_mac);
  PutAddress(frame, *meta::IpAddress::Parse(words.sender_ip));
  frame.append(6, '\0');
  PutAddress(frame, *meta::IpAddress::Parse("10.0.0.2"));
  frame.resize(60, '\0');
  return frame;
}

std::string Discover(const NetworkPort& port) {
  std::string message("\x01\x01\x06\x00\x01\x02\x03\x04\x00\x00\x00\x00", 12);
  message.append(16, '\0');
  PutMac(message, port.mac);
  message.append(10 + 64 + 128, '\0');
  PutU32(message, 0x63825363);
  message += "\x35\x01\x01\xff";
  const PacketEnds ends = {.from_mac = port.mac,
                           .to_mac = kEverybody,
                           .from = meta::IpAddress::V4(0),
                           .to = meta::IpAddress::V4(0xffffffff)};
  return UdpFrame(ends, 68, 67, message);
}

uint32_t OfferedAddress(const std::string& frame) {
  constexpr size_t kYourAddress = 14 + 20 + 8 + 16;
  if (frame.size() < kYourAddress + 4) return 0;
  return PacketReader(std::string_view(frame).substr(kYourAddress)).U32();
}

// What is in the first frame that comes. A tap takes a moment, too, and what is sent to it until
// then is lost: clients ask again.
uint32_t AsksUntilTold(const Guest& guest) {
  constexpr int kMomentMillis = 200;
  for (int tries = 0; tries < kPatienceMillis / kMomentMillis; ++tries) {
    guest.Send(Discover(guest.port()));
    const std::string frame = guest.Receive(kMomentMillis);
    if (!frame.empty()) return OfferedAddress(frame);
  }
  return 0;
}

iri::MachineNic Nic(std::string network, std::vector<std::string> ips) {
  iri::MachineNic nic;
  nic.name = "primary";
  nic.network_id = std::move(network);
  nic.ips = std::move(ips);
  return nic;
}

class BridgeNetworksTest : public testing::Test {
 protected:
  // Threads that are made after this are in there too, and only they.
  void SetUp() override {
    const int flags = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
    ASSERT_EQ(unshare(flags), 0) << strerror(errno);
    loop_ = std::make_unique<rt::LoopThread>("loop");
    programs_ = std::make_unique<rt::ThreadPool>(Pool(2, "programs"));
    links_ = std::make_unique<rt::ThreadPool>(Pool(1, "links"));
    processes_ = std::make_unique<rt::ChildProcesses>(*programs_);
  }
  void TearDown() override {
    StopNetworks();
    EXPECT_EQ(OwnLinks("/machines"), std::set<std::string>{}) << "left behind";
  }

  static rt::ThreadPool::Options Pool(size_t threads, std::string name) {
    return {.threads = threads, .queue_max = 64, .name = std::move(name)};
  }
  BridgeNetworks::Deps Deps() {
    return {
        .loop = loop_->loop(), .processes = *processes_, .links = *links_, .answers = *answers_};
  }
  BridgeNetworks::Options Options() const {
    BridgeNetworks::Options options;
    options.owner = "/machines";
    options.repeat = repeat_;
    return options;
  }

  void StartNetworks(std::vector<PluggedNic> plugged = {}) {
    answers_ = std::make_unique<rt::ThreadPool>(Pool(1, "answers"));
    ASSERT_EQ(loop_->Await(BridgeNetworks::Check(Deps(), Options())), OkStatus());
    ASSERT_EQ(loop_->Await(StartOnLoop(this, std::move(plugged))), OkStatus());
  }
  static rt::Task<Status> StartOnLoop(BridgeNetworksTest* test, std::vector<PluggedNic> plugged) {
    CO_TRY(test->networks_, BridgeNetworks::Start(test->Deps(), test->Options()));
    co_return co_await test->networks_->Adopt(std::move(plugged));
  }
  void StopNetworks() {
    if (networks_ != nullptr) EXPECT_EQ(loop_->Await(networks_->Stop()), OkStatus());
    networks_.reset();
    answers_.reset();
  }

  NetworkPort Plug(const std::string& machine, const iri::MachineNic& nic) {
    EXPECT_EQ(loop_->Await(networks_->Plug({.machine_id = machine, .nic = nic})), OkStatus());
    return *PortOf(NetworkOwner("/machines"), machine, nic);
  }
  void Unplug(const std::string& machine, const iri::MachineNic& nic) {
    EXPECT_EQ(loop_->Await(networks_->Unplug(machine, nic)), OkStatus());
  }

  std::string Run(std::vector<std::string> argv) {
    rt::ProcessRequest request;
    request.argv = std::move(argv);
    request.limit = Duration::Minutes(1);
    const auto end = loop_->Await(processes_->Run(std::move(request)));
    EXPECT_TRUE(end.ok() && end->ok()) << end.status() << (end.ok() ? end->errors : "");
    return end.ok() ? end->output : "";
  }
  std::string Rules() { return Run({"/usr/sbin/nft", "list", "ruleset"}); }

  static std::set<std::string> OwnLinks(const std::string& owner) {
    std::set<std::string> names;
    for (const HostLink& link : *ListLinks()) {
      if (NetworkOwner(owner).Owns(link.name)) names.insert(link.name);
    }
    return names;
  }

  Duration repeat_ = Duration::Minutes(10);
  std::unique_ptr<rt::LoopThread> loop_;
  std::unique_ptr<rt::ThreadPool> programs_;
  std::unique_ptr<rt::ThreadPool> links_;
  std::unique_ptr<rt::ThreadPool> answers_;
  std::unique_ptr<rt::ChildProcesses> processes_;
  std::unique_ptr<BridgeNetworks> networks_;
};

TEST_F(BridgeNetworksTest, LinksAreMadeOnceAndGoWhenTheyAreTold) {
  ASSERT_EQ(CheckLinks(), OkStatus());
  const BridgeLink bridge = {.name = "br-test", .alias = "a bridge"};
  const TapLink tap = {
      .name = "tap-test", .alias = "a tap", .bridge = "br-test", .mac = {0xfe, 1, 2, 3, 4, 5}};
  EXPECT_TRUE(EnsureTap(tap).status().Is(Reason::kNotFound));  // no bridge
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(EnsureBridge(bridge), OkStatus());
    const auto index = EnsureTap(tap);
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(*index, static_cast<int>(if_nametoindex("tap-test")));
  }
  const auto links = *ListLinks();
  const auto found = std::ranges::find(links, "tap-test", &HostLink::name);
  ASSERT_NE(found, links.end());
  EXPECT_EQ(found->kind, "tun");
  EXPECT_EQ(found->alias, "a tap");
  EXPECT_EQ(found->master, static_cast<int>(if_nametoindex("br-test")));
  EXPECT_TRUE(found->is_up);
  EXPECT_TRUE(EnsureBridge({.name = "tap-test", .alias = ""}).Is(Reason::kConflict));
  EXPECT_TRUE(EnsureTap({.name = "br-test", .alias = "", .bridge = "br-test", .mac = {}})
                  .status()
                  .Is(Reason::kConflict));
  for (const char* const name : {"tap-test", "br-test", "tap-test"}) {
    EXPECT_EQ(RemoveLink(name), OkStatus()) << name;
  }
  EXPECT_EQ(if_nametoindex("tap-test"), 0U);
  EXPECT_TRUE(RemoveLink("sixteen-letters-").Is(Reason::kBadRequest));
}

TEST_F(BridgeNetworksTest, GuestsOfOneNetworkReachEachOtherAndNobodyElse) {
  StartNetworks();
  const auto nic_a1 = Nic("net-a", {"10.0.0.1"});
  const auto nic_a2 = Nic("net-a", {"10.0.0.2"});
  const auto nic_b = Nic("net-b", {"10.0.0.2"});
  {
    const Guest a1(Plug("a1", nic_a1));
    const Guest a2(Plug("a2", nic_a2));
    const Guest b(Plug("b", nic_b));
    EXPECT_EQ(OwnLinks("/machines").size(), 5U);
    AwaitReach(a1, "10.0.0.1", a2);
    const std::string hello = Datagram(a1, kEverybody, "10.0.0.1", "10.0.0.2", "hello");
    a1.Send(
        Arp({.frame_mac = a1.port().mac, .sender_mac = a1.port().mac, .sender_ip = "10.0.0.1"}));
    a1.Send(hello);
    EXPECT_EQ(a2.ReceiveUntil(hello).size(), 2U);
    // b hears its neighbour before and after it, and nothing of that.
    const Guest b2(Plug("b2", Nic("net-b", {"10.0.0.7"})));
    AwaitReach(b2, "10.0.0.7", b);
    a1.Send(hello);
    EXPECT_EQ(a2.ReceiveUntil(hello).size(), 1U);
    const std::string later = Datagram(b2, kEverybody, "10.0.0.7", "10.0.0.2", "later");
    b2.Send(later);
    EXPECT_EQ(b.ReceiveUntil(later).size(), 1U);
  }
  Unplug("b2", Nic("net-b", {"10.0.0.7"}));
  Unplug("a1", nic_a1);
  Unplug("a2", nic_a2);
  EXPECT_EQ(OwnLinks("/machines").size(), 2U);  // b and its bridge
  Unplug("b", nic_b);
  Unplug("b", nic_b);
  EXPECT_EQ(OwnLinks("/machines").size(), 0U);
  EXPECT_EQ(Rules(), "");
}

TEST_F(BridgeNetworksTest, P9_AGuestSendsInItsOwnNameOnly) {
  StartNetworks();
  const auto nic_a = Nic("net", {"10.0.0.1", "fd00::1"});
  const auto nic_b = Nic("net", {"10.0.0.2", "fd00::2"});
  {
    const Guest a(Plug("a", nic_a));
    const Guest b(Plug("b", nic_b));
    AwaitReach(a, "10.0.0.1", b);
    const MacAddress mac = a.port().mac;
    const MacAddress foreign = {0x52, 0x54, 9, 9, 9, 9};
    const auto as = [&](const MacAddress& source, std::string frame) {
      std::ranges::copy(std::string(source.begin(), source.end()), frame.begin() + 6);
      return frame;
    };
    const auto icmp = [&](std::string_view from, std::string message) {
      message.resize(40, '\0');
      const PacketEnds ends = {.from_mac = mac,
                               .to_mac = {0x33, 0x33, 0, 0, 0, 1},
                               .from = *meta::IpAddress::Parse(from),
                               .to = *meta::IpAddress::Parse("ff02::1")};
      return Icmp6Frame(ends, std::move(message));
    };
    const auto announce = [&](std::string_view target) {
      std::string message(std::string_view("\x88\0\0\0\x20\0\0\0", 8));
      PutAddress(message, *meta::IpAddress::Parse(target));
      return icmp("fd00::1", message);
    };
    const std::string own_link_local = LinkLocalOf(mac).ToString();
    const std::string good = Datagram(a, kEverybody, "10.0.0.1", "10.0.0.2", "good");
    std::string tagged = good;
    tagged.insert(12, std::string("\x81\x00\x00\x05", 4));
    std::string other = good;
    other[12] = '\x88';
    other[13] = '\xcc';  // LLDP
    std::string to_bridges = as(foreign, good);
    std::ranges::copy(std::string("\x01\x80\xc2\x00\x00\x0e", 6), to_bridges.begin());
    const std::vector<std::pair<const char*, std::string>> bad = {
        {"another MAC", as(foreign, good)},
        {"the other guest's MAC", as(b.port().mac, good)},
        {"another MAC to bridges", to_bridges},
        {"another address", Datagram(a, kEverybody, "10.0.0.3", "10.0.0.2", "x")},
        {"the other guest's address", Datagram(a, kEverybody, "10.0.0.2", "10.0.0.2", "x")},
        {"no address", Datagram(a, kEverybody, "0.0.0.0", "10.0.0.2", "x")},
        {"a DHCP server", Datagram(a, kEverybody, "10.0.0.1", "255.255.255.255", "x", 67, 68)},
        {"a DHCP request", Discover(a.port())},
        {"ARP for another",
         Arp({.frame_mac = mac, .sender_mac = mac, .sender_ip = "10.0.0.2", .operation = 2})},
        {"ARP with another MAC",
         Arp({.frame_mac = mac, .sender_mac = foreign, .sender_ip = "10.0.0.1"})},
        {"a probe as an answer",
         Arp({.frame_mac = mac, .sender_mac = mac, .sender_ip = "0.0.0.0", .operation = 2})},
        {"ARP of another kind",
         Arp({.frame_mac = mac, .sender_mac = mac, .sender_ip = "10.0.0.1", .operation = 3})},
        {"a VLAN", tagged},
        {"another protocol", other},
        {"another IPv6 address", Datagram(a, kEverybody, "fd00::2", "fd00::9", "x")},
        {"another link-local address", Datagram(a, kEverybody, "fe80::2", "fd00::9", "x")},
        {"a DHCPv6 server", Datagram(a, kEverybody, "fd00::1", "fd00::9", "x", 547, 546)},
        {"a router", icmp(own_link_local, std::string("\x86\0\0\0", 4))},
        {"a redirect", icmp(own_link_local, std::string("\x89\0\0\0", 4))},
        {"an announcement of another's address", announce("fd00::2")},
    };
    for (const auto& [what, frame] : bad) {
      a.Send(frame);
      a.Send(good);
      const auto heard = b.ReceiveUntil(good);
      EXPECT_EQ(heard.size(), 1U) << what;
    }
    const std::vector<std::pair<const char*, std::string>> fine = {
        {"ARP",
         Arp({.frame_mac = mac, .sender_mac = mac, .sender_ip = "10.0.0.1", .operation = 2})},
        {"an ARP probe", Arp({.frame_mac = mac, .sender_mac = mac, .sender_ip = "0.0.0.0"})},
        {"IPv6", Datagram(a, kEverybody, "fd00::1", "fd00::2", "x")},
        {"IPv6 on the link", Datagram(a, kEverybody, own_link_local, "ff02::1", "x")},
        {"an announcement", announce("fd00::1")},
        {"an announcement on the link", announce(own_link_local)},
        {"whether an address is taken", icmp("::", std::string("\x87\0\0\0", 4))},
    };
    for (const auto& [what, frame] : fine) {
      a.Send(frame);
      EXPECT_EQ(b.ReceiveUntil(frame).size(), 1U) << what;
    }
  }
  Unplug("a", nic_a);
  Unplug("b", nic_b);
}

TEST_F(BridgeNetworksTest, P9_TheHostHearsNothingAndFlushedRulesComeBack) {
  repeat_ = Duration::Millis(50);
  StartNetworks();
  const auto nic = Nic("net", {"10.0.0.1"});
  Run({"/usr/sbin/ip", "address", "add", "10.9.9.9/32", "dev", "lo"});
  Run({"/usr/sbin/ip", "link", "set", "lo", "up"});
  {
    const Guest guest(Plug("a", nic));
    const std::string bridge = guest.port().bridge;
    Run({"/usr/sbin/ip", "route", "add", "10.0.0.0/8", "dev", bridge});  // not even then
    const int service = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(4001);
    ASSERT_EQ(bind(service, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    ifreq request = {};
    std::ranges::copy(bridge, request.ifr_name);
    ASSERT_EQ(ioctl(service, SIOCGIFHWADDR, &request), 0);
    MacAddress host = {};
    std::copy_n(request.ifr_hwaddr.sa_data, host.size(), host.begin());

    guest.Send(Datagram(guest, host, "10.0.0.1", "10.9.9.9", "first"));
    guest.Send(Datagram(guest, kEverybody, "10.0.0.1", "255.255.255.255", "second"));
    // Without rules it would: until they come back, which is soon.
    char heard[16] = {};
    ssize_t count = -1;
    for (int tries = 0; count < 0 && tries < 500; ++tries) {
      Run({"/usr/sbin/nft", "flush", "ruleset"});
      guest.Send(Datagram(guest, host, "10.0.0.1", "10.9.9.9", "third"));
      count = recv(service, heard, sizeof heard, MSG_DONTWAIT);
    }
    ASSERT_GT(count, 0);
    EXPECT_EQ(std::string_view(heard, static_cast<size_t>(count)), "third");
    int looks = 0;
    while (Rules().find(guest.port().tap) == std::string::npos) ASSERT_LT(++looks, 1000);
    close(service);
  }
  Unplug("a", nic);
}

TEST_F(BridgeNetworksTest, GuestsAreToldTheirAddressesWhoeverShoutsBesideThem) {
  StartNetworks();
  const auto nic_a = Nic("net", {"10.0.0.1"});
  const auto nic_b = Nic("net", {"10.0.0.2", "10.0.0.3"});
  {
    const Guest a(Plug("a", nic_a));
    const Guest b(Plug("b", nic_b));
    for (unsigned i = 0; i < 20 * AddressResponder::kFramesMax; ++i) a.Send(Discover(a.port()));
    EXPECT_EQ(AsksUntilTold(b), 0x0a000002U);  // and nothing of a's requests
    EXPECT_EQ(OfferedAddress(a.Receive()), 0x0a000001U);
  }
  Unplug("a", nic_a);
  Unplug("b", nic_b);
}

TEST_F(BridgeNetworksTest, WhatIsLeftOfAnEarlierLifeGoesAndWhatMachinesHaveIsThere) {
  StartNetworks();
  const auto kept = Nic("net", {"10.0.0.1"});
  const auto lost = Nic("net-lost", {"10.0.0.2"});
  const NetworkPort port = Plug("kept", kept);
  {
    const Guest guest(port);  // it runs on
    Plug("lost", lost);
    StopNetworks();
    const NetworkOwner other("/other");
    ASSERT_EQ(EnsureBridge({.name = other.BridgeOf("net"), .alias = ""}), OkStatus());

    const auto fresh = Nic("net", {"10.0.0.5"});
    iri::MachineNic nonsense = Nic("net", {"nonsense"});
    StartNetworks({{.machine_id = "kept", .nic = kept},
                   {.machine_id = "fresh", .nic = fresh},
                   {.machine_id = "bad", .nic = nonsense}});
    const NetworkOwner owner("/machines");
    EXPECT_EQ(OwnLinks("/machines"),
              (std::set<std::string>{port.tap, port.bridge, owner.TapOf("fresh", "primary")}));
    EXPECT_EQ(OwnLinks("/other").size(), 1U);
    EXPECT_EQ(RemoveLink(other.BridgeOf("net")), OkStatus());
    EXPECT_EQ(Rules().find(owner.TapOf("lost", "primary")), std::string::npos);
    guest.Send(Discover(port));
    EXPECT_EQ(OfferedAddress(guest.Receive()), 0x0a000001U);
    Unplug("fresh", fresh);
  }
  Unplug("kept", kept);
  EXPECT_EQ(Rules(), "");
}

TEST_F(BridgeNetworksTest, AHostWithoutWhatIsNeededSaysSo) {
  answers_ = std::make_unique<rt::ThreadPool>(Pool(1, "answers"));
  BridgeNetworks::Options options = Options();
  options.nft = "/no/such/nft";
  const Status checked = loop_->Await(BridgeNetworks::Check(Deps(), options));
  EXPECT_NE(checked.message().find("/no/such/nft"), std::string::npos) << checked;
  options.nft = "/bin/false";
  EXPECT_FALSE(loop_->Await(BridgeNetworks::Check(Deps(), options)).ok());
}

}  // namespace
}  // namespace berth::runtime
