// SPDX-License-Identifier: Apache-2.0
// What a machine uses is nobody else's, and its host keeps it (PROTOCOL 4.6).
#include <gtest/gtest.h>

#include "apis/networking/network.h"
#include "apis/networking/network_interface.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

using apis::compute::Machine;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::kNetworkKind;
using apis::networking::NetworkInterface;

class InUseTest : public testing::Test {
 protected:
  InUseTest() {
    world_.Enrol("a");
    agent::Announce announce;
    *announce.add_pools() = TestHost::PoolNamed("pool", {{"cpu", 8000}});
    agent::PoolAnnounce& volumes = *announce.add_pools();
    volumes.set_kind("VolumePool");
    volumes.set_name("disks");
    (*volumes.mutable_capacity()->mutable_capacity())["storage"] = 1000;
    announce.set_last(true);
    CHECK(host_.Connect());
    host_.Announce(announce);
    CHECK(host_.WaitSynced());
    pool_ = host_.PoolUid("pool");
    disks_ = host_.PoolUid("disks");
  }
  meta::Object Make(meta::Object object) {
    return GatewayWorld::Must(world_.Run(world_.client().Create(std::move(object), {})));
  }
  meta::Object MakeNic() {
    apis::networking::Network network;
    network.metadata.namespace_ = "default";
    network.metadata.name = "net";
    Make(meta::Object::Of(kNetworkKind, std::move(network)));
    NetworkInterface nic;
    nic.metadata.namespace_ = "default";
    nic.metadata.name = "nic";
    nic.spec.network_ref.name = "net";
    nic.spec.ip_families = {"IPv4"};
    nic.spec.ips.emplace_back().value = *meta::IpAddress::Parse("10.0.0.1");
    return Make(meta::Object::Of(kNetworkInterfaceKind, std::move(nic)));
  }
  meta::Object BindWithNic(const std::string& name) {
    meta::Object machine = GatewayWorld::Machine(name);
    auto& item = machine.as<Machine>().spec.network_interfaces.emplace_back();
    item.name = "eth0";
    item.network_interface_ref = apis::core::LocalObjectReference{.name = "nic"};
    machine = Make(std::move(machine));
    CHECK(world_.Bind(machine, "pool", pool_).ok());
    return world_.Read(machine);
  }
  std::string ClaimantOf(const meta::Object& nic) {
    const auto claim = world_.Read(nic).as<NetworkInterface>().spec.machine_ref;
    return claim ? claim->uid : "";
  }
  // What the machine's interface waits for, as its host was last told; nullopt: it was not told.
  std::optional<std::string> WaitsFor(const meta::Object& machine) {
    std::optional<std::string> text;
    for (const agent::Assign& assign : host_.assigns()) {
      if (assign.uid() != machine.metadata().uid) continue;
      text = assign.machine().network_interfaces(0).waits_for();
    }
    return text;
  }
  bool IsToDelete(const meta::Object& object) {
    for (const agent::Delete& item : host_.deletes()) {
      if (item.uid() == object.metadata().uid) return true;
    }
    return false;
  }

  GatewayWorld world_;
  TestHost host_{world_, "a"};
  std::string pool_;
  std::string disks_;
};

TEST_F(InUseTest, R4_6_ASecondMachineWaitsForAnInterfaceThatIsClaimed) {
  const meta::Object nic = MakeNic();
  const meta::Object first = BindWithNic("first");
  ASSERT_TRUE(world_.Until([&] { return WaitsFor(first) == ""; }));
  EXPECT_EQ(ClaimantOf(nic), first.metadata().uid);
  const meta::Object second = BindWithNic("second");
  ASSERT_TRUE(world_.Until([&] { return WaitsFor(second).has_value(); }));
  EXPECT_EQ(WaitsFor(second), "network interface nic is used by machine first");
  // As controller/claims does when the first is gone.
  ASSERT_TRUE(world_.Delete(first).ok());
  ASSERT_TRUE(world_.Until([&] { return IsToDelete(first); }));
  host_.SayGone(first.metadata().uid, 1);
  ASSERT_TRUE(world_.Until([&] { return !world_.Exists(first); }));
  ASSERT_TRUE(world_.Patch(nic, R"({"spec":{"machineRef":null}})").ok());
  ASSERT_TRUE(world_.Until([&] { return WaitsFor(second) == ""; }));
  EXPECT_EQ(ClaimantOf(nic), second.metadata().uid);
}

