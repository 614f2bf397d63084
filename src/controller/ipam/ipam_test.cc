// SPDX-License-Identifier: Apache-2.0
// Ranges are given out once, held as long as they are needed, and whoever gets none knows why.
#include "controller/ipam/ipam.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apis/core/well_known.h"
#include "apis/k8s/event.h"
#include "apis/networking/network.h"
#include "apiserver/registry/registry_world.h"
#include "base/random.h"
#include "controller/gc/garbage_collector.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::ipam::kPrefixAllocationKind;
using apis::ipam::kPrefixKind;
using apis::ipam::Prefix;
using apis::ipam::PrefixAllocation;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::kNetworkKind;
using apis::networking::Network;
using apis::networking::NetworkInterface;

class IpamTest : public testing::Test {
 protected:
  IpamTest() {
    world_.MakeNamespace("team");
    Start();
  }
  ~IpamTest() override { Stop(); }
  void Start() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    ipam_ = std::make_unique<Ipam>(world_.loop(), world_.client(), world_.scheme());
    gc_ = std::make_unique<GarbageCollector>(world_.loop(), world_.client(), world_.scheme());
    scope_->Spawn("ipam", ipam_->Run());
    scope_->Spawn("gc", gc_->Run());
  }
  void Stop() { EXPECT_TRUE(world_.Run(scope_->Close()).ok()); }
  void Restart() {
    Stop();
    Start();
  }

  static Prefix Root(const std::string& name, const std::string& range) {
    Prefix prefix;
    prefix.metadata.namespace_ = "team";
    prefix.metadata.name = name;
    prefix.spec.prefix = meta::IpPrefix::Parse(range);
    return prefix;
  }
  static Prefix Child(const std::string& name, const std::string& parent, int length) {
    Prefix prefix;
    prefix.metadata.namespace_ = "team";
    prefix.metadata.name = name;
    prefix.spec.ip_family = "IPv4";
    prefix.spec.prefix_length = length;
    if (!parent.empty()) prefix.spec.parent_ref.emplace().name = parent;
    return prefix;
  }
  static NetworkInterface Nic(const std::string& name, const std::string& parent) {
    NetworkInterface nic;
    nic.metadata.namespace_ = "team";
    nic.metadata.name = name;
    nic.spec.network_ref.name = "net";
    nic.spec.ip_families = {"IPv4"};
    auto& from = nic.spec.ips.emplace_back().ephemeral.emplace().prefix_template.emplace();
    from.spec.parent_ref.emplace().name = parent;
    from.metadata.labels = {{"of", name}};
    return nic;
  }

  void Make(Prefix prefix) { Make(meta::Object::Of(kPrefixKind, std::move(prefix))); }
  void Make(NetworkInterface nic) { Make(meta::Object::Of(kNetworkInterfaceKind, std::move(nic))); }
  void Make(meta::Object object) {
    const auto made = world_.Run(world_.client().Create(std::move(object), {}));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  void Delete(const meta::KindInfo& kind, const std::string& name) {
    const Status deleted = world_.Run(world_.client().Delete(kind, {"team", name}, {}));
    ASSERT_TRUE(deleted.ok()) << deleted;
  }
  std::optional<meta::Object> Find(const meta::KindInfo& kind, const std::string& name) {
    auto found = world_.Run(world_.client().Get(kind, {"team", name}));
    if (!found.ok()) return std::nullopt;
    return *std::move(found);
  }
  // The range of an allocated Prefix; "" without.
  std::string RangeOf(const std::string& name) {
    const auto found = Find(kPrefixKind, name);
    if (!found || found->as<Prefix>().status.phase != apis::ipam::kPhaseAllocated) return "";
    return found->as<Prefix>().spec.prefix->ToString();
  }
  std::vector<std::string> UsedOf(const std::string& name) {
    std::vector<std::string> texts;
    for (const auto& range : Find(kPrefixKind, name)->as<Prefix>().status.used) {
      texts.push_back(range.ToString());
    }
    return texts;
  }
  std::string AddressOf(const std::string& nic) {
    const auto found = Find(kNetworkInterfaceKind, nic);
    if (!found || found->as<NetworkInterface>().status.ips.empty()) return "";
    return found->as<NetworkInterface>().status.ips[0].ToString();
  }
  void MakeNetwork(const std::string& name) {
    Network network;
    network.metadata.namespace_ = "team";
    network.metadata.name = name;
    Make(meta::Object::Of(kNetworkKind, std::move(network)));
  }
  std::string StateOf(const std::string& network) {
    const auto found = Find(kNetworkKind, network);
    return found ? found->as<Network>().status.state : "";
  }
  // Its condition; "" without.
  std::string WhyNot(const std::string& nic) {
    const auto found = Find(kNetworkInterfaceKind, nic);
    if (!found || found->as<NetworkInterface>().status.conditions.empty()) return "";
    const auto& condition = found->as<NetworkInterface>().status.conditions[0];
    return condition.type + " " + condition.status + " " + condition.reason + ": " +
           condition.message;
  }
  // Whether an event about an object of that name says it.
  bool IsTold(const std::string& name, const std::string& reason, const std::string& words) {
    const auto events = world_.Run(world_.client().List(apis::k8s::kCoreEventKind, {}));
    CHECK(events.ok()) << events.status();
    for (const meta::Object& object : events->items) {
      const auto& event = object.as<apis::k8s::CoreEvent>();
      if (event.involved_object.name == name && event.reason == reason &&
          event.message.find(words) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < 1000; ++i) {
      if (done()) return true;
      world_.loop().RunFor(Duration::Millis(20));
    }
    return false;
  }
  void Settle() { world_.loop().RunFor(Duration::Seconds(5)); }

  apiserver::RegistryWorld world_{31};
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<Ipam> ipam_;
  std::unique_ptr<GarbageCollector> gc_;
};

TEST_F(IpamTest, ARootHasItsRangeAndAChildGetsOne) {
  Make(Root("corp", "10.0.0.0/16"));
  Make(Child("web", "corp", 24));
  Make(Child("small", "web", 30));
  ASSERT_TRUE(Until([&] { return RangeOf("small") == "10.0.0.0/30"; }));
  EXPECT_EQ(RangeOf("corp"), "10.0.0.0/16");
  EXPECT_EQ(RangeOf("web"), "10.0.0.0/24");
  EXPECT_TRUE(Until([&] { return UsedOf("corp") == std::vector<std::string>{"10.0.0.0/24"}; }));
  EXPECT_TRUE(Until([&] { return UsedOf("web") == std::vector<std::string>{"10.0.0.0/30"}; }));
}

TEST_F(IpamTest, AParentIsChosenByLabelWhereLeastIsBrokenUp) {
  for (const char* range : {"10.0.0.0/16", "10.1.0.0/27", "10.2.0.0/20"}) {
    Prefix root = Root("of-" + std::string(range).substr(3, 1), range);
    root.metadata.labels = {{"zone", "a"}};
    Make(std::move(root));
  }
  Make(Root("unlabelled", "10.9.0.0/28"));
  Prefix child = Child("child", "", 28);
  child.spec.parent_selector.emplace().match_labels = {{"zone", "a"}};
  Make(std::move(child));
  ASSERT_TRUE(Until([&] { return RangeOf("child") == "10.1.0.0/28"; }));
  EXPECT_EQ(Find(kPrefixKind, "child")->as<Prefix>().spec.parent_ref->name, "of-1");
  Prefix wide = Child("wide", "", 24);
  wide.spec.parent_selector.emplace().match_labels = {{"zone", "a"}};
  Make(std::move(wide));
  EXPECT_TRUE(Until([&] { return RangeOf("wide") == "10.2.0.0/24"; }));
  Prefix lost = Child("lost", "", 8);
  lost.spec.parent_selector.emplace().match_labels = {{"zone", "a"}};
  Make(std::move(lost));
  EXPECT_TRUE(Until([&] {
    return IsTold("lost", "NoSuitablePrefix", "no Prefix of 3 that match has room for /8");
  }));
}

TEST_F(IpamTest, WhoFindsNothingFreeIsToldAndGetsWhatIsGivenBack) {
  Make(Root("corp", "10.0.0.0/30"));
  for (const char* name : {"a", "b", "c", "d"}) Make(Child(name, "corp", 32));
  for (const char* name : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(Until([&] { return !RangeOf(name).empty(); })) << name;
  }
  Make(Child("late", "corp", 32));
  ASSERT_TRUE(Until([&] {
    return IsTold("late",
                  "PrefixExhausted",
                  "Prefix corp (10.0.0.0/30) has no free /32: nothing of it is free");
  }));
  EXPECT_EQ(RangeOf("late"), "");
  const std::string given = RangeOf("b");
  Delete(kPrefixKind, "b");
  EXPECT_TRUE(Until([&] { return RangeOf("late") == given; }));
}

TEST_F(IpamTest, ARangeIsAskedForByName) {
  Make(Root("corp", "10.0.0.0/24"));
  Prefix exact = Child("exact", "corp", 0);
  exact.spec.prefix = meta::IpPrefix::Parse("10.0.0.64/28");
  Make(std::move(exact));
  ASSERT_TRUE(Until([&] { return RangeOf("exact") == "10.0.0.64/28"; }));
  Prefix second = Child("second", "corp", 0);
  second.spec.prefix = meta::IpPrefix::Parse("10.0.0.72/29");
  Make(std::move(second));
  EXPECT_TRUE(Until([&] {
    return IsTold(
        "second", "PrefixExhausted", "10.0.0.72/29 of Prefix corp (10.0.0.0/24) is held by others");
  }));
  Prefix outside = Child("outside", "corp", 0);
  outside.spec.prefix = meta::IpPrefix::Parse("192.168.0.0/29");
  Make(std::move(outside));
  ASSERT_TRUE(
      Until([&] { return IsTold("outside", "PrefixOutside", "is no part of Prefix corp"); }));
  const auto allocations = world_.Run(world_.client().List(kPrefixAllocationKind, {}));
  std::string phases;
  for (const meta::Object& object : allocations->items) {
    phases += object.as<PrefixAllocation>().status.phase + ' ';
  }
  EXPECT_EQ(phases, "Allocated Failed Pending ");
}

TEST_F(IpamTest, AnAllocationMadeByHandIsServed) {
  Make(Root("corp", "2001:db8::/64"));
  PrefixAllocation wanted;
  wanted.metadata.namespace_ = "team";
  wanted.metadata.name = "mine";
  wanted.spec.ip_family = "IPv6";
  wanted.spec.prefix_length = 80;
  wanted.spec.prefix_ref.emplace().name = "corp";
  Make(meta::Object::Of(kPrefixAllocationKind, std::move(wanted)));
  const auto range = [&] {
    const auto found = Find(kPrefixAllocationKind, "mine");
    const auto& status = found->as<PrefixAllocation>().status;
    return status.prefix ? status.prefix->ToString() : std::string();
  };
  ASSERT_TRUE(Until([&] { return range() == "2001:db8::/80"; }));
  Delete(kPrefixAllocationKind, "mine");
  EXPECT_TRUE(Until([&] { return UsedOf("corp").empty(); }));
}

TEST_F(IpamTest, AfterARestartNothingIsGivenTwice) {
  Make(Root("corp", "10.0.0.0/29"));
  for (const char* name : {"a", "b", "c"}) Make(Child(name, "corp", 32));
  ASSERT_TRUE(Until(
      [&] { return !RangeOf("a").empty() && !RangeOf("b").empty() && !RangeOf("c").empty(); }));
  // Somebody deletes a request by hand: its Prefix has the range all the same.
  const auto allocations = world_.Run(world_.client().List(kPrefixAllocationKind, {}));
  Delete(kPrefixAllocationKind, allocations->items[0].metadata().name);
  Settle();
  Restart();
  for (const char* name : {"d", "e", "f", "g", "h"}) Make(Child(name, "corp", 32));
  std::set<std::string> ranges;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    ASSERT_TRUE(Until([&] { return !RangeOf(name).empty(); })) << name;
    EXPECT_TRUE(ranges.insert(RangeOf(name)).second) << name << ' ' << RangeOf(name);
  }
}

