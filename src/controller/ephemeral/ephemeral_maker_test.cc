// SPDX-License-Identifier: Apache-2.0
// What a machine's templates ask for is made, kept apart from what is others', and goes with it.
#include "controller/ephemeral/ephemeral_maker.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "apis/compute/machine_class.h"
#include "apis/core/well_known.h"
#include "apis/k8s/event.h"
#include "apis/networking/network_interface.h"
#include "apis/storage/volume.h"
#include "apiserver/registry/registry_world.h"
#include "client/cache/informer.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::NetworkInterface;
using apis::storage::kVolumeKind;
using apis::storage::Volume;

class EphemeralMakerTest : public testing::Test {
 protected:
  EphemeralMakerTest() {
    world_.MakeNamespace("team");
    Start();
  }
  ~EphemeralMakerTest() override { Stop(); }
  void Start() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    maker_ = std::make_unique<EphemeralMaker>(world_.loop(), world_.client(), world_.scheme());
    scope_->Spawn("ephemeral", maker_->Run());
  }
  void Stop() { EXPECT_TRUE(world_.Run(scope_->Close()).ok()); }

  static apis::storage::VolumeSpec OneGib() {
    apis::storage::VolumeSpec spec;
    spec.volume_class_ref.emplace().name = "fast";
    spec.resources["storage"] = *meta::Quantity::Parse("1Gi");
    return spec;
  }
  static Machine Db() {
    Machine machine;
    machine.metadata.namespace_ = "team";
    machine.metadata.name = "db";
    machine.spec.machine_class_ref.name = "small";
    machine.spec.machine_pool_selector = {{std::string(apis::core::kZoneLabel), "a"}};
    auto& volume = machine.spec.volumes.emplace_back();
    volume.name = "data";
    auto& from = volume.ephemeral.emplace().volume_template.emplace();
    from.metadata.labels = {{"of", "db"}};
    from.spec = OneGib();
    auto& nic = machine.spec.network_interfaces.emplace_back();
    nic.name = "lan";
    auto& nic_from = nic.ephemeral.emplace().network_interface_template.emplace();
    nic_from.spec.network_ref.name = "net";
    nic_from.spec.ip_families = {"IPv4"};
    auto& ip = nic_from.spec.ips.emplace_back();
    ip.value = *meta::IpAddress::Parse("10.0.0.5");
    return machine;
  }
  meta::Object Make(meta::Object object) {
    auto made = world_.Run(world_.client().Create(std::move(object), {}));
    CHECK(made.ok()) << made.status();
    return *std::move(made);
  }
  std::optional<meta::Object> Find(const meta::KindInfo& kind, const std::string& name) {
    auto found = world_.Run(world_.client().Get(kind, {"team", name}));
    if (!found.ok()) return std::nullopt;
    return *std::move(found);
  }
  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < 1000; ++i) {
      if (done()) return true;
      world_.loop().RunFor(Duration::Millis(20));
    }
    return false;
  }
  bool HasEvent(const std::string& reason) {
    const auto list = world_.Run(world_.client().List(apis::k8s::kCoreEventKind, {}));
    EXPECT_TRUE(list.ok()) << list.status();
    for (const auto& item : list->items) {
      if (item.as<apis::k8s::CoreEvent>().reason == reason) return true;
    }
    return false;
  }

  apiserver::RegistryWorld world_{11};
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<EphemeralMaker> maker_;
};

TEST_F(EphemeralMakerTest, R6_2_PartsAreMadeOwnedAndNamedAfterTheirMachine) {
  const meta::Object machine = Make(meta::Object::Of(kMachineKind, Db()));
  ASSERT_TRUE(Until([&] {
    return Find(kVolumeKind, "db-data").has_value() &&
           Find(kNetworkInterfaceKind, "db-lan").has_value();
  }));
  const auto volume = Find(kVolumeKind, "db-data")->as<Volume>();
  EXPECT_EQ(volume.metadata.labels.at("of"), "db");
  EXPECT_EQ(EphemeralOwnerOf(volume.metadata), machine.metadata().uid);
  EXPECT_EQ(volume.spec.volume_pool_selector.at(std::string(apis::core::kZoneLabel)), "a");
  EXPECT_FALSE(volume.spec.claim_ref) << "the binding claims it";
  const auto nic = Find(kNetworkInterfaceKind, "db-lan")->as<NetworkInterface>();
  EXPECT_EQ(nic.spec.machine_ref->uid, machine.metadata().uid);
  EXPECT_EQ(EphemeralOwnerOf(nic.metadata), machine.metadata().uid);
}

