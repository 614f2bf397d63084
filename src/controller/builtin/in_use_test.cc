// SPDX-License-Identifier: Apache-2.0
// In-use protection (PROTOCOL 4.6): what a machine uses stays, however it is deleted, until the
// machine is gone; and then it goes by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apis/core/well_known.h"
#include "apis/k8s/event.h"
#include "apis/k8s/namespace.h"
#include "apis/k8s/secret.h"
#include "apis/networking/network.h"
#include "apis/networking/network_interface.h"
#include "apis/object_references.h"
#include "apiserver/registry/placement_world.h"
#include "controller/builtin/builtin_controllers.h"
#include "meta/at_rest.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::kNetworkKind;
using apis::networking::NetworkInterface;
using apis::storage::kVolumeKind;
using apis::storage::Volume;
using apiserver::PlacementWorld;
using meta::Object;

class InUseTest : public testing::Test {
 protected:
  InUseTest() {
    pool_ = world_.MakePool("pool", 8);
    StartControllers();
  }
  ~InUseTest() override { StopControllers(); }

  void StartControllers() {
    scope_.emplace(world_.loop());
    controllers_ =
        std::make_unique<BuiltinControllers>(world_.loop(), world_.client(), world_.scheme());
    scope_->Spawn("controllers", controllers_->Run());
  }
  void StopControllers() {
    if (controllers_ == nullptr) return;
    EXPECT_TRUE(world_.Run(scope_->Close()).ok());
    controllers_.reset();
    scope_.reset();
  }
  void Settle() { world_.loop().RunFor(Duration::Seconds(10)); }
  // Ends within what a person would call at once.
  bool Soon(const std::function<bool()>& done) {
    for (int i = 0; i < 100; ++i) {
      if (done()) return true;
      world_.loop().RunFor(Duration::Millis(20));
    }
    return false;
  }

  // In the namespace of this test.
  Object Make(Object object) {
    object.metadata().namespace_ = space_;
    return PlacementWorld::Must(world_.Run(world_.client().Create(std::move(object), {})));
  }
  Object MakeVolume(const std::string& name, const std::string& key = "") {
    Volume volume;
    volume.metadata.name = name;
    volume.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
    volume.spec.resources["storage"] = meta::Quantity(10);
    if (!key.empty()) volume.spec.encryption.emplace().secret_ref.name = key;
    return Make(Object::Of(kVolumeKind, std::move(volume)));
  }
  // From now on everything is made in a namespace that can be deleted.
  Object UseNewNamespace() {
    world_.MakeNamespace("team");
    space_ = "team";
    return PlacementWorld::Must(
        world_.Run(world_.client().Get(apis::k8s::kNamespaceKind, {"", "team"})));
  }
  Object MakeSecret(const std::string& name) {
    apis::k8s::Secret secret;
    secret.metadata.name = name;
    return Make(Object::Of(apis::k8s::kSecretKind, std::move(secret)));
  }
  Object MakeNetwork(const std::string& name) {
    apis::networking::Network network;
    network.metadata.name = name;
    return Make(Object::Of(kNetworkKind, std::move(network)));
  }
  // As the gateway claims it.
  Object MakeNic(const std::string& name, const Object& machine) {
    NetworkInterface nic;
    nic.metadata.name = name;
    nic.spec.network_ref.name = "net";
    nic.spec.ip_families = {"IPv4"};
    nic.spec.ips.emplace_back().value = *meta::IpAddress::Parse("10.0.0.1");
    nic.spec.machine_ref = apis::core::LocalUidReference{.name = machine.metadata().name,
                                                         .uid = machine.metadata().uid};
    return Make(Object::Of(kNetworkInterfaceKind, std::move(nic)));
  }
  static Object MachineWithNic(const std::string& name, const std::string& nic) {
    Object machine = PlacementWorld::Machine(name);
    auto& item = machine.as<Machine>().spec.network_interfaces.emplace_back();
    item.name = "eth0";
    item.network_interface_ref = apis::core::LocalObjectReference{.name = nic};
    return machine;
  }
  // The machine with the disk "data", bound, so that the claim is its own.
  Object BindWithVolume(const std::string& name) {
    Object machine = world_.MakeMachine(name, {"data"});
    auto bound = world_.Bind(machine, "pool", pool_);
    CHECK(bound.ok()) << bound.status();
    return bound->front();
  }
  Object Bind(Object machine) {
    auto bound = world_.Bind(Make(std::move(machine)), "pool", pool_);
    CHECK(bound.ok()) << bound.status();
    return bound->front();
  }
  // Its host says that it is rid of it.
  void SayGone(const Object& machine) {
    const Status unbound = world_.Unbind(machine, apis::EpochOf(world_.Read(machine)));
    CHECK(unbound.ok()) << unbound;
  }
  Status DeleteForeground(const Object& object) {
    client::DeleteOptions options;
    options.propagation = client::Propagation::kForeground;
    return world_.Run(world_.client().Delete(
        object.kind(), {object.metadata().namespace_, object.metadata().name}, options));
  }
  // Deletes it; it waits for the user, and says so in an event.
  void ExpectDeferred(const Object& object, const std::string& user) {
    ASSERT_TRUE(world_.Delete(object).ok());
    Settle();
    ASSERT_TRUE(world_.Exists(object));
    const Object waiting = world_.Read(object);
    EXPECT_TRUE(waiting.metadata().deletion_timestamp.has_value());
    const auto& annotations = waiting.metadata().annotations;
    const auto said = annotations.find(std::string(apis::core::kUsedByAnnotation));
    ASSERT_NE(said, annotations.end());
    EXPECT_EQ(said->second, user);
    const auto events = world_.Run(world_.client().List(apis::k8s::kCoreEventKind, {}));
    ASSERT_TRUE(events.ok());
    size_t told = 0;
    for (const Object& item : events->items) {
      const auto& event = item.as<apis::k8s::CoreEvent>();
      if (event.involved_object.uid != object.metadata().uid) continue;
      if (event.reason != "DeletionDeferred") continue;
      EXPECT_NE(event.message.find("used by " + user), std::string::npos) << event.message;
      ++told;
    }
    EXPECT_EQ(told, 1U) << "once, however long it waits";
  }
  void ExpectGoesSoon(const Object& object) {
    EXPECT_TRUE(Soon([&] { return !world_.Exists(object); })) << object.metadata().name;
  }

