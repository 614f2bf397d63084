// SPDX-License-Identifier: Apache-2.0
// A host gets everything that a machine needs, and nothing before it may have it.
#include "gateway/rules/bodies.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/well_known.h"
#include "meta/ip.h"

namespace berth::gateway {
namespace {

using apis::compute::Machine;
using apis::k8s::Secret;
using apis::storage::Volume;

class BodiesTest : public testing::Test {
 protected:
  BodiesTest() {
    machine_.metadata.namespace_ = "default";
    machine_.metadata.name = "web";
    machine_.metadata.uid = "m-uid";
    machine_.status.placement = apis::core::PlacementStatus{.pool_uid = "p", .epoch = 4};
    volume_.metadata.name = "data";
    volume_.metadata.uid = "v-uid";
    volume_.spec.claim_ref = apis::core::LocalUidReference{.name = "web", .uid = "m-uid"};
    volume_.spec.encryption = apis::storage::VolumeEncryption{.secret_ref = {.name = "crypt"}};
    volume_.status.state = "Available";
    volume_.status.access.emplace();
    volume_.status.access->driver = "test";
    volume_.status.access->handle = "disk-1";
    volume_.status.access->secret_ref = apis::core::LocalObjectReference{.name = "auth"};
    auth_.data["user"].bytes = "u";
    crypt_.data["encryptionKey"].bytes = "k";
    crypt_.data["note"].bytes = "private";
  }
  // Looks everything up as the gateway does.
  agent::Assign Assemble() {
    return Assemble(meta::Object::Of(apis::compute::kMachineKind, machine_));
  }
  agent::Assign Assemble(const meta::Object& object) {
    Parts parts;
    for (auto needs = NeedsOf(object, parts); !needs.empty(); needs = NeedsOf(object, parts)) {
      for (const Need& need : needs) {
        const auto found = world_.find(need.name);
        Put(need, found == world_.end() ? std::nullopt : std::optional(found->second), parts);
        asked_.insert(need.name);
      }
    }
    agent::Assign assign;
    EXPECT_TRUE(assign.ParseFromString(AssembleAssign(object, parts, 1, copied_).bytes));
    return assign;
  }
  void UseVolume() {
    apis::compute::MachineVolume disk;
    disk.name = "root";
    disk.volume_ref = apis::core::LocalObjectReference{.name = "data"};
    machine_.spec.volumes.push_back(disk);
  }
  void Have(const std::string& name, meta::Object object) { world_[name] = std::move(object); }
  void HaveAll() {
    Have("data", meta::Object::Of(apis::storage::kVolumeKind, volume_));
    Have("auth", meta::Object::Of(apis::k8s::kSecretKind, auth_));
    Have("crypt", meta::Object::Of(apis::k8s::kSecretKind, crypt_));
  }

