// SPDX-License-Identifier: Apache-2.0
// Defends ADR 0038 for addresses: what cannot be read is not free, and keeps nobody waiting outside
// of its namespace.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apis/networking/network.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/registry_world.h"
#include "controller/ipam/ipam.h"
#include "meta/at_rest.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::ipam::kPrefixAllocationKind;
using apis::ipam::kPrefixKind;
using apis::ipam::Prefix;
using apis::ipam::PrefixAllocation;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::NetworkInterface;

class IpamUnreadableTest : public testing::Test {
 protected:
  IpamUnreadableTest() {
    for (const char* space : {"team", "other"}) {
      world_.MakeNamespace(space);
      MakeRoot(space);
    }
    Start();
  }
  ~IpamUnreadableTest() override { Stop(); }
  void Start() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    ipam_ = std::make_unique<Ipam>(world_.loop(), world_.client(), world_.scheme());
    scope_->Spawn("ipam", ipam_->Run());
  }
  void Stop() { EXPECT_TRUE(world_.Run(scope_->Close()).ok()); }
  void Restart() {
    Stop();
    Start();
  }

  void MakeRoot(const std::string& space) {
    Prefix prefix;
    prefix.metadata.namespace_ = space;
    prefix.metadata.name = "corp";
    prefix.spec.prefix = meta::IpPrefix::Parse("10.0.0.0/24");
    Make(meta::Object::Of(kPrefixKind, std::move(prefix)));
  }
  void MakeNic(const std::string& space, const std::string& name) {
    NetworkInterface nic;
    nic.metadata.namespace_ = space;
    nic.metadata.name = name;
    nic.spec.network_ref.name = "net";
    nic.spec.ip_families = {"IPv4"};
    auto& from = nic.spec.ips.emplace_back().ephemeral.emplace().prefix_template.emplace();
    from.spec.parent_ref.emplace().name = "corp";
    Make(meta::Object::Of(kNetworkInterfaceKind, std::move(nic)));
  }
  void Make(meta::Object object) {
    const auto made = world_.Run(world_.client().Create(std::move(object), {}));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  NetworkInterface Nic(const std::string& space, const std::string& name) {
    const auto found = world_.Run(world_.client().Get(kNetworkInterfaceKind, {space, name}));
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->as<NetworkInterface>() : NetworkInterface();
  }
  std::string AddressOf(const std::string& space, const std::string& name) {
    const NetworkInterface nic = Nic(space, name);
    return nic.status.ips.empty() ? "" : nic.status.ips[0].ToString();
  }
  std::string WhyNot(const std::string& space, const std::string& name) {
    const NetworkInterface nic = Nic(space, name);
    return nic.status.conditions.empty() ? "" : nic.status.conditions[0].message;
  }
  // The one allocation of the namespace.
  client::ObjectKey AllocationIn(const std::string& space) {
    client::ListOptions options;
    options.namespace_ = space;
    const auto found = world_.Run(world_.client().List(kPrefixAllocationKind, std::move(options)));
    CHECK(found.ok() && found->items.size() == 1);
    return client::KeyOf(found->items[0]);
  }
  // Somebody who does not go through the API. Returns what was there.
  Bytes Write(const meta::KindInfo& kind, const client::ObjectKey& key, Bytes value) {
    const std::string store_key = apiserver::StoreKey(kind, key);
    store::RangeRequest request;
    request.start = store_key;
    const auto before = world_.Run(world_.store().Range(std::move(request)));
    CHECK(before.ok()) << before.status();
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(store_key, std::move(value)));
    CHECK(world_.Run(world_.store().Commit(std::move(txn))).ok());
    CHECK(world_.Run(world_.cache().CatchUp()).ok());
    return before->items.empty() ? Bytes() : before->items[0].value;
  }
  void DeleteByForce(const meta::KindInfo& kind, const client::ObjectKey& key) {
    client::DeleteOptions options;
    options.force = client::Force::kYes;
    const Status deleted = world_.Run(world_.client().Delete(kind, key, std::move(options)));
    ASSERT_TRUE(deleted.ok()) << deleted;
  }
  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < 1000; ++i) {
      if (done()) return true;
      world_.loop().RunFor(Duration::Millis(20));
    }
    return false;
  }

  apiserver::RegistryWorld world_{37};
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<Ipam> ipam_;
};

TEST_F(IpamUnreadableTest, OtherNamespacesGetTheirAddresses) {
  for (const meta::KindInfo* kind :
       {&kPrefixKind, &kPrefixAllocationKind, &kNetworkInterfaceKind}) {
    Write(*kind, {"team", "noise"}, Bytes("no object"));
  }
  Restart();
  MakeNic("other", "one");
  EXPECT_TRUE(Until([this] { return AddressOf("other", "one") == "10.0.0.1"; }));
}