  PlacementWorld world_{31};
  std::string pool_;
  std::string space_ = "default";
  std::optional<rt::TaskScope> scope_;
  std::unique_ptr<BuiltinControllers> controllers_;
};

TEST_F(InUseTest, R4_6_AVolumeStaysUntilItsCopyIsThere) {
  const std::string disks = world_.MakeVolumePool("disks", 100);
  const Object source = MakeVolume("data");
  Volume draft;
  draft.metadata.name = "copy";
  draft.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
  draft.spec.resources["storage"] = meta::Quantity(10);
  draft.spec.data_source.emplace().volume_ref = apis::core::LocalObjectReference{.name = "data"};
  const Object copy = Make(Object::Of(kVolumeKind, std::move(draft)));
  const auto bind = [&](const Object& volume) {
    const client::BindItem item =
        PlacementWorld::ItemFor(volume, "disks", disks, {{"storage", 10}});
    const auto bound = world_.Bind(PlacementWorld::RequestFor({item}));
    CHECK(bound.ok()) << bound.status();
  };
  bind(source);
  bind(copy);
  ExpectDeferred(source, "volume copy");
  Object made = world_.Read(copy);
  made.as<Volume>().status.state = "Available";
  client::WriteOptions status;
  status.subresource = client::Subresource::kStatus;
  ASSERT_TRUE(world_.Run(world_.client().Update(std::move(made), status)).ok());
  ASSERT_TRUE(Soon([&] {
    const Object now = world_.Read(source);
    const auto& finalizers = now.metadata().finalizers;
    return std::ranges::find(finalizers, apis::core::kInUseFinalizer) == finalizers.end();
  }));
  SayGone(source);
  EXPECT_TRUE(Soon([&] { return !world_.Exists(source); }));
}