  Machine machine_;
  Volume volume_;
  Secret auth_;
  Secret crypt_;
  std::map<std::string, meta::Object> world_;
  std::set<std::string> asked_;
  CopiedBody copied_;
};

TEST_F(BodiesTest, AVolumeComesWithItsAccessAndItsKey) {
  UseVolume();
  HaveAll();
  const auto part = Assemble().machine().volumes(0);
  EXPECT_EQ(part.waits_for(), "");
  EXPECT_EQ(part.access().driver(), "test");
  EXPECT_EQ(part.access().secret_data().at("user"), "u");
  EXPECT_EQ(part.encryption().at("encryptionKey"), "k");
  EXPECT_FALSE(part.encryption().contains("note"));
  EXPECT_EQ(part.volume_uid(), "v-uid");
}

TEST_F(BodiesTest, OfTheLimitsOfBothClassesTheLowerCounts) {
  UseVolume();
  volume_.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
  volume_.status.access->volume_attributes = {{"tps", "1000"}, {"iops", "50"}, {"path", "/x"}};
  HaveAll();
  const auto attribute = [this](const std::string& name) {
    return Assemble().machine().volumes(0).access().attributes().at(name);
  };
  EXPECT_EQ(attribute("tps"), "1000") << "there is no such class in the API";
  apis::storage::VolumeClass fast;
  fast.capabilities = {{"tps", meta::Quantity(500)}, {"iops", meta::Quantity(80)}};
  Have("fast", meta::Object::Of(apis::storage::kVolumeClassKind, fast));
  EXPECT_EQ(attribute("tps"), "500");
  EXPECT_EQ(attribute("iops"), "50");
  EXPECT_EQ(attribute("path"), "/x");
  // What a runtime of another kind calls so is left alone, and one without limits has none.
  volume_.status.access->volume_attributes = {{"tps", "much"}, {"iops", "0"}};
  HaveAll();
  EXPECT_EQ(attribute("tps"), "much");
  EXPECT_EQ(attribute("iops"), "80");
  volume_.status.access->volume_attributes = {{"path", "/x"}};
  HaveAll();
  asked_.clear();
  EXPECT_EQ(Assemble().machine().volumes(0).access().attributes_size(), 1);
  EXPECT_FALSE(asked_.contains("fast"));
}

TEST_F(BodiesTest, CopiesOfASetShareWhatTheyRunAndNothingElse) {
  machine_.metadata.owner_references.emplace_back().uid = "set";
  machine_.metadata.labels["app"] = "web";
  machine_.spec.machine_class_ref.name = "small";
  const agent::Assign first = Assemble();
  machine_.metadata.name = "web-2";
  machine_.metadata.uid = "m-uid-2";
  machine_.spec.machine_pool_ref = apis::core::LocalObjectReference{.name = "other"};
  machine_.status.placement->pool_uid = "p2";
  const agent::Assign second = Assemble();
  EXPECT_EQ(second.hash(), first.hash());
  EXPECT_EQ(second.machine().SerializeAsString(), first.machine().SerializeAsString());
  EXPECT_EQ(second.uid(), "m-uid-2");
  EXPECT_EQ(second.name(), "web-2");
  EXPECT_EQ(second.pool_uid(), "p2");
  // Whatever differs in what runs is said, however alike they are else.
  const std::vector<std::function<void()>> changes = {
      [this] { machine_.metadata.labels["app"] = "db"; },
      [this] { machine_.metadata.annotations["note"] = "x"; },
      [this] { machine_.metadata.generation = 2; },
      [this] { machine_.spec.machine_class_ref.name = "large"; },
      [this] { machine_.spec.power = apis::compute::kPowerOff; },
      [this] { machine_.spec.volumes.emplace_back().local_disk.emplace().image = "os"; },
      [this] { machine_.status.placement->resources["cpu"] = *meta::Quantity::Parse("2"); },
      [this] { machine_.status.placement->reservation_uid = "r"; }};
  std::string before = second.hash();
  for (const auto& change : changes) {
    change();
    const agent::Assign remembered = Assemble();
    EXPECT_NE(remembered.hash(), before);
    copied_ = {};
    EXPECT_EQ(Assemble().SerializeAsString(), remembered.SerializeAsString());
    before = remembered.hash();
  }
}

TEST_F(BodiesTest, R6_3_AVolumeThatAnotherClaimsIsNotGivenAway) {
  UseVolume();
  volume_.spec.claim_ref->uid = "another";
  HaveAll();
  const agent::Assign assign = Assemble();
  EXPECT_NE(assign.machine().volumes(0).waits_for(), "");
  EXPECT_FALSE(assign.machine().volumes(0).has_access());
  EXPECT_TRUE(assign.machine().volumes(0).encryption().empty());
}

TEST_F(BodiesTest, EveryMissingPrerequisiteIsNamed) {
  UseVolume();
  EXPECT_NE(Assemble().machine().volumes(0).waits_for().find("data"), std::string::npos);
  HaveAll();
  volume_.spec.claim_ref.reset();
  Have("data", meta::Object::Of(apis::storage::kVolumeKind, volume_));
  EXPECT_NE(Assemble().machine().volumes(0).waits_for().find("not claimed"), std::string::npos);
  volume_.spec.claim_ref = apis::core::LocalUidReference{.name = "web", .uid = "m-uid"};
  volume_.status.state = "Pending";
  Have("data", meta::Object::Of(apis::storage::kVolumeKind, volume_));
  EXPECT_NE(Assemble().machine().volumes(0).waits_for().find("not available"), std::string::npos);
  volume_.status.state = "Available";
  HaveAll();
  world_.erase("crypt");
  const auto part = Assemble().machine().volumes(0);
  EXPECT_NE(part.waits_for().find("crypt"), std::string::npos);
  EXPECT_FALSE(part.has_access()) << "half of it is of no use";
}

TEST_F(BodiesTest, D6_AnEmptyDiskIsALocalDisk) {
  apis::compute::MachineVolume disk;
  disk.name = "scratch";
  disk.empty_disk.emplace();
  disk.empty_disk->size_limit = meta::Quantity(1024);
  machine_.spec.volumes.push_back(disk);
  const auto part = Assemble().machine().volumes(0);
  EXPECT_TRUE(part.local_disk());
  EXPECT_EQ(part.local_disk_bytes(), 1024);
  EXPECT_EQ(part.waits_for(), "");
}

TEST_F(BodiesTest, R3_2_AHostIsToldToKeepWhatIsTiedToIt) {
  EXPECT_EQ(Assemble().machine().on_pool_loss(), "Keep");
  machine_.spec.placement.emplace().on_pool_loss = apis::core::kOnPoolLossMove;
  EXPECT_EQ(Assemble().machine().on_pool_loss(), "Move");
  machine_.spec.volumes.push_back({.name = "scratch"});
  machine_.spec.volumes[0].empty_disk.emplace();
  EXPECT_EQ(Assemble().machine().on_pool_loss(), "Keep");
  machine_.spec.volumes.clear();
  for (const auto& [status, said] : {std::pair("False", "Keep"), std::pair("Unknown", "Move")}) {
    machine_.status.conditions = {{.type = "Movable", .status = status}};
    EXPECT_EQ(Assemble().machine().on_pool_loss(), said) << status;
  }
}

TEST_F(BodiesTest, R3_2_CopiesOfWhichOneIsTiedDoNotShareABody) {
  machine_.metadata.owner_references.emplace_back();
  machine_.spec.placement.emplace().on_pool_loss = apis::core::kOnPoolLossMove;
  machine_.status.conditions = {{.type = "Movable", .status = "False"}};
  EXPECT_EQ(Assemble().machine().on_pool_loss(), "Keep");
  machine_.status.conditions.clear();
  EXPECT_EQ(Assemble().machine().on_pool_loss(), "Move");
}

TEST_F(BodiesTest, D7_PowerOffIsOffFromTheBeginning) {
  EXPECT_TRUE(Assemble().machine().power_on());
  machine_.spec.power = "Off";
  EXPECT_FALSE(Assemble().machine().power_on());
}

TEST_F(BodiesTest, AVolumeThatOnlyHasTheNameOfAnEphemeralOneIsSomebodyElses) {
  apis::compute::MachineVolume disk;
  disk.name = "root";
  disk.ephemeral.emplace();
  machine_.spec.volumes.push_back(disk);
  volume_.metadata.name = "web-root";
  HaveAll();
  Have("web-root", meta::Object::Of(apis::storage::kVolumeKind, volume_));
  EXPECT_NE(Assemble().machine().volumes(0).waits_for(), "");
  meta::OwnerReference owner;
  owner.uid = "m-uid";
  volume_.metadata.owner_references.push_back(owner);
  Have("web-root", meta::Object::Of(apis::storage::kVolumeKind, volume_));
  EXPECT_EQ(Assemble().machine().volumes(0).waits_for(), "");
}

TEST_F(BodiesTest, AnInterfaceNeedsANetworkAndAddresses) {
  apis::compute::MachineNetworkInterface item;
  item.name = "eth0";
  item.network_interface_ref = apis::core::LocalObjectReference{.name = "nic"};
  machine_.spec.network_interfaces.push_back(item);
  apis::networking::NetworkInterface nic;
  nic.spec.network_ref.name = "net";
  nic.spec.machine_ref = {.name = "web", .uid = "m-uid"};
  Have("nic", meta::Object::Of(apis::networking::kNetworkInterfaceKind, nic));
  EXPECT_NE(Assemble().machine().network_interfaces(0).waits_for(), "");
  apis::networking::Network network;
  network.spec.provider_id = "net://1";
  Have("net", meta::Object::Of(apis::networking::kNetworkKind, network));
  EXPECT_EQ(Assemble().machine().network_interfaces(0).waits_for(),
            "network interface nic has no addresses yet");
  nic.status.conditions.push_back(
      {.type = std::string(apis::networking::kAddressesReady),
       .status = "False",
       .reason = "PrefixExhausted",
       .message = "Prefix corp (10.0.0.0/31) has no free /32: nothing of it is free",
       .last_transition_time = {}});
  Have("nic", meta::Object::Of(apis::networking::kNetworkInterfaceKind, nic));
  EXPECT_EQ(Assemble().machine().network_interfaces(0).waits_for(),
            "network interface nic has no addresses: Prefix corp (10.0.0.0/31) has no free /32: "
            "nothing of it is free");
  nic.status.conditions.clear();
  nic.status.ips.push_back(*meta::IpAddress::Parse("10.0.0.1"));
  Have("nic", meta::Object::Of(apis::networking::kNetworkInterfaceKind, nic));
  const auto part = Assemble().machine().network_interfaces(0);
  EXPECT_EQ(part.waits_for(), "");
  EXPECT_EQ(part.network_id(), "net://1");
  EXPECT_EQ(part.ips(0), "10.0.0.1");
}

TEST_F(BodiesTest, AnInterfaceSaysWhichNetworkItIsInWhateverItsUserCallsThat) {
  apis::compute::MachineNetworkInterface item;
  item.name = "eth0";
  item.network_interface_ref = apis::core::LocalObjectReference{.name = "nic"};
  machine_.spec.network_interfaces.push_back(item);
  apis::networking::NetworkInterface nic;
  nic.metadata.name = "nic";
  nic.metadata.uid = "nic-uid";
  nic.spec.network_ref.name = "net";
  nic.spec.machine_ref = {.name = "web", .uid = "m-uid"};
  nic.spec.attributes = {{"berth.dev/network-uid", "victim"},
                         {"rawNICLabels", "{}"},
                         {"rawNetworkLabels", "{}"},
                         {"prefix-length", "24"}};
  Have("nic", meta::Object::Of(apis::networking::kNetworkInterfaceKind, nic));
  auto part = Assemble().machine().network_interfaces(0);
  EXPECT_EQ(part.nic_uid(), "nic-uid") << "it may be attached since before";
  EXPECT_EQ(part.network_uid(), "");
  nic.status.ips.push_back(*meta::IpAddress::Parse("10.0.0.1"));
  Have("nic", meta::Object::Of(apis::networking::kNetworkInterfaceKind, nic));
  apis::networking::Network network;
  network.metadata.name = "net";
  network.metadata.uid = "net-uid";
  for (const std::string id : {"", "victim"}) {
    network.spec.provider_id = id;
    Have("net", meta::Object::Of(apis::networking::kNetworkKind, network));
    part = Assemble().machine().network_interfaces(0);
    EXPECT_EQ(part.network_id(), id.empty() ? "net-uid" : id);
    EXPECT_EQ(part.network_uid(), "net-uid");
    EXPECT_EQ(part.network_name(), "net");
    EXPECT_EQ(part.nic_name(), "nic");
    EXPECT_EQ(part.attributes_size(), 1) << "nobody but the server says it";
    EXPECT_EQ(part.attributes().at("prefix-length"), "24");
  }
  nic.spec.machine_ref = {.name = "db", .uid = "other"};
  Have("nic", meta::Object::Of(apis::networking::kNetworkInterfaceKind, nic));
  EXPECT_EQ(Assemble().machine().network_interfaces(0).nic_uid(), "") << "it is another's";
}

TEST_F(BodiesTest, R4_6_AnInterfaceIsGivenOnlyToTheMachineThatHasClaimedIt) {
  apis::compute::MachineNetworkInterface item;
  item.name = "eth0";
  item.network_interface_ref = apis::core::LocalObjectReference{.name = "nic"};
  machine_.spec.network_interfaces.push_back(item);
  apis::networking::Network network;
  Have("net", meta::Object::Of(apis::networking::kNetworkKind, network));
  using Claim = apis::core::LocalUidReference;
  struct Case {
    std::optional<Claim> claim;
    bool is_deleting;
    std::string waits_for;
    size_t to_claim;
  };
  const Case cases[] = {
      {std::nullopt, false, "network interface nic is not claimed yet", 1},
      {Claim{.name = "web", .uid = ""}, false, "network interface nic is not claimed yet", 1},
      {std::nullopt, true, "network interface nic is being deleted", 0},
      {Claim{.name = "web", .uid = "m-uid"}, false, "", 0},
      {Claim{.name = "web", .uid = "m-uid"}, true, "", 0},
      {Claim{.name = "db", .uid = "other"},
       false,
       "network interface nic is used by machine db",
       0},
      {Claim{.name = "db", .uid = ""}, false, "network interface nic is used by machine db", 0},
  };
  for (const Case& one : cases) {
    apis::networking::NetworkInterface nic;
    nic.metadata.name = "nic";
    nic.spec.network_ref.name = "net";
    nic.spec.machine_ref = one.claim;
    if (one.is_deleting) nic.metadata.deletion_timestamp = WallTime::FromSeconds(1);
    nic.status.ips.push_back(*meta::IpAddress::Parse("10.0.0.1"));
    const auto object = meta::Object::Of(apis::networking::kNetworkInterfaceKind, nic);
    Have("nic", object);
    EXPECT_EQ(Assemble().machine().network_interfaces(0).waits_for(), one.waits_for);
    Parts parts;
    Put({&apis::networking::kNetworkInterfaceKind, "nic"}, object, parts);
    const auto claimed =
        InterfacesToClaim(meta::Object::Of(apis::compute::kMachineKind, machine_), parts);
    ASSERT_EQ(claimed.size(), one.to_claim) << one.waits_for;
    if (one.to_claim > 0) {
      EXPECT_EQ(claimed[0].spec.machine_ref, (Claim{.name = "web", .uid = "m-uid"}));
    }
  }
}

TEST_F(BodiesTest, R6_3_AVolumeThatABoundMachineNamesIsClaimedIfItIsPlacedAndFree) {
  UseVolume();
  volume_.spec.claim_ref.reset();
  volume_.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
  volume_.status.placement = apis::core::PlacementStatus{.pool = "disks", .pool_uid = "p"};
  using Change = std::function<void(Volume&)>;
  const std::pair<Change, size_t> cases[] = {
      {[](Volume&) {}, 1},
      {[](Volume& v) { v.status.placement.reset(); }, 0},
      {[](Volume& v) { v.status.placement->pool_uid.clear(); }, 0},
      {[](Volume& v) {
         v.status.placement.reset();
         v.spec.volume_class_ref.reset();  // made elsewhere
       },
       1},
      {[](Volume& v) { v.spec.unclaimable = true; }, 0},
      {[](Volume& v) { v.metadata.deletion_timestamp = WallTime::FromSeconds(1); }, 0},
      {[](Volume& v) { v.spec.claim_ref = apis::core::LocalUidReference{"db", "other"}; }, 0},
      {[](Volume& v) { v.spec.claim_ref = apis::core::LocalUidReference{"web", "m-uid"}; }, 0},
  };
  for (const auto& [change, expected] : cases) {
    Volume volume = volume_;
    change(volume);
    Parts parts;
    Put({&apis::storage::kVolumeKind, "data"},
        meta::Object::Of(apis::storage::kVolumeKind, volume),
        parts);
    const auto claimed =
        VolumesToClaim(meta::Object::Of(apis::compute::kMachineKind, machine_), parts);
    ASSERT_EQ(claimed.size(), expected) << &expected - &cases[0].second;
    if (expected > 0) {
      EXPECT_EQ(claimed[0].spec.claim_ref, (apis::core::LocalUidReference{"web", "m-uid"}));
    }
  }
}

TEST(CanReach, R6_1_TheHostTheZoneTheRegionOrAnything) {
  struct Case {
    std::string reach;
    std::map<std::string, std::string> volumes;
    std::map<std::string, std::string> machines;
    std::string host;
    bool reaches;
  };
  const std::string zone(apis::core::kZoneLabel);
  const std::string region(apis::core::kRegionLabel);
  const Case cases[] = {
      {"", {}, {}, "b", true},
      {"Any", {}, {}, "b", true},
      {"Host", {}, {}, "a", true},
      {"Host", {}, {}, "b", false},
      {"Region", {{region, "r"}}, {{region, "r"}}, "b", true},
      {"Region", {{region, "r"}}, {{region, "s"}}, "b", false},
      {"Region", {}, {}, "b", false},
      {"Region", {}, {}, "a", true},
      {"Zone", {{zone, "z"}}, {{zone, "z"}}, "b", true},
      {"Zone", {{zone, "z"}}, {{zone, "y"}}, "b", false},
      {"Zone", {}, {}, "b", false},
      {"Zone", {}, {}, "a", true},
      {"Zone", {{zone, "z"}, {region, "r"}}, {{zone, "z"}, {region, "s"}}, "b", false},
      {"Zone", {{zone, "z"}, {region, "r"}}, {{zone, "z"}, {region, "r"}}, "b", true},
  };
  for (const Case& one : cases) {
    apis::storage::VolumePool volumes;
    volumes.spec.reach = one.reach;
    volumes.spec.host_ref = apis::core::LocalObjectReference{.name = "a"};
    volumes.metadata.labels.insert(one.volumes.begin(), one.volumes.end());
    apis::compute::MachinePool machines;
    machines.spec.host_ref = apis::core::LocalObjectReference{.name = one.host};
    machines.metadata.labels.insert(one.machines.begin(), one.machines.end());
    EXPECT_EQ(CanReach(volumes, machines), one.reaches) << one.reach << " " << &one - cases;
  }
}

TEST_F(BodiesTest, TheHashIsOfTheBodyAndNotOfThePlacement) {
  machine_.metadata.labels = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  const agent::Assign first = Assemble();
  machine_.status.placement->epoch = 9;
  machine_.metadata.resource_version = "77";
  machine_.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}";
  EXPECT_EQ(Assemble().hash(), first.hash());
  EXPECT_EQ(Assemble().placement(), 9);
  machine_.metadata.labels["a"] = "x";
  EXPECT_NE(Assemble().hash(), first.hash());
  EXPECT_EQ(Assemble().SerializeAsString().find("last-applied"), std::string::npos);
}

TEST_F(BodiesTest, D14_ARestoreNamesTheSnapshotAsItsRuntimeKnowsIt) {
  volume_.status.placement = apis::core::PlacementStatus{.pool_uid = "p", .epoch = 1};
  volume_.status.state = "Pending";
  volume_.spec.encryption.reset();
  volume_.spec.data_source.emplace();
  volume_.spec.data_source->volume_snapshot_ref =
      apis::core::LocalObjectReference{.name = "nightly"};
  const auto body = [this] {
    return Assemble(meta::Object::Of(apis::storage::kVolumeKind, volume_)).volume();
  };
  EXPECT_EQ(body().snapshot_handle(), "");
  ASSERT_EQ(body().missing_size(), 1) << "it waits for the snapshot";
  apis::storage::VolumeSnapshot snapshot;
  snapshot.metadata.name = "nightly";
  Have("nightly", meta::Object::Of(apis::storage::kVolumeSnapshotKind, snapshot));
  EXPECT_EQ(body().snapshot_handle(), "") << "the object's name says nothing to a runtime";
  snapshot.status.snapshot_id = "snap-77";
  snapshot.status.state = "Ready";
  Have("nightly", meta::Object::Of(apis::storage::kVolumeSnapshotKind, snapshot));
  EXPECT_EQ(body().snapshot_handle(), "snap-77");
  EXPECT_EQ(body().missing_size(), 0);
}

TEST_F(BodiesTest, ARestoreSaysWhatIsWrongWithItsSnapshot) {
  volume_.status.placement =
      apis::core::PlacementStatus{.pool = "disks", .pool_uid = "p", .epoch = 1};
  volume_.status.state = "Pending";
  volume_.spec.encryption.reset();
  volume_.spec.resources["storage"] = meta::Quantity(1000);
  volume_.spec.data_source.emplace();
  volume_.spec.data_source->volume_snapshot_ref =
      apis::core::LocalObjectReference{.name = "nightly"};
  apis::storage::VolumeSnapshot snapshot;
  snapshot.status.snapshot_id = "snap-77";
  snapshot.status.state = "Ready";
  snapshot.status.size = meta::Quantity(1000);
  snapshot.status.placement =
      apis::core::PlacementStatus{.pool = "disks", .pool_uid = "p", .epoch = 1};
  const auto missing = [&](const std::function<void(apis::storage::VolumeSnapshot&)>& change) {
    apis::storage::VolumeSnapshot changed = snapshot;
    change(changed);
    Have("nightly", meta::Object::Of(apis::storage::kVolumeSnapshotKind, changed));
    const auto body = Assemble(meta::Object::Of(apis::storage::kVolumeKind, volume_)).volume();
    EXPECT_EQ(body.snapshot_handle().empty(), body.missing_size() != 0);
    return body.missing_size() == 0 ? std::string() : body.missing(0);
  };
  EXPECT_EQ(missing([](auto&) {}), "");
  EXPECT_EQ(missing([](auto& s) { s.status.state = "Failed"; }),
            "volume snapshot nightly is not ready");
  EXPECT_EQ(missing([](auto& s) { s.metadata.deletion_timestamp.emplace(); }),
            "volume snapshot nightly is being deleted");
  EXPECT_EQ(missing([](auto& s) { s.status.placement->pool_uid = s.status.placement->pool = "q"; }),
            "volume snapshot nightly is on pool q, not on disks");
  EXPECT_EQ(missing([](auto& s) { s.status.size = meta::Quantity(1001); }),
            "spec.resources[storage] is 1k, volume snapshot nightly needs 1001");
  world_.clear();
  const auto gone = [this] {
    return Assemble(meta::Object::Of(apis::storage::kVolumeKind, volume_)).volume();
  };
  ASSERT_EQ(gone().missing_size(), 1);
  EXPECT_EQ(gone().missing(0), "volume snapshot nightly does not exist");
  volume_.status.state = "Available";
  EXPECT_EQ(gone().missing_size(), 0) << "a volume that was made does not need it any more";
}

TEST_F(BodiesTest, ACopyNamesItsSourceOrSaysWhatIsWrongWithIt) {
  const apis::core::PlacementStatus place{.pool = "disks", .pool_uid = "p", .epoch = 1};
  Volume copy;
  copy.metadata.name = "copy";
  copy.metadata.uid = "c-uid";
  copy.status.placement = place;
  copy.status.state = "Pending";
  copy.spec.resources["storage"] = meta::Quantity(1000);
  copy.spec.data_source.emplace().volume_ref = apis::core::LocalObjectReference{.name = "data"};
  volume_.status.placement = place;
  volume_.status.state = "Available";
  volume_.status.volume_id = "test://v-7";
  volume_.status.resources["storage"] = meta::Quantity(1000);
  const auto body = [&] {
    return Assemble(meta::Object::Of(apis::storage::kVolumeKind, copy)).volume();
  };
  const auto missing = [&](const std::function<void(Volume&)>& change) {
    Volume changed = volume_;
    change(changed);
    Have("data", meta::Object::Of(apis::storage::kVolumeKind, changed));
    EXPECT_EQ(body().snapshot_handle(), body().missing_size() == 0 ? "test://v-7" : "");
    return body().missing_size() == 0 ? std::string() : body().missing(0);
  };
  EXPECT_EQ(missing([](auto&) {}), "");
  EXPECT_EQ(missing([](auto& v) { v.status.state = "Pending"; }),
            "volume data is not available yet");
  EXPECT_EQ(missing([](auto& v) { v.metadata.deletion_timestamp.emplace(); }),
            "volume data is being deleted");
  EXPECT_EQ(missing([](auto& v) {
              v.metadata.deletion_timestamp.emplace();
              v.metadata.finalizers.emplace_back(apis::core::kInUseFinalizer);
            }),
            "")
      << "its deletion waits for the copy";
  EXPECT_EQ(missing([](auto& v) { v.status.placement->pool_uid = "q"; }),
            "volume data is not on pool disks any more");
  EXPECT_EQ(missing([](auto& v) { v.status.resources["storage"] = meta::Quantity(1001); }),
            "spec.resources[storage] is 1k, volume data needs 1001");
  EXPECT_FALSE(asked_.contains("crypt")) << "the secrets of the source are not the copy's";
  world_.clear();
  ASSERT_EQ(body().missing_size(), 1);
  EXPECT_EQ(body().missing(0), "volume data does not exist");
  copy.status.state = "Available";
  EXPECT_EQ(body().missing_size(), 0) << "a volume that was made does not need it any more";
}

TEST_F(BodiesTest, ASnapshotIsTakenOfTheVolumeOnItsPoolOnceThatIsAvailable) {
  apis::storage::VolumeSnapshot snapshot;
  snapshot.metadata.name = "nightly";
  snapshot.metadata.uid = "s-uid";
  snapshot.metadata.labels["tier"] = "gold";
  snapshot.spec.volume_ref.name = "data";
  snapshot.status.placement =
      apis::core::PlacementStatus{.pool = "disks", .pool_uid = "p", .epoch = 3};
  const auto body = [&] {
    const agent::Assign assign =
        Assemble(meta::Object::Of(apis::storage::kVolumeSnapshotKind, snapshot));
    EXPECT_EQ(assign.kind(), "VolumeSnapshot");
    EXPECT_EQ(assign.placement(), 3);
    return assign.snapshot();
  };
  ASSERT_EQ(body().missing_size(), 1);
  EXPECT_EQ(body().missing(0), "volume data does not exist");
  volume_.status.volume_id = "files://v-1";
  volume_.status.placement =
      apis::core::PlacementStatus{.pool = "disks", .pool_uid = "p", .epoch = 1};
  HaveAll();
  EXPECT_EQ(body().missing_size(), 0);
  EXPECT_EQ(body().volume_handle(), "files://v-1");
  EXPECT_EQ(body().volume_uid(), "v-uid");
  EXPECT_EQ(body().labels().at("tier"), "gold");
  EXPECT_EQ(asked_.count("crypt"), 0U) << "it needs no key";
  volume_.status.state = "Pending";
  HaveAll();
  EXPECT_EQ(body().missing(0), "volume data is not available yet");
  EXPECT_EQ(body().volume_handle(), "");
  volume_.status.placement->pool_uid = "elsewhere";
  HaveAll();
  EXPECT_EQ(body().missing(0), "volume data is not on pool disks any more");
  world_.clear();
  snapshot.status.state = "Ready";
  EXPECT_EQ(body().missing_size(), 0) << "what was taken outlives its volume";
}

TEST_F(BodiesTest, P9_APullSecretGoesAlongForTheRegistriesOfTheImages) {
  apis::compute::MachineVolume disk;
  disk.name = "root";
  disk.local_disk.emplace().image = "demo";
  machine_.spec.volumes.push_back(disk);
  machine_.spec.image_pull_secret_ref = apis::core::LocalObjectReference{.name = "pull"};
  EXPECT_EQ(Assemble().machine().missing_size(), 0) << "an image of the host needs none";
  EXPECT_TRUE(asked_.empty());
  machine_.spec.volumes[0].local_disk->image = "a.example/os/demo:1";
  ASSERT_EQ(Assemble().machine().missing_size(), 1);
  EXPECT_EQ(Assemble().machine().missing(0), "secret pull does not exist");
  Secret secret;
  secret.metadata.name = "pull";
  secret.type = "kubernetes.io/dockerconfigjson";
  secret.data[".dockerconfigjson"].bytes =
      R"({"auths":{"a.example":{"auth":"YTph"},"b.example":{"auth":"YjpiYg=="}}})";
  Have("pull", meta::Object::Of(apis::k8s::kSecretKind, secret));
  const agent::Assign assign = Assemble();
  EXPECT_EQ(assign.machine().missing_size(), 0);
  EXPECT_EQ(assign.machine().image_pull_secret(), R"({"auths":{"a.example":{"auth":"YTph"}}})");
  secret.data[".dockerconfigjson"].bytes = R"({"auths":{"a.example":{"auth":"YTpi"}}})";
  Have("pull", meta::Object::Of(apis::k8s::kSecretKind, secret));
  EXPECT_NE(Assemble().hash(), assign.hash()) << "a Secret that is rotated is followed";
}

TEST_F(BodiesTest, D17_NothingIsReadThatIsNotNamed) {
  HaveAll();
  Assemble();
  EXPECT_TRUE(asked_.empty());
}

}  // namespace
}  // namespace berth::gateway