TEST_F(IpamTest, APrefixStaysWhileSomethingOfItIsHeld) {
  Make(Root("corp", "10.0.0.0/24"));
  Make(Child("web", "corp", 28));
  ASSERT_TRUE(Until([&] { return !RangeOf("web").empty(); }));
  Delete(kPrefixKind, "corp");
  Make(Child("late", "corp", 28));
  EXPECT_TRUE(
      Until([&] { return IsTold("late", "PrefixNotReady", "Prefix corp is being deleted"); }));
  EXPECT_TRUE(Find(kPrefixKind, "corp"));
  Delete(kPrefixKind, "late");
  Settle();
  EXPECT_TRUE(Find(kPrefixKind, "corp"));
  Delete(kPrefixKind, "web");
  EXPECT_TRUE(Until([&] { return !Find(kPrefixKind, "corp"); }));
}

TEST_F(IpamTest, AnInterfaceGetsItsAddressAndHoldsIt) {
  Make(Root("corp", "10.0.0.2/31"));
  Make(Nic("one", "corp"));
  Make(Nic("two", "corp"));
  ASSERT_TRUE(Until([&] { return !AddressOf("one").empty() && !AddressOf("two").empty(); }));
  EXPECT_NE(AddressOf("one"), AddressOf("two"));
  EXPECT_EQ(Find(kNetworkInterfaceKind, "one")->as<NetworkInterface>().status.state, "Available");
  EXPECT_EQ(Find(kPrefixKind, "one-0")->metadata().labels.at("of"), "one");
  NetworkInterface third = Nic("three", "corp");
  third.spec.machine_ref = apis::core::LocalUidReference{.name = "waiting", .uid = "m-1"};
  Make(std::move(third));
  // Who made the interface, or the machine that has it, looks there, not at what was made for it.
  ASSERT_TRUE(Until([&] { return IsTold("three", "PrefixExhausted", "has no free /32"); }));
  EXPECT_TRUE(Until([&] { return IsTold("waiting", "PrefixExhausted", "has no free /32"); }));
  // Its status says which Prefix, what was asked and what is free, so that its machine can.
  ASSERT_TRUE(Until([&] { return !WhyNot("three").empty(); }));
  EXPECT_EQ(WhyNot("three"),
            "AddressesReady False PrefixExhausted: Prefix corp (10.0.0.2/31) has no free /32: "
            "nothing of it is free");
  EXPECT_EQ(WhyNot("one"), "");
  Restart();
  // An address is not given away under an interface that has it.
  Delete(kPrefixKind, "one-0");
  Settle();
  EXPECT_NE(WhyNot("three"), "");
  EXPECT_TRUE(Find(kPrefixKind, "one-0"));
  EXPECT_EQ(AddressOf("three"), "");
  const std::string freed = AddressOf("one");
  Delete(kNetworkInterfaceKind, "one");
  EXPECT_TRUE(Until([&] { return AddressOf("three") == freed; }));
  EXPECT_EQ(WhyNot("three"), "") << "the reason goes with its cause";
}