TEST_F(InUseTest, R4_6_AVolumeStaysUntilItsMachineIsGone) {
  const Object volume = MakeVolume("data");
  const Object machine = BindWithVolume("web");
  ExpectDeferred(volume, "machine web");
  ASSERT_TRUE(world_.Delete(machine).ok());
  Settle();
  EXPECT_TRUE(world_.Exists(volume)) << "the host may still run the machine";
  SayGone(machine);
  ExpectGoesSoon(volume);
  EXPECT_FALSE(world_.Exists(machine));
}

// ADR 0038: a name that is none comes from the store, where anybody may have written it.
TEST_F(InUseTest, WhatIsNamedOtherwiseThanItsKeyStopsNobody) {
  for (const meta::KindInfo* kind :
       {&kVolumeKind, &kNetworkInterfaceKind, &kNetworkKind, &apis::k8s::kSecretKind}) {
    Object odd(*kind);
    odd.metadata().namespace_ = "default";
    odd.metadata().name = "a/b";
    odd.metadata().uid = "odd";
    odd.metadata().deletion_timestamp = world_.loop().WallNow();
    odd.metadata().finalizers = {std::string(apis::InUseFinalizer(*kind))};
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(world_.cache().Of(*kind).prefix() + "default/noise",
                                     meta::EncodeAtRest(odd)));
    ASSERT_TRUE(world_.Run(world_.store().Commit(std::move(txn))).ok());
  }
  ASSERT_TRUE(world_.Run(world_.cache().CatchUp()).ok());
  const Object volume = MakeVolume("data");
  const Object machine = BindWithVolume("web");
  ExpectDeferred(volume, "machine web");
  // Nor who comes later.
  StopControllers();
  StartControllers();
  ASSERT_TRUE(world_.Delete(machine).ok());
  SayGone(machine);
  ExpectGoesSoon(volume);
}

TEST_F(InUseTest, R4_6_AnInterfaceAndItsNetworkStayUntilTheirMachineIsGone) {
  const Object network = MakeNetwork("net");
  const Object machine = Bind(MachineWithNic("web", "nic"));
  const Object nic = MakeNic("nic", machine);
  ExpectDeferred(network, "machine web");
  ExpectDeferred(nic, "machine web");
  ASSERT_TRUE(world_.Delete(machine).ok());
  Settle();
  EXPECT_TRUE(world_.Exists(nic));
  EXPECT_TRUE(world_.Exists(network));
  SayGone(machine);
  ExpectGoesSoon(nic);
  ExpectGoesSoon(network);
}

TEST_F(InUseTest, R4_6_AnInterfaceThatNoMachineUsesKeepsNoNetwork) {
  const Object network = MakeNetwork("net");
  const Object machine = world_.MakeMachine("web");
  const Object nic = MakeNic("nic", machine);
  ASSERT_TRUE(world_.Delete(network).ok());
  EXPECT_FALSE(world_.Exists(network)) << "the machine does not ask for the interface";
  ASSERT_TRUE(world_.Delete(nic).ok());
  EXPECT_FALSE(world_.Exists(nic));
}

TEST_F(InUseTest, R4_6_AnIgnitionStaysUntilTheLastMachineThatNamesItIsGone) {
  const Object secret = MakeSecret("boot");
  Object first = PlacementWorld::Machine("a");
  first.as<Machine>().spec.ignition_ref.emplace().name = "boot";
  Object second = PlacementWorld::Machine("b");
  second.as<Machine>().spec.ignition_ref.emplace().name = "boot";
  first = Make(std::move(first));
  second = Bind(std::move(second));
  ExpectDeferred(secret, "machine a");
  ASSERT_TRUE(world_.Delete(first).ok());
  Settle();
  ASSERT_TRUE(world_.Exists(secret));
  EXPECT_EQ(
      world_.Read(secret).metadata().annotations.at(std::string(apis::core::kUsedByAnnotation)),
      "machine b")
      << "it says for whom it waits now";
  ASSERT_TRUE(world_.Delete(second).ok());
  SayGone(second);
  ExpectGoesSoon(secret);
}