TEST_F(IpamUnreadableTest, ItsNamespaceWaitsSaysWhyAndGoesOnWhenItIsRemoved) {
  for (const meta::KindInfo* kind :
       {&kPrefixKind, &kPrefixAllocationKind, &kNetworkInterfaceKind}) {
    const std::string name = "n-" + std::string(kind->plural);
    Write(*kind, {"team", "noise"}, Bytes("no object"));
    Restart();
    MakeNic("team", name);
    ASSERT_TRUE(Until([&] { return !WhyNot("team", name).empty(); })) << kind->plural;
    EXPECT_NE(
        WhyNot("team", name).find(std::string(kind->plural) + " \"team/noise\" cannot be read"),
        std::string::npos)
        << WhyNot("team", name);
    world_.loop().RunFor(Duration::Seconds(30));
    EXPECT_EQ(AddressOf("team", name), "");
    DeleteByForce(*kind, {"team", "noise"});
    EXPECT_TRUE(Until([&] { return !AddressOf("team", name).empty(); })) << kind->plural;
    EXPECT_EQ(WhyNot("team", name), "");
  }
}

TEST_F(IpamUnreadableTest, AnAddressThatCannotBeSeenIsNotGivenToOthers) {
  MakeNic("team", "one");
  ASSERT_TRUE(Until([this] { return AddressOf("team", "one") == "10.0.0.1"; }));
  const client::ObjectKey allocation = AllocationIn("team");
  const client::ObjectKey prefix{.namespace_ = "team", .name = "one-0"};
  const Bytes allocation_before = Write(kPrefixAllocationKind, allocation, Bytes("damaged"));
  const Bytes prefix_before = Write(kPrefixKind, prefix, Bytes("damaged"));
  Restart();
  MakeNic("team", "two");
  world_.loop().RunFor(Duration::Seconds(30));
  EXPECT_EQ(AddressOf("team", "two"), "");
  EXPECT_EQ(AddressOf("team", "one"), "10.0.0.1");
  // Mended: one after the other.
  Write(kPrefixAllocationKind, allocation, allocation_before);
  world_.loop().RunFor(Duration::Seconds(30));
  EXPECT_EQ(AddressOf("team", "two"), "");
  Write(kPrefixKind, prefix, prefix_before);
  EXPECT_TRUE(Until([this] { return AddressOf("team", "two") == "10.0.0.2"; }));
  EXPECT_EQ(AddressOf("team", "one"), "10.0.0.1");
}

TEST_F(IpamUnreadableTest, ANetworkThatCannotBeReadStopsNeitherOthersNorAddresses) {
  Write(apis::networking::kNetworkKind, {"team", "noise"}, Bytes("no object"));
  Restart();
  apis::networking::Network network;
  network.metadata.namespace_ = "team";
  network.metadata.name = "net";
  Make(meta::Object::Of(apis::networking::kNetworkKind, std::move(network)));
  MakeNic("team", "one");
  EXPECT_TRUE(Until([this] { return AddressOf("team", "one") == "10.0.0.1"; }));
  EXPECT_TRUE(Until([this] {
    const auto found =
        world_.Run(world_.client().Get(apis::networking::kNetworkKind, {"team", "net"}));
    return found.ok() && found->as<apis::networking::Network>().status.state == "Available";
  }));
}

// It is not only the name of an object: whoever works on names takes them apart.
TEST_F(IpamUnreadableTest, WhatIsNamedOtherwiseThanItsKeyIsNotWorkedOnAndIsNotAbsent) {
  for (const meta::KindInfo* kind :
       {&kPrefixKind, &kPrefixAllocationKind, &kNetworkInterfaceKind}) {
    const std::string name = "n-" + std::string(kind->plural);
    meta::Object odd(*kind);
    odd.metadata().namespace_ = "team";
    odd.metadata().name = "no/ise";
    odd.metadata().uid = "odd";
    Write(*kind, {"team", "noise"}, meta::EncodeAtRest(odd));
    // While it is followed, and from the beginning.
    MakeNic("other", name);
    ASSERT_TRUE(Until([&] { return !AddressOf("other", name).empty(); })) << kind->plural;
    Restart();
    MakeNic("team", name);
    ASSERT_TRUE(Until([&] { return !WhyNot("team", name).empty(); })) << kind->plural;
    EXPECT_NE(
        WhyNot("team", name).find(std::string(kind->plural) + " \"team/noise\" cannot be read"),
        std::string::npos)
        << WhyNot("team", name);
    DeleteByForce(*kind, {"team", "noise"});
    EXPECT_TRUE(Until([&] { return !AddressOf("team", name).empty(); })) << kind->plural;
  }
}

// While it is followed its last state is known, and holds what it held.
TEST_F(IpamUnreadableTest, DamageThatComesLaterStopsNothing) {
  MakeNic("team", "one");
  ASSERT_TRUE(Until([this] { return AddressOf("team", "one") == "10.0.0.1"; }));
  Write(kPrefixAllocationKind, AllocationIn("team"), Bytes("damaged"));
  MakeNic("team", "two");
  EXPECT_TRUE(Until([this] { return AddressOf("team", "two") == "10.0.0.2"; }));
}

}  // namespace
}  // namespace berth::controller