TEST_F(IpamTest, AnInterfaceThatChangesItsMindGivesTheAddressBack) {
  Make(Root("corp", "10.0.0.0/24"));
  Make(Nic("one", "corp"));
  ASSERT_TRUE(Until([&] { return AddressOf("one") == "10.0.0.1"; }));
  meta::Object object = *Find(kNetworkInterfaceKind, "one");
  auto& ip = object.as<NetworkInterface>().spec.ips[0];
  ip.ephemeral.reset();
  ip.value = meta::IpAddress::Parse("192.168.7.7");
  ASSERT_TRUE(world_.Run(world_.client().Update(std::move(object), {})).ok());
  EXPECT_TRUE(Until([&] { return AddressOf("one") == "192.168.7.7"; }));
  EXPECT_TRUE(Until([&] { return !Find(kPrefixKind, "one-0"); }));
  EXPECT_TRUE(Until([&] { return UsedOf("corp").empty(); }));
}

TEST_F(IpamTest, AGuestGetsNoAddressThatIsItsNetworksOwn) {
  // Guests are told that 24 bits are shared: .0 is the network, and .255 is everybody.
  Make(Root("first", "203.0.113.0/30"));
  Make(Root("last", "203.0.113.254/31"));
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"a", "203.0.113.1"}, {"b", "203.0.113.2"}, {"c", "203.0.113.3"}};
  for (const auto& [name, address] : wanted) {
    Make(Nic(name, "first"));
    ASSERT_TRUE(Until([&, &one = name] { return !AddressOf(one).empty(); })) << name;
    EXPECT_EQ(AddressOf(name), address);
  }
  Make(Nic("d", "first"));
  ASSERT_TRUE(Until([&] { return !WhyNot("d").empty(); }));
  EXPECT_EQ(WhyNot("d"),
            "AddressesReady False PrefixExhausted: Prefix first (203.0.113.0/30) has no free /32 "
            "that a guest can use: only first and last addresses of networks are left");
  Make(Nic("e", "last"));
  ASSERT_TRUE(Until([&] { return AddressOf("e") == "203.0.113.254"; }));
  Make(Nic("f", "last"));
  ASSERT_TRUE(Until([&] { return !WhyNot("f").empty(); }));
  EXPECT_EQ(AddressOf("f"), "");
  // Somebody who asks for a range may do with it what he likes.
  Make(Child("mine", "first", 32));
  EXPECT_TRUE(Until([&] { return RangeOf("mine") == "203.0.113.0/32"; }));
}

