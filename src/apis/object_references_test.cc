// SPDX-License-Identifier: Apache-2.0
// Defends the list of what each kind names, and which of it is thereby in use.
#include "apis/object_references.h"

#include <gtest/gtest.h>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/well_known.h"
#include "apis/ipam/prefix_allocation.h"
#include "apis/networking/network.h"
#include "apis/networking/network_interface.h"
#include "apis/networking/network_policy.h"
#include "apis/placement.h"
#include "apis/registry.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apis/testing/rules_of.h"

namespace berth::apis {
namespace {

template <class T>
std::vector<std::string> Listed(std::string_view json) {
  std::vector<std::string> lines;
  const auto object = meta::Object::Of(KindOf<T>(), testing::Parse<T>(json));
  for (const Reference& reference : ReferencesOf(object)) {
    lines.push_back(reference.field + " -> " + std::string(reference.kind->kind) + " " +
                    reference.namespace_ + "/" + reference.name +
                    (reference.hold == Hold::kInUse ? " in use" : ""));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(ObjectReferences, MachinesNameClassPoolVolumesInterfacesAndSecrets) {
  EXPECT_EQ(
      Listed<compute::Machine>(R"({
        "metadata": {"namespace": "ns"},
        "spec": {
          "machineClassRef": {"name": "c"}, "machinePoolRef": {"name": "p"},
          "ignitionRef": {"name": "ign"},
          "networkInterfaces": [
            {"name": "a", "networkInterfaceRef": {"name": "nic"}},
            {"name": "b", "ephemeral": {"networkInterfaceTemplate": {"spec": {
              "networkRef": {"name": "net"}, "ipFamilies": [], "ips": []}}}}],
          "volumes": [
            {"name": "a", "volumeRef": {"name": "vol"}},
            {"name": "b", "ephemeral": {"volumeTemplate": {"spec": {
              "volumeClassRef": {"name": "vc"}}}}}]}})"),
      (Lines{
          "spec.machineClassRef -> MachineClass /c in use",
          "spec.machinePoolRef -> MachinePool /p",
          "spec.networkInterfaces[0].networkInterfaceRef -> NetworkInterface ns/nic",
          "spec.networkInterfaces[1].ephemeral.networkInterfaceTemplate.spec.networkRef -> "
          "Network ns/net in use",
          "spec.volumes[0].volumeRef -> Volume ns/vol",
          "spec.volumes[1].ephemeral.volumeTemplate.spec.volumeClassRef -> VolumeClass /vc in use",
          "spec.ignitionRef -> Secret ns/ign",
      }));
}

TEST(ObjectReferences, StorageNamesClassesPoolsSecretsAndSnapshots) {
  EXPECT_EQ(Listed<storage::Volume>(R"({
              "metadata": {"namespace": "ns"},
              "spec": {"volumeClassRef": {"name": "c"}, "claimRef": {"name": "m", "uid": "1"},
                       "encryption": {"secretRef": {"name": "key"}},
                       "dataSource": {"volumeSnapshotRef": {"name": "snap"}}}})"),
            (Lines{"spec.volumeClassRef -> VolumeClass /c in use",
                   "spec.claimRef -> Machine ns/m",
                   "spec.encryption.secretRef -> Secret ns/key",
                   "spec.dataSource.volumeSnapshotRef -> VolumeSnapshot ns/snap"}));
  // Who has the copy may not read what the source names, its secrets for example.
  EXPECT_EQ(Listed<storage::Volume>(R"({
              "metadata": {"namespace": "ns"},
              "spec": {"volumeClassRef": {"name": "c"},
                       "dataSource": {"volumeRef": {"name": "data"}}}})"),
            (Lines{"spec.volumeClassRef -> VolumeClass /c in use"}));
  EXPECT_EQ(Listed<storage::Bucket>(
                R"({"spec": {"bucketClassRef": {"name": "c"}, "bucketPoolRef": {"name": "p"}}})"),
            (Lines{"spec.bucketClassRef -> BucketClass /c in use",
                   "spec.bucketPoolRef -> BucketPool /p"}));
}

TEST(ObjectReferences, PeersAreNamedInTheirOwnNamespace) {
  EXPECT_EQ(Listed<networking::Network>(R"({
              "metadata": {"namespace": "ns"},
              "spec": {"incomingPeerings": [{"name": "a"}, {"name": "b", "namespace": "x"}]}})"),
            (Lines{"spec.incomingPeerings[0] -> Network ns/a in use",
                   "spec.incomingPeerings[1] -> Network x/b in use"}));
}