TEST_F(InUseTest, R4_6_TheKeyOfAVolumeStaysAsLongAsTheVolume) {
  const Object secret = MakeSecret("key");
  const Object volume = MakeVolume("data", "key");
  const Object machine = BindWithVolume("web");
  ExpectDeferred(secret, "volume data");
  ExpectDeferred(volume, "machine web");
  EXPECT_TRUE(world_.Exists(secret)) << "a volume that is deleted and in use needs its key";
  ASSERT_TRUE(world_.Delete(machine).ok());
  SayGone(machine);
  ExpectGoesSoon(volume);
  ExpectGoesSoon(secret);
}

TEST_F(InUseTest, R4_6_WhatNobodyUsesGoesAtOnce) {
  Object machine = PlacementWorld::Machine("web");
  machine.as<Machine>().spec.ignition_ref.emplace().name = "other";
  Make(std::move(machine));
  for (const Object& object : {MakeSecret("free"), MakeVolume("free"), MakeNetwork("free")}) {
    ASSERT_TRUE(world_.Delete(object).ok());
    EXPECT_FALSE(world_.Exists(object)) << object.kind().kind;
  }
}

TEST_F(InUseTest, R4_6_AMachineOfTheSameNameThatCameLaterUsesNothing) {
  const Object volume = MakeVolume("data");
  ASSERT_TRUE(world_.Patch(volume, R"({"spec":{"claimRef":{"name":"web","uid":"gone"}}})").ok());
  world_.MakeMachine("web", {"data"});
  ASSERT_TRUE(world_.Delete(volume).ok());
  EXPECT_FALSE(world_.Exists(volume));
}

TEST_F(InUseTest, R4_6_AVolumeThatItsMachineHasGivenUpGoes) {
  const Object volume = MakeVolume("data");
  const Object machine = BindWithVolume("web");
  ExpectDeferred(volume, "machine web");
  ASSERT_TRUE(world_.Patch(machine, R"({"spec":{"volumes":[]}})").ok());
  ExpectGoesSoon(volume);
}

TEST_F(InUseTest, R4_6_ForegroundDeletionOfAMachineAndItsPartsEnds) {
  Object draft = PlacementWorld::Machine("web");
  auto& disk = draft.as<Machine>().spec.volumes.emplace_back();
  disk.name = "root";
  auto& from = disk.ephemeral.emplace().volume_template.emplace();
  from.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
  from.spec.resources["storage"] = meta::Quantity(10);
  Object machine = Make(std::move(draft));
  const client::ObjectKey part{"default", "web-root"};
  ASSERT_TRUE(Soon([&] { return world_.Run(world_.client().Get(kVolumeKind, part)).ok(); }));
  const Object volume = PlacementWorld::Must(world_.Run(world_.client().Get(kVolumeKind, part)));
  ASSERT_TRUE(world_.Bind(world_.Read(machine), "pool", pool_).ok());
  ASSERT_EQ(world_.Read(volume).as<Volume>().spec.claim_ref->uid, machine.metadata().uid);
  ASSERT_TRUE(DeleteForeground(machine).ok());
  Settle();
  EXPECT_TRUE(world_.Exists(volume)) << "the host may still run the machine";
  EXPECT_TRUE(world_.Exists(machine)) << "its parts go first";
  SayGone(machine);
  ExpectGoesSoon(volume);
  ExpectGoesSoon(machine);
}

TEST_F(InUseTest, R4_6_ForegroundDeletionOfAVolumeThatOwnsItsKeyEnds) {
  const Object volume = MakeVolume("data", "key");
  apis::k8s::Secret key;
  key.metadata.name = "key";
  key.metadata.owner_references = {{.api_version = "storage.ironcore.dev/v1alpha1",
                                    .kind = "Volume",
                                    .name = "data",
                                    .uid = volume.metadata().uid,
                                    .controller = {},
                                    .block_owner_deletion = true}};
  const Object secret = Make(Object::Of(apis::k8s::kSecretKind, std::move(key)));
  Settle();
  ASSERT_TRUE(DeleteForeground(volume).ok());
  ExpectGoesSoon(secret);
  ExpectGoesSoon(volume);
}