TEST_F(IpamTest, WhatAGuestIsToldByAnAttributeDecidesWhichAddressesItGets) {
  Make(Root("corp", "10.7.0.0/29"));
  std::set<std::string> addresses;
  for (const char* name : {"a", "b", "c", "d"}) {
    NetworkInterface nic = Nic(name, "corp");
    nic.spec.attributes = {{"prefix-length", "30"}};
    Make(std::move(nic));
    ASSERT_TRUE(Until([&] { return !AddressOf(name).empty(); })) << name;
    addresses.insert(AddressOf(name));
  }
  EXPECT_EQ(addresses, (std::set<std::string>{"10.7.0.1", "10.7.0.2", "10.7.0.5", "10.7.0.6"}));
  // Another guest is told of a network that has all of them.
  Make(Nic("wide", "corp"));
  EXPECT_TRUE(Until([&] { return AddressOf("wide") == "10.7.0.0"; }));
}

TEST_F(IpamTest, AnAddressThatIsNamedIsGivenAsItIs) {
  Make(Root("corp", "203.0.113.0/24"));
  NetworkInterface nic = Nic("one", "corp");
  nic.spec.ips[0].ephemeral->prefix_template->spec.prefix =
      meta::IpPrefix::Parse("203.0.113.255/32");
  Make(std::move(nic));
  EXPECT_TRUE(Until([&] { return AddressOf("one") == "203.0.113.255"; }));
}