TEST(ObjectReferences, PoliciesDoNotKeepANetwork) {
  EXPECT_EQ(Listed<networking::NetworkPolicy>(R"({
              "metadata": {"namespace": "ns"},
              "spec": {"networkRef": {"name": "a"}, "networkInterfaceSelector": {}}})"),
            (Lines{"spec.networkRef -> Network ns/a"}));
  EXPECT_EQ(Listed<ipam::PrefixAllocation>(R"({"metadata": {"namespace": "ns"},
                                               "spec": {"prefixRef": {"name": "p"}}})"),
            (Lines{"spec.prefixRef -> Prefix ns/p in use"}));
}

TEST(ObjectReferences, FinalizersKeepWhatIsInUse) {
  EXPECT_EQ(InUseFinalizer(compute::kMachineClassKind), core::kMachineClassFinalizer);
  EXPECT_EQ(InUseFinalizer(networking::kNetworkKind), core::kInUseFinalizer);
  EXPECT_EQ(InUseFinalizer(storage::kVolumeKind), core::kInUseFinalizer);
  EXPECT_EQ(InUseFinalizer(compute::kMachineKind), "");
}

TEST(ObjectReferences, R4_6_AMachineHasThePartsThatItAsksForOrStillReports) {
  const auto machine = meta::Object::Of(compute::kMachineKind, testing::Parse<compute::Machine>(R"({
      "metadata": {"namespace": "ns", "name": "m"},
      "spec": {"volumes": [{"name": "a", "volumeRef": {"name": "data"}},
                           {"name": "root", "ephemeral": {}}],
               "networkInterfaces": [{"name": "x", "networkInterfaceRef": {"name": "nic"}},
                                     {"name": "eth0", "ephemeral": {}}]},
      "status": {"volumes": [{"name": "old", "volumeRef": {"name": "unplugged"}}]}})"));
  const auto names = [&](const meta::KindInfo& kind, const std::string& name) {
    meta::Object part(kind);
    part.metadata().name = name;
    return NamesPart(machine, part);
  };
  for (const char* name : {"data", "m-root", "unplugged"}) {
    EXPECT_TRUE(names(storage::kVolumeKind, name)) << name;
    EXPECT_FALSE(names(networking::kNetworkInterfaceKind, name)) << name;
  }
  for (const char* name : {"nic", "m-eth0"}) {
    EXPECT_TRUE(names(networking::kNetworkInterfaceKind, name)) << name;
    EXPECT_FALSE(names(storage::kVolumeKind, name)) << name;
  }
}

TEST(ObjectReferences, R4_6_GoneIsWhatIsDeletedAndNoHostHas) {
  meta::ObjectMeta metadata;
  EXPECT_FALSE(IsGone(metadata)) << "it is not even deleted";
  metadata.deletion_timestamp = WallTime::FromSeconds(1);
  metadata.finalizers = {"foregroundDeletion", "example.com/hold"};
  EXPECT_TRUE(IsGone(metadata));
  for (const std::string_view finalizer : {kPlacementFinalizer,
                                           core::kMachineFinalizer,
                                           core::kVolumeFinalizer,
                                           core::kInUseFinalizer}) {
    metadata.finalizers = {"foregroundDeletion", std::string(finalizer)};
    EXPECT_FALSE(IsGone(metadata)) << finalizer;
  }
}

}  // namespace
}  // namespace berth::apis