TEST_F(InUseTest, R4_6_AnInterfaceThatComesLaterIsClaimedWhenItComes) {
  const meta::Object machine = BindWithNic("web");
  ASSERT_TRUE(world_.Until([&] { return WaitsFor(machine).has_value(); }));
  EXPECT_EQ(WaitsFor(machine), "network interface nic does not exist yet");
  const meta::Object nic = MakeNic();
  ASSERT_TRUE(world_.Until([&] { return WaitsFor(machine) == ""; }));
  EXPECT_EQ(ClaimantOf(nic), machine.metadata().uid);
}

TEST_F(InUseTest, R4_6_OfTwoMachinesAtATimeOneGetsTheInterface) {
  const meta::Object nic = MakeNic();
  meta::Object machines[2];
  std::vector<client::BindRequest> requests;
  for (int i = 0; i < 2; ++i) {
    machines[i] = GatewayWorld::Machine("m" + std::to_string(i));
    auto& item = machines[i].as<Machine>().spec.network_interfaces.emplace_back();
    item.name = "eth0";
    item.network_interface_ref = apis::core::LocalObjectReference{.name = "nic"};
    machines[i] = Make(std::move(machines[i]));
    requests.push_back(
        GatewayWorld::RequestFor({GatewayWorld::ItemFor(machines[i], "pool", pool_)}));
  }
  for (const auto& verdict : world_.Run(world_.registry().binder().BindBatch(requests))) {
    ASSERT_TRUE(verdict.ok()) << verdict.status();
  }
  world_.Pass(Duration::Seconds(3));
  const std::string holder = ClaimantOf(nic);
  const int winner = holder == machines[0].metadata().uid ? 0 : 1;
  EXPECT_EQ(holder, machines[winner].metadata().uid);
  EXPECT_EQ(WaitsFor(machines[winner]), "");
  EXPECT_EQ(WaitsFor(machines[1 - winner]),
            "network interface nic is used by machine m" + std::to_string(winner));
}

TEST_F(InUseTest, R4_6_AVolumeInUseIsNotTakenFromItsHost) {
  const meta::Object volume = world_.MakeVolume("data");
  meta::Object machine = world_.MakeMachine("web", {"data"});
  client::BindItem disk = GatewayWorld::ItemFor(volume, "disks", disks_, {{"storage", 10}});
  client::BindItem guest = GatewayWorld::ItemFor(machine, "pool", pool_);
  ASSERT_TRUE(world_.Bind(GatewayWorld::RequestFor({guest, disk})).ok());
  ASSERT_TRUE(host_.WaitAssigns(2));
  ASSERT_TRUE(world_.Delete(volume).ok());
  world_.Pass(Duration::Seconds(3));
  EXPECT_FALSE(IsToDelete(volume));
  EXPECT_TRUE(world_.Exists(volume));
  ASSERT_TRUE(world_.Delete(machine).ok());
  ASSERT_TRUE(world_.Until([&] { return IsToDelete(machine); }));
  EXPECT_FALSE(IsToDelete(volume));
  host_.SayGone(machine.metadata().uid, 1);
  ASSERT_TRUE(world_.Until([&] { return !world_.Exists(machine); }));
  // As controller/in_use does.
  ASSERT_TRUE(world_.Delete(volume).ok());
  ASSERT_TRUE(world_.Until([&] { return IsToDelete(volume); }));
  host_.SayGone(volume.metadata().uid, 1);
  EXPECT_TRUE(world_.Until([&] { return !world_.Exists(volume); }));
}

TEST_F(InUseTest, R4_5_R4_6_AVolumeThatIsDeletedByForceGoesThoughItIsInUse) {
  const meta::Object volume = world_.MakeVolume("data");
  meta::Object machine = world_.MakeMachine("web", {"data"});
  client::BindItem disk = GatewayWorld::ItemFor(volume, "disks", disks_, {{"storage", 10}});
  client::BindItem guest = GatewayWorld::ItemFor(machine, "pool", pool_);
  ASSERT_TRUE(world_.Bind(GatewayWorld::RequestFor({guest, disk})).ok());
  ASSERT_TRUE(host_.WaitAssigns(2));
  ASSERT_TRUE(world_.Delete(volume).ok());
  ASSERT_TRUE(world_.Exists(volume));
  ASSERT_TRUE(world_.Delete(volume, client::Force::kYes).ok());
  EXPECT_FALSE(world_.Exists(volume));
  EXPECT_TRUE(world_.Until([&] { return IsToDelete(volume); })) << "its tombstone";
}

}  // namespace
}  // namespace berth::gateway