TEST_F(EphemeralMakerTest, ANameThatIsTakenIsNeverAdoptedAndTheMachineSaysSo) {
  Volume foreign;
  foreign.metadata.namespace_ = "team";
  foreign.metadata.name = "db-data";
  foreign.spec = OneGib();
  const meta::Object before = Make(meta::Object::Of(kVolumeKind, foreign));
  const meta::Object machine = Make(meta::Object::Of(kMachineKind, Db()));
  ASSERT_TRUE(Until([&] { return HasEvent("VolumeNotReady"); }));
  EXPECT_TRUE(Find(kNetworkInterfaceKind, "db-lan").has_value()) << "the others are made";
  EXPECT_EQ(Find(kVolumeKind, "db-data")->metadata().resource_version,
            before.metadata().resource_version)
      << "left exactly as it was";
  ASSERT_TRUE(world_.Run(world_.client().Delete(kVolumeKind, {"team", "db-data"}, {})).ok());
  ASSERT_TRUE(Until([&] {
    const auto found = Find(kVolumeKind, "db-data");
    return found.has_value() && IsEphemeralPartOf(found->metadata(), machine.metadata().uid);
  }));
}

TEST_F(EphemeralMakerTest, APartThatIsDeletedComesBackAndOneThatIsNotNamedAnyMoreGoes) {
  Make(meta::Object::Of(kMachineKind, Db()));
  ASSERT_TRUE(Until([&] { return Find(kVolumeKind, "db-data").has_value(); }));
  const std::string first = Find(kVolumeKind, "db-data")->metadata().uid;
  ASSERT_TRUE(world_.Run(world_.client().Delete(kVolumeKind, {"team", "db-data"}, {})).ok());
  ASSERT_TRUE(Until([&] {
    const auto found = Find(kVolumeKind, "db-data");
    return found.has_value() && found->metadata().uid != first;
  }));
  const auto patched = world_.Run(world_.client().Patch(
      kMachineKind, {"team", "db"}, client::PatchType::kMerge, R"({"spec":{"volumes":[]}})", {}));
  ASSERT_TRUE(patched.ok()) << patched.status();
  ASSERT_TRUE(Until([&] { return !Find(kVolumeKind, "db-data").has_value(); }));
  EXPECT_TRUE(Find(kNetworkInterfaceKind, "db-lan").has_value());
}

TEST_F(EphemeralMakerTest, AfterARestartNothingIsMadeTwice) {
  Make(meta::Object::Of(kMachineKind, Db()));
  ASSERT_TRUE(Until([&] { return Find(kVolumeKind, "db-data").has_value(); }));
  const auto before = Find(kVolumeKind, "db-data")->metadata();
  Stop();
  Start();
  ASSERT_TRUE(Until([&] { return maker_->idle(); }));
  world_.loop().RunFor(Duration::Seconds(5));
  EXPECT_EQ(Find(kVolumeKind, "db-data")->metadata().resource_version, before.resource_version);
  EXPECT_FALSE(HasEvent("VolumeNotReady"));
}

TEST(EphemeralParts, TheArchitectureOfTheClassIsFilledInWhereTheTemplateSaysNone) {
  Machine machine;
  machine.metadata.name = "m";
  machine.metadata.uid = "u";
  for (const std::string name : {"a", "b"}) {
    auto& volume = machine.spec.volumes.emplace_back();
    volume.name = name;
    auto& source = volume.ephemeral.emplace().volume_template.emplace().spec.data_source.emplace();
    source.os_image.emplace().image = "os";
    if (name == "b") source.os_image->architecture = "arm64";
  }
  const auto parts = EphemeralPartsOf(machine, "amd64");
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].object.as<Volume>().spec.data_source->os_image->architecture, "amd64");
  EXPECT_EQ(parts[1].object.as<Volume>().spec.data_source->os_image->architecture, "arm64");
}

}  // namespace
}  // namespace berth::controller