TEST_F(IpamTest, APrefixOfWhichNoGuestCanUseWhatIsLeftIsNotChosen) {
  for (const char* range : {"203.0.113.0/32", "10.7.0.0/24"}) {
    Prefix root = Root("of-" + std::string(range).substr(0, 2), range);
    root.metadata.labels = {{"zone", "a"}};
    Make(std::move(root));
  }
  NetworkInterface nic = Nic("one", "");
  auto& from = nic.spec.ips[0].ephemeral->prefix_template->spec;
  from.parent_ref.reset();
  from.parent_selector.emplace().match_labels = {{"zone", "a"}};
  Make(std::move(nic));
  EXPECT_TRUE(Until([&] { return AddressOf("one") == "10.7.0.0"; }));
}

TEST_F(IpamTest, APrefixOfSomebodyElseIsLeftAlone) {
  Make(Root("corp", "10.0.0.0/24"));
  Make(Child("one-0", "corp", 32));
  Make(Nic("one", "corp"));
  ASSERT_TRUE(Until([&] {
    return IsTold("one", "PrefixNotReady", "spec.ips[0]: Prefix one-0: exists and is not of this");
  }));
  EXPECT_EQ(AddressOf("one"), "");
  ASSERT_TRUE(Until([&] { return !WhyNot("one").empty(); }));
  EXPECT_NE(WhyNot("one").find("PrefixNotReady: spec.ips[0]: Prefix one-0: exists"),
            std::string::npos)
      << WhyNot("one");
  Delete(kPrefixKind, "one-0");
  EXPECT_TRUE(Until([&] { return !AddressOf("one").empty(); }));
  EXPECT_EQ(WhyNot("one"), "");
}