TEST_F(InUseTest, R4_6_DeletionOfANamespaceWaitsForItsMachinesAndEnds) {
  const Object space = UseNewNamespace();
  const Object volume = MakeVolume("data");
  const Object secret = MakeSecret("boot");
  const Object network = MakeNetwork("net");
  Object draft = MachineWithNic("web", "nic");
  auto& spec = draft.as<Machine>().spec;
  spec.ignition_ref.emplace().name = "boot";
  auto& disk = spec.volumes.emplace_back();
  disk.name = "data";
  disk.volume_ref = apis::core::LocalObjectReference{.name = "data"};
  const Object machine = Bind(std::move(draft));
  const Object nic = MakeNic("nic", machine);
  ASSERT_TRUE(world_.Delete(space).ok());
  Settle();
  for (const Object& object : {space, volume, secret, network, nic, machine}) {
    EXPECT_TRUE(world_.Exists(object)) << object.kind().kind;
  }
  SayGone(machine);
  for (const Object& object : {volume, secret, network, nic, machine}) ExpectGoesSoon(object);
  Settle();
  EXPECT_FALSE(world_.Exists(space));
}

TEST_F(InUseTest, R4_6_ANamespaceOutlivesWhatItsDeletionHasToWaitFor) {
  // Nothing but the deletion itself makes these stay: a first look finds no finalizer.
  const Object space = UseNewNamespace();
  const Object secret = MakeSecret("boot");
  Object draft = PlacementWorld::Machine("web");
  draft.as<Machine>().spec.ignition_ref.emplace().name = "boot";
  draft.metadata().finalizers = {std::string(apis::core::kMachineFinalizer)};
  const Object machine = Make(std::move(draft));
  ASSERT_TRUE(world_.Delete(space).ok());
  Settle();
  EXPECT_TRUE(world_.Exists(secret));
  EXPECT_TRUE(world_.Exists(space));
  ASSERT_TRUE(world_.Patch(machine, R"({"metadata":{"finalizers":null}})").ok());
  Settle();
  EXPECT_FALSE(world_.Exists(secret));
  EXPECT_FALSE(world_.Exists(space));
}

TEST_F(InUseTest, R4_6_ARestartInBetweenChangesNothing) {
  const Object volume = MakeVolume("data");
  const Object secret = MakeSecret("boot");
  Object draft = PlacementWorld::Machine("web", {"data"});
  draft.as<Machine>().spec.ignition_ref.emplace().name = "boot";
  const Object machine = Bind(std::move(draft));
  ASSERT_TRUE(world_.Delete(volume).ok());
  ASSERT_TRUE(world_.Delete(secret).ok());
  Settle();
  StopControllers();
  world_.Restart();
  ASSERT_TRUE(world_.Delete(machine).ok());
  SayGone(machine);
  ASSERT_FALSE(world_.Exists(machine));
  EXPECT_TRUE(world_.Exists(volume)) << "nobody was there to see it";
  StartControllers();
  ExpectGoesSoon(volume);
  ExpectGoesSoon(secret);
}

TEST_F(InUseTest, R4_5_R4_6_ForceWaitsForNobody) {
  const Object volume = MakeVolume("data");
  const Object machine = BindWithVolume("web");
  ExpectDeferred(volume, "machine web");
  ASSERT_TRUE(world_.Delete(volume, client::Force::kYes).ok());
  EXPECT_FALSE(world_.Exists(volume));
  EXPECT_TRUE(world_.Exists(machine));
}

TEST_F(InUseTest, R4_5_R4_6_AMachineThatIsDeletedByForceUsesNothing) {
  const Object volume = MakeVolume("data");
  const Object machine = BindWithVolume("web");
  ExpectDeferred(volume, "machine web");
  ASSERT_TRUE(world_.Delete(machine, client::Force::kYes).ok());
  EXPECT_FALSE(world_.Exists(machine));
  ExpectGoesSoon(volume);
}

TEST_F(InUseTest, R4_6_ADryRunOfADeletionMarksNothing) {
  const Object volume = MakeVolume("data");
  BindWithVolume("web");
  client::DeleteOptions options;
  options.dry_run = client::DryRun::kYes;
  ASSERT_TRUE(world_.Run(world_.client().Delete(kVolumeKind, {"default", "data"}, options)).ok());
  EXPECT_TRUE(world_.Read(volume).metadata().finalizers.empty());
}

}  // namespace
}  // namespace berth::controller