TEST_F(IpamTest, ForegroundDeletionOfAnInterfaceEnds) {
  Make(Root("corp", "10.0.0.0/24"));
  Make(Nic("one", "corp"));
  ASSERT_TRUE(Until([&] { return !AddressOf("one").empty(); }));
  client::DeleteOptions options;
  options.propagation = client::Propagation::kForeground;
  ASSERT_TRUE(
      world_.Run(world_.client().Delete(kNetworkInterfaceKind, {"team", "one"}, options)).ok());
  EXPECT_TRUE(Until([&] { return !Find(kNetworkInterfaceKind, "one"); }));
  EXPECT_TRUE(Until([&] { return UsedOf("corp").empty(); }));
}

TEST_F(IpamTest, ANetworkIsAvailableAndThatIsWrittenOnce) {
  MakeNetwork("net");
  ASSERT_TRUE(Until([&] { return StateOf("net") == "Available"; }));
  const std::string version = Find(kNetworkKind, "net")->metadata().resource_version;
  Settle();
  Restart();
  Settle();
  EXPECT_EQ(Find(kNetworkKind, "net")->metadata().resource_version, version);
}

TEST_F(IpamTest, WhatAProviderSaysOfANetworkStays) {
  Stop();
  MakeNetwork("net");
  meta::Object network = *Find(kNetworkKind, "net");
  network.as<Network>().status.state = "Error";
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  ASSERT_TRUE(world_.Run(world_.client().Update(std::move(network), options)).ok());
  Start();
  Settle();
  EXPECT_EQ(StateOf("net"), "Error");
}

// Come and go, with restarts and a store that refuses writes and loses answers: never two of one
// address, and in the end everybody has one.
TEST_F(IpamTest, AddressesThatComeAndGoAreNeverHeldTwice) {
  Make(Root("corp", "10.0.0.0/28"));
  Random random(7);
  std::set<std::string> there;
  for (int step = 0; step < 120; ++step) {
    const std::string name = "n" + std::to_string(random.Below(24));
    if (there.contains(name)) {
      Delete(kPrefixKind, name);
      there.erase(name);
    } else if (there.size() < 16 && !Find(kPrefixKind, name)) {
      Make(Child(name, "corp", 32));
      there.insert(name);
    }
    if (step % 30 == 29) Restart();
    world_.SetFaults({.refuse = 0.1, .lose_answer = 0.2, .delay = 0.2, .end_watch = 0.02});
    world_.loop().RunFor(Duration::Millis(static_cast<int64_t>(random.Below(40))));
    world_.SetFaults({});
    std::set<std::string> ranges;
    const auto all = world_.Run(world_.client().List(kPrefixKind, {}));
    for (const meta::Object& object : all->items) {
      const auto& prefix = object.as<Prefix>();
      if (!prefix.spec.parent_ref || !prefix.spec.prefix) continue;
      ASSERT_TRUE(ranges.insert(prefix.spec.prefix->ToString()).second)
          << prefix.spec.prefix->ToString() << " at step " << step;
    }
  }
  for (const std::string& name : there) {
    EXPECT_TRUE(Until([&] { return !RangeOf(name).empty(); })) << name;
  }
}

}  // namespace
}  // namespace berth::controller
