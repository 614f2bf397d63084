// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/bodies.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <utility>

#include "apis/compute/host_tie.h"
#include "apis/compute/machine.h"
#include "apis/core/reservation.h"
#include "apis/core/well_known.h"
#include "apis/object_references.h"
#include "apis/placement.h"
#include "apis/storage/bucket.h"
#include "base/strings.h"
#include "gateway/rules/pull_secret.h"
#include "iri/labels.h"
#include "iri/local_disk.h"
#include "pki/digest.h"

namespace berth::gateway {
namespace {

namespace core = apis::core;
using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::compute::MachinePool;
using apis::k8s::kSecretKind;
using apis::k8s::Secret;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::kNetworkKind;
using apis::networking::Network;
using apis::networking::NetworkInterface;
using apis::storage::Bucket;
using apis::storage::kVolumeClassKind;
using apis::storage::kVolumeKind;
using apis::storage::kVolumeSnapshotKind;
using apis::storage::Volume;
using apis::storage::VolumeClass;
using apis::storage::VolumePool;
using apis::storage::VolumeSnapshot;
using MachineVolume = apis::compute::MachineVolume;
using MachineNic = apis::compute::MachineNetworkInterface;

constexpr size_t kHashBytes = 16;
constexpr size_t kArenaBytes = size_t{8} * 1024;
// What is said of one object beside its body, with its proof: names, numbers and hashes.
constexpr size_t kRestBytes = 320;
// What kubectl keeps of the manifest: long, and nothing that a host needs.
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

std::string VolumeNameOf(const Machine& machine, const MachineVolume& volume) {
  if (volume.volume_ref) return volume.volume_ref->name;
  return volume.ephemeral ? machine.metadata.name + "-" + volume.name : std::string();
}

std::string NicNameOf(const Machine& machine, const MachineNic& nic) {
  if (nic.network_interface_ref) return nic.network_interface_ref->name;
  return nic.ephemeral ? machine.metadata.name + "-" + nic.name : std::string();
}

template <class T>
const T* Find(const Parts::Named<T>& named, const std::string& name) {
  const auto found = named.find(name);
  return found != named.end() && found->second ? &*found->second : nullptr;
}

bool IsOwnedBy(const meta::ObjectMeta& metadata, const std::string& uid) {
  return std::ranges::any_of(metadata.owner_references,
                             [&](const auto& owner) { return owner.uid == uid; });
}

// Limits of a guest's disk, as runtimes tell them and as classes of the API name them.
struct Limit {
  std::string_view attribute;
  std::string_view capability;
};
constexpr std::array kLimits = {Limit{iri::kTpsAttribute, core::kTps},
                                Limit{iri::kIopsAttribute, core::kIops}};

bool HasLimits(const Volume& volume) {
  return volume.status.access && std::ranges::any_of(kLimits, [&](const Limit& limit) {
           return volume.status.access->volume_attributes.contains(std::string(limit.attribute));
         });
}

// Collects what is not in the parts yet.
class Wanted {
 public:
  explicit Wanted(const Parts& parts) : parts_(parts) {}

  void Secret(const std::string& name) { Add(parts_.secrets, kSecretKind, name); }
  void Volume(const std::string& name) { Add(parts_.volumes, kVolumeKind, name); }
  void Nic(const std::string& name) { Add(parts_.interfaces, kNetworkInterfaceKind, name); }
  void Network(const std::string& name) { Add(parts_.networks, kNetworkKind, name); }
  void Snapshot(const std::string& name) { Add(parts_.snapshots, kVolumeSnapshotKind, name); }
  void Class(const std::string& name) { Add(parts_.volume_classes, kVolumeClassKind, name); }
  std::vector<Need> Take() { return {needs_.begin(), needs_.end()}; }

 private:
  template <class T>
  void Add(const Parts::Named<T>& named, const meta::KindInfo& kind, const std::string& name) {
    if (!name.empty() && !named.contains(name)) needs_.insert({&kind, name});
  }
  const Parts& parts_;
  std::set<Need> needs_;
};

// The registries for which somebody may need credentials.
std::vector<std::string> ImageRegistries(const Machine& machine) {
  std::vector<std::string> images;
  for (const MachineVolume& item : machine.spec.volumes) {
    if (item.local_disk && !item.local_disk->image.empty())
      images.push_back(item.local_disk->image);
  }
  return RegistriesOf(images);
}
std::vector<std::string> ImageRegistries(const Volume& volume) {
  const auto& source = volume.spec.data_source;
  if (!source || !source->os_image) return {};
  return RegistriesOf(std::vector{source->os_image->image});
}

template <class T>
void AddPullSecretNeed(const T& object, Wanted& wanted) {
  if (!object.spec.image_pull_secret_ref || ImageRegistries(object).empty()) return;
  wanted.Secret(object.spec.image_pull_secret_ref->name);
}

void AddMachineNeeds(const Machine& machine, const Parts& parts, Wanted& wanted) {
  AddPullSecretNeed(machine, wanted);
  if (machine.spec.ignition_ref) wanted.Secret(machine.spec.ignition_ref->name);
  for (const MachineVolume& item : machine.spec.volumes) {
    const std::string name = VolumeNameOf(machine, item);
    wanted.Volume(name);
    const Volume* volume = Find(parts.volumes, name);
    if (volume == nullptr) continue;
    if (volume->status.access && volume->status.access->secret_ref) {
      wanted.Secret(volume->status.access->secret_ref->name);
    }
    if (volume->spec.encryption) wanted.Secret(volume->spec.encryption->secret_ref.name);
    if (volume->spec.volume_class_ref && HasLimits(*volume)) {
      wanted.Class(volume->spec.volume_class_ref->name);
    }
  }
  for (const MachineNic& item : machine.spec.network_interfaces) {
    const std::string name = NicNameOf(machine, item);
    wanted.Nic(name);
    const NetworkInterface* nic = Find(parts.interfaces, name);
    if (nic != nullptr) wanted.Network(nic->spec.network_ref.name);
  }
}

void AddVolumeNeeds(const Volume& volume, Wanted& wanted) {
  AddPullSecretNeed(volume, wanted);
  if (volume.spec.encryption) wanted.Secret(volume.spec.encryption->secret_ref.name);
  if (volume.spec.data_source && volume.spec.data_source->volume_snapshot_ref) {
    wanted.Snapshot(volume.spec.data_source->volume_snapshot_ref->name);
  }
  if (volume.spec.data_source && volume.spec.data_source->volume_ref) {
    wanted.Volume(volume.spec.data_source->volume_ref->name);
  }
}

// What keeps a volume on this pool from beginning with the snapshot, or "".
std::string RefuseSnapshot(const Volume& volume,
                           const std::string& name,
                           const VolumeSnapshot* snapshot) {
  if (snapshot == nullptr) return "volume snapshot " + name + " does not exist";
  if (snapshot->metadata.deletion_timestamp) {
    return "volume snapshot " + name + " is being deleted";
  }
  const auto& status = snapshot->status;
  if (status.state != "Ready" || status.snapshot_id.empty()) {
    return "volume snapshot " + name + " is not ready";
  }
  const auto& here = volume.status.placement;
  const auto& there = status.placement;
  // One without a placement is that of a pool whose poollet speaks the API.
  if (here && there && !there->pool_uid.empty() && here->pool_uid != there->pool_uid) {
    return "volume snapshot " + name + " is on pool " + there->pool + ", not on " + here->pool;
  }
  const auto* size = core::FindResource(volume.spec.resources, core::kStorage);
  if (size != nullptr && status.size && *size < *status.size) {
    return "spec.resources[storage] is " + size->ToString() + ", volume snapshot " + name +
           " needs " + status.size->ToString();
  }
  return {};
}

void AddSnapshotSource(const Volume& volume, const Parts& parts, agent::VolumeBody& body) {
  const std::string& name = volume.spec.data_source->volume_snapshot_ref->name;
  const VolumeSnapshot* snapshot = Find(parts.snapshots, name);
  const std::string missing = RefuseSnapshot(volume, name, snapshot);
  if (missing.empty()) {
    body.set_snapshot_handle(snapshot->status.snapshot_id);
  } else if (volume.status.state != "Available") {
    // Once it was made nobody asks where from.
    body.add_missing(missing);
  }
}

// What keeps a volume on this pool from becoming a copy of the source, or "".
std::string RefuseCopy(const Volume& copy, const std::string& source_name, const Volume* source) {
  const std::string name = "volume " + source_name;
  if (source == nullptr) return name + " does not exist";
  // One whose deletion waits is there until its copies are.
  if (source->metadata.deletion_timestamp && !apis::IsKeptForUser(source->metadata)) {
    return name + " is being deleted";
  }
  const auto& here = copy.status.placement;
  const auto& there = source->status.placement;
  if (!here || !there || there->pool_uid != here->pool_uid) {
    return name + " is not on pool " + (here ? here->pool : std::string()) + " any more";
  }
  const auto& status = source->status;
  if (status.state != "Available" || status.volume_id.empty())
    return name + " is not available yet";
  const auto* size = core::FindResource(copy.spec.resources, core::kStorage);
  const auto* needed = core::FindResource(status.resources, core::kStorage);
  if (size != nullptr && needed != nullptr && *size < *needed) {
    return "spec.resources[storage] is " + size->ToString() + ", " + name + " needs " +
           needed->ToString();
  }
  return {};
}

// A runtime takes the id of a volume where it takes that of a snapshot.
void AddVolumeSource(const Volume& volume, const Parts& parts, agent::VolumeBody& body) {
  const std::string& name = volume.spec.data_source->volume_ref->name;
  const Volume* source = Find(parts.volumes, name);
  const std::string missing = RefuseCopy(volume, name, source);
  if (missing.empty()) {
    body.set_snapshot_handle(source->status.volume_id);
  } else if (volume.status.state != "Available") {
    body.add_missing(missing);
  }
}

// What keeps the snapshot from being taken, or "".
std::string RefuseSource(const VolumeSnapshot& snapshot, const Volume* volume) {
  const std::string name = "volume " + snapshot.spec.volume_ref.name;
  if (volume == nullptr) return name + " does not exist";
  if (volume->metadata.deletion_timestamp) return name + " is being deleted";
  const auto& here = snapshot.status.placement;
  const auto& there = volume->status.placement;
  if (!there || there->pool_uid != here->pool_uid) {
    return name + " is not on pool " + here->pool + " any more";
  }
  if (volume->status.state != "Available" || volume->status.volume_id.empty()) {
    return name + " is not available yet";
  }
  return {};
}

void FillSnapshot(const VolumeSnapshot& snapshot, const Parts& parts, agent::SnapshotBody& body) {
  body.set_generation(snapshot.metadata.generation);
  for (const auto& [key, value] : snapshot.metadata.labels) (*body.mutable_labels())[key] = value;
  const Volume* volume = Find(parts.volumes, snapshot.spec.volume_ref.name);
  const std::string missing = RefuseSource(snapshot, volume);
  if (missing.empty()) {
    body.set_volume_uid(volume->metadata.uid);
    body.set_volume_handle(volume->status.volume_id);
  } else if (snapshot.status.state != "Ready") {
    body.add_missing(missing);
  }
}

// The encryption key, or what is missing.
std::string FillEncryption(const Volume& volume,
                           const Parts& parts,
                           google::protobuf::Map<std::string, std::string>& out) {
  if (!volume.spec.encryption) return {};
  const std::string& name = volume.spec.encryption->secret_ref.name;
  const Secret* secret = Find(parts.secrets, name);
  if (secret == nullptr) return "secret " + name + " does not exist";
  const auto key = secret->data.find(std::string(core::kEncryptionKey));
  if (key == secret->data.end()) {
    return "secret " + name + " has no entry " + std::string(core::kEncryptionKey);
  }
  out[std::string(core::kEncryptionKey)] = key->second.bytes;
  return {};
}

// Of what the runtime's class and that of the API allow the lower one counts (ADR 0042).
void LowerLimits(const Volume& volume, const Parts& parts, agent::VolumeAccess& access) {
  if (!volume.spec.volume_class_ref) return;
  const VolumeClass* found = Find(parts.volume_classes, volume.spec.volume_class_ref->name);
  if (found == nullptr) return;
  for (const Limit& limit : kLimits) {
    const auto attribute = access.mutable_attributes()->find(std::string(limit.attribute));
    const meta::Quantity* allowed = core::FindResource(found->capabilities, limit.capability);
    if (attribute == access.mutable_attributes()->end() || allowed == nullptr) continue;
    const auto given = ParseInt(attribute->second);
    if (!given) continue;  // of a driver that means something else
    const bool is_lower = *given <= 0 || allowed->Value() < *given;
    if (is_lower) attribute->second = std::to_string(allowed->Value());
  }
}

// What keeps the machine from using the volume, or "".
std::string FillAccess(const Volume& volume,
                       const Machine& machine,
                       const Parts& parts,
                       agent::MachineVolume& out) {
  const std::string name = volume.metadata.name;
  if (!volume.spec.claim_ref) return "volume " + name + " is not claimed yet";
  if (volume.spec.claim_ref->uid != machine.metadata.uid) {
    return "volume " + name + " is claimed by machine " + volume.spec.claim_ref->name;
  }
  if (volume.status.state != "Available" || !volume.status.access) {
    return "volume " + name + " is not available yet";
  }
  const auto& access = *volume.status.access;
  agent::VolumeAccess& to = *out.mutable_access();
  to.set_driver(access.driver);
  to.set_handle(access.handle);
  for (const auto& [key, value] : access.volume_attributes) (*to.mutable_attributes())[key] = value;
  LowerLimits(volume, parts, to);
  if (!access.secret_ref) return {};
  const Secret* secret = Find(parts.secrets, access.secret_ref->name);
  if (secret == nullptr) return "secret " + access.secret_ref->name + " does not exist";
  for (const auto& [key, value] : secret->data) (*to.mutable_secret_data())[key] = value.bytes;
  return {};
}

void FillLocalDisk(const MachineVolume& item, agent::MachineVolume& out) {
  out.set_local_disk(true);
  const auto& size = item.local_disk ? item.local_disk->size_limit : item.empty_disk->size_limit;
  if (size) out.set_local_disk_bytes(size->Value());
  if (item.local_disk) out.set_local_disk_image(item.local_disk->image);
}

agent::MachineVolume VolumePart(const Machine& machine,
                                const MachineVolume& item,
                                const Parts& parts) {
  agent::MachineVolume out;
  out.set_name(item.name);
  if (item.device) out.set_device(*item.device);
  if (item.local_disk || item.empty_disk) {
    FillLocalDisk(item, out);
    return out;
  }
  const std::string name = VolumeNameOf(machine, item);
  const Volume* volume = Find(parts.volumes, name);
  // A volume that merely has the name of an ephemeral one is somebody else's.
  if (volume == nullptr || (item.ephemeral && !IsOwnedBy(volume->metadata, machine.metadata.uid))) {
    out.set_waits_for("volume " + name + " does not exist yet");
    return out;
  }
  out.set_volume_uid(volume->metadata.uid);
  out.set_volume_name(name);
  std::string missing = FillAccess(*volume, machine, parts, out);
  if (missing.empty()) missing = FillEncryption(*volume, parts, *out.mutable_encryption());
  if (!missing.empty()) {
    // Half of it is of no use, and secrets are given only to who needs them.
    out.clear_access();
    out.clear_encryption();
  }
  out.set_waits_for(missing);
  const meta::Quantity* size = core::FindResource(volume->status.resources, core::kStorage);
  if (size == nullptr) size = core::FindResource(volume->spec.resources, core::kStorage);
  if (size != nullptr) out.set_storage_bytes(size->Value());
  return out;
}

std::vector<std::string> AddressesOf(const NetworkInterface& nic) {
  std::vector<std::string> ips;
  for (const auto& ip : nic.status.ips) ips.push_back(ip.ToString());
  if (!ips.empty()) return ips;
  for (const auto& source : nic.spec.ips) {
    if (!source.value) return {};  // still to be given out
    ips.push_back(source.value->ToString());
  }
  return ips;
}

// What whoever gives addresses out says; "" if nothing.
std::string WhyNoAddresses(const NetworkInterface& nic) {
  for (const auto& condition : nic.status.conditions) {
    if (condition.type == apis::networking::kAddressesReady && condition.status == "False") {
      return condition.message;
    }
  }
  return {};
}

// Nobody has claimed it. A claim without a UID is for the machine of that name.
bool IsFree(const NetworkInterface& nic, const Machine& machine) {
  const auto& claim = nic.spec.machine_ref;
  return !claim || (claim->uid.empty() && claim->name == machine.metadata.name);
}

agent::MachineNic NicPart(const Machine& machine, const MachineNic& item, const Parts& parts) {
  agent::MachineNic out;
  out.set_name(item.name);
  const std::string name = NicNameOf(machine, item);
  const NetworkInterface* nic = Find(parts.interfaces, name);
  if (nic == nullptr || (item.ephemeral && !IsOwnedBy(nic->metadata, machine.metadata.uid))) {
    out.set_waits_for("network interface " + name + " does not exist yet");
    return out;
  }
  if (IsFree(*nic, machine)) {
    out.set_waits_for(
        "network interface " + name +
        (nic->metadata.deletion_timestamp ? " is being deleted" : " is not claimed yet"));
    return out;
  }
  if (nic->spec.machine_ref->uid != machine.metadata.uid) {
    out.set_waits_for("network interface " + name + " is used by machine " +
                      nic->spec.machine_ref->name);
    return out;
  }
  out.set_nic_uid(nic->metadata.uid);
  out.set_nic_name(name);
  const Network* network = Find(parts.networks, nic->spec.network_ref.name);
  if (network == nullptr) {
    out.set_waits_for("network " + nic->spec.network_ref.name + " does not exist");
    return out;
  }
  const std::vector<std::string> ips = AddressesOf(*nic);
  if (ips.empty()) {
    const std::string why = WhyNoAddresses(*nic);
    out.set_waits_for("network interface " + name +
                      (why.empty() ? " has no addresses yet" : " has no addresses: " + why));
    return out;
  }
  // The id is what a network's provider calls it, and whoever may write networks chooses it: two
  // may have the same, or one the UID of another. The UID tells them apart.
  out.set_network_id(network->spec.provider_id.empty() ? network->metadata.uid
                                                       : network->spec.provider_id);
  out.set_network_uid(network->metadata.uid);
  out.set_network_name(network->metadata.name);
  for (const std::string& ip : ips) out.add_ips(ip);
  for (const auto& [key, value] : nic->spec.attributes) {
    const bool is_ours =
        std::ranges::find(iri::kServersNicAttributes, key) != iri::kServersNicAttributes.end();
    if (!is_ours) (*out.mutable_attributes())[key] = value;
  }
  return out;
}

void FillIgnition(const Machine& machine, const Parts& parts, agent::MachineBody& body) {
  if (!machine.spec.ignition_ref) return;
  const std::string& name = machine.spec.ignition_ref->name;
  const std::string key = machine.spec.ignition_ref->key.empty() ? std::string(core::kIgnitionKey)
                                                                 : machine.spec.ignition_ref->key;
  const Secret* secret = Find(parts.secrets, name);
  if (secret == nullptr) {
    body.add_missing("secret " + name + " does not exist");
    return;
  }
  const auto entry = secret->data.find(key);
  if (entry == secret->data.end()) {
    body.add_missing("secret " + name + " has no entry " + key);
    return;
  }
  body.set_ignition(entry->second.bytes);
}

template <class T, class Body>
void FillPullSecret(const T& object, const Parts& parts, Body& body) {
  if (!object.spec.image_pull_secret_ref) return;
  const std::vector<std::string> registries = ImageRegistries(object);
  if (registries.empty()) return;
  const std::string& name = object.spec.image_pull_secret_ref->name;
  const Secret* secret = Find(parts.secrets, name);
  if (secret == nullptr) {
    body.add_missing("secret " + name + " does not exist");
    return;
  }
  const auto entries = PullSecretFor(*secret, registries);
  if (entries.ok()) {
    body.set_image_pull_secret(*entries);
  } else {
    body.add_missing(std::string(entries.status().message()));
  }
}

void FillMachine(const Machine& machine, const Parts& parts, agent::MachineBody& body) {
  body.set_class_name(machine.spec.machine_class_ref.name);
  body.set_generation(machine.metadata.generation);
  body.set_power_on(machine.spec.power != apis::compute::kPowerOff);
  FillIgnition(machine, parts, body);
  FillPullSecret(machine, parts, body);
  for (const MachineVolume& item : machine.spec.volumes) {
    *body.add_volumes() = VolumePart(machine, item, parts);
  }
  for (const MachineNic& item : machine.spec.network_interfaces) {
    *body.add_network_interfaces() = NicPart(machine, item, parts);
  }
  for (const apis::compute::EfiVar& variable : machine.spec.efi_vars) {
    agent::EfiVariable& out = *body.add_efi_variables();
    out.set_name(variable.name);
    out.set_uuid(variable.uuid);
    out.set_value(variable.value);
  }
  if (machine.spec.guest_config) body.set_hostname(machine.spec.guest_config->hostname);
  body.set_on_pool_loss(std::string(
      apis::compute::DiesWithContact(machine) ? core::kOnPoolLossMove : core::kOnPoolLossKeep));
  body.set_restart_policy(std::string(apis::compute::RestartPolicyOf(machine.spec)));
  for (const auto& [key, value] : machine.metadata.labels) (*body.mutable_labels())[key] = value;
  for (const auto& [key, value] : machine.metadata.annotations) {
    const bool is_for_us = key == kLastApplied || key == core::kReconcileRequestedAtAnnotation;
    if (!is_for_us) (*body.mutable_annotations())[key] = value;
  }
}

void FillVolume(const Volume& volume, const Parts& parts, agent::VolumeBody& body) {
  if (volume.spec.volume_class_ref) body.set_class_name(volume.spec.volume_class_ref->name);
  body.set_generation(volume.metadata.generation);
  if (const auto* size = core::FindResource(volume.spec.resources, core::kStorage)) {
    body.set_storage_bytes(size->Value());
  }
  if (volume.spec.data_source && volume.spec.data_source->os_image) {
    body.set_image(volume.spec.data_source->os_image->image);
    body.set_architecture(volume.spec.data_source->os_image->architecture.value_or(""));
  }
  if (volume.spec.data_source && volume.spec.data_source->volume_snapshot_ref) {
    AddSnapshotSource(volume, parts, body);
  }
  if (volume.spec.data_source && volume.spec.data_source->volume_ref) {
    AddVolumeSource(volume, parts, body);
  }
  const std::string missing = FillEncryption(volume, parts, *body.mutable_encryption());
  if (!missing.empty()) body.add_missing(missing);
  FillPullSecret(volume, parts, body);
  for (const auto& [key, value] : volume.metadata.labels) (*body.mutable_labels())[key] = value;
}

// Maps are written in order, so equal messages have equal bytes.
std::string Encode(const agent::Assign& assign) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  assign.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

std::vector<Need> NeedsOf(const meta::Object& object, const Parts& parts) {
  Wanted wanted(parts);
  if (&object.kind() == &kMachineKind) AddMachineNeeds(object.as<Machine>(), parts, wanted);
  if (&object.kind() == &kVolumeKind) AddVolumeNeeds(object.as<Volume>(), wanted);
  if (&object.kind() == &kVolumeSnapshotKind) {
    wanted.Volume(object.as<VolumeSnapshot>().spec.volume_ref.name);
  }
  return wanted.Take();
}

void Put(const Need& need, std::optional<meta::Object> found, Parts& parts) {
  const auto file = [&]<class T>(Parts::Named<T>& named) {
    std::optional<T> value;
    if (found) value = std::move(found->as<T>());
    named[need.name] = std::move(value);
  };
  if (need.kind == &kVolumeKind) file(parts.volumes);
  if (need.kind == &kNetworkInterfaceKind) file(parts.interfaces);
  if (need.kind == &kNetworkKind) file(parts.networks);
  if (need.kind == &kSecretKind) file(parts.secrets);
  if (need.kind == &kVolumeSnapshotKind) file(parts.snapshots);
  if (need.kind == &kVolumeClassKind) file(parts.volume_classes);
}

std::vector<NetworkInterface> InterfacesToClaim(const meta::Object& object, const Parts& parts) {
  std::vector<NetworkInterface> claimed;
  if (&object.kind() != &kMachineKind) return claimed;
  const auto& machine = object.as<Machine>();
  for (const MachineNic& item : machine.spec.network_interfaces) {
    const NetworkInterface* nic = Find(parts.interfaces, NicNameOf(machine, item));
    if (nic == nullptr || nic->metadata.deletion_timestamp || !IsFree(*nic, machine)) continue;
    if (item.ephemeral && !IsOwnedBy(nic->metadata, machine.metadata.uid)) continue;
    NetworkInterface& now = claimed.emplace_back(*nic);
    now.spec.machine_ref =
        core::LocalUidReference{.name = machine.metadata.name, .uid = machine.metadata.uid};
  }
  return claimed;
}

std::vector<Volume> VolumesToClaim(const meta::Object& object, const Parts& parts) {
  std::vector<Volume> claimed;
  if (&object.kind() != &kMachineKind || object.metadata().deletion_timestamp) return claimed;
  const auto& machine = object.as<Machine>();
  for (const MachineVolume& item : machine.spec.volumes) {
    const Volume* volume = Find(parts.volumes, VolumeNameOf(machine, item));
    if (volume == nullptr || volume->metadata.deletion_timestamp || volume->spec.claim_ref ||
        volume->spec.unclaimable) {
      continue;
    }
    if (item.ephemeral && !IsOwnedBy(volume->metadata, machine.metadata.uid)) continue;
    // One that is still to be placed may come to lie out of reach.
    const auto& placement = volume->status.placement;
    const bool is_placed = placement && !placement->pool_uid.empty();
    if (volume->spec.volume_class_ref && !is_placed) continue;
    Volume& now = claimed.emplace_back(*volume);
    now.spec.claim_ref =
        core::LocalUidReference{.name = machine.metadata.name, .uid = machine.metadata.uid};
  }
  return claimed;
}

bool CanReach(const VolumePool& volumes, const MachinePool& machines) {
  // Places are the same if both name one and it is the same one.
  const auto same = [&](std::string_view label) {
    const auto a = volumes.metadata.labels.find(std::string(label));
    const auto b = machines.metadata.labels.find(std::string(label));
    return a != volumes.metadata.labels.end() && b != machines.metadata.labels.end() &&
           a->second == b->second;
  };
  const auto name = [](const meta::ObjectMeta& metadata, std::string_view label) {
    return metadata.labels.contains(std::string(label));
  };
  // A host is in its own zone and region, also when nobody has said which these are.
  if (volumes.spec.host_ref && machines.spec.host_ref &&
      volumes.spec.host_ref->name == machines.spec.host_ref->name) {
    return true;
  }
  const std::string_view reach = apis::storage::ReachOf(volumes.spec);
  if (reach == apis::storage::kReachAny) return true;
  if (reach == apis::storage::kReachRegion) return same(core::kRegionLabel);
  if (reach == apis::storage::kReachZone) {
    const bool no_regions =
        !name(volumes.metadata, core::kRegionLabel) && !name(machines.metadata, core::kRegionLabel);
    return same(core::kZoneLabel) && (no_regions || same(core::kRegionLabel));
  }
  return false;
}

namespace {

EncodedBody EncodeBody(const meta::Object& object, const Parts& parts) {
  // Messages of messages and maps: dozens of small allocations that all end here.
  alignas(std::max_align_t) static thread_local std::array<char, kArenaBytes> first_block;
  google::protobuf::ArenaOptions memory;
  memory.initial_block = first_block.data();
  memory.initial_block_size = first_block.size();
  google::protobuf::Arena arena(memory);
  agent::Assign& assign = *google::protobuf::Arena::CreateMessage<agent::Assign>(&arena);
  const core::PlacementStatus& placement = *apis::PlacementOf(object);
  ToProto(apis::ToAmounts(placement.resources), *assign.mutable_resources());
  if (&object.kind() == &kMachineKind) {
    FillMachine(object.as<Machine>(), parts, *assign.mutable_machine());
  } else if (&object.kind() == &kVolumeKind) {
    FillVolume(object.as<Volume>(), parts, *assign.mutable_volume());
  } else if (&object.kind() == &kVolumeSnapshotKind) {
    FillSnapshot(object.as<VolumeSnapshot>(), parts, *assign.mutable_snapshot());
  } else if (&object.kind() == &core::kReservationKind) {
    const auto& reservation = object.as<core::Reservation>();
    agent::ReservationBody& body = *assign.mutable_reservation();
    body.set_count(core::LeftOf(reservation));
    for (const auto& consumer : reservation.status.consumers) body.add_consumers(consumer.uid);
  } else {
    const auto& bucket = object.as<Bucket>();
    agent::BucketBody& body = *assign.mutable_bucket();
    if (bucket.spec.bucket_class_ref) body.set_class_name(bucket.spec.bucket_class_ref->name);
    body.set_generation(bucket.metadata.generation);
    for (const auto& [key, value] : bucket.metadata.labels) (*body.mutable_labels())[key] = value;
  }
  assign.set_reservation_uid(placement.reservation_uid);
  const auto& annotations = object.metadata().annotations;
  const auto asked = annotations.find(std::string(core::kReconcileRequestedAtAnnotation));
  if (asked != annotations.end()) assign.set_requested_at(asked->second);
  EncodedBody body;
  body.bytes = Encode(assign);
  body.hash = pki::Sha256(body.bytes).substr(0, kHashBytes);
  return body;
}

}  // namespace

EncodedAssign AssembleAssign(const meta::Object& object,
                             const Parts& parts,
                             uint64_t incarnation,
                             CopiedBody& copied) {
  const bool is_copy =
      &object.kind() == &kMachineKind && parts.empty() && CopiedBody::IsCopy(object.as<Machine>());
  const EncodedBody* body = is_copy ? copied.Find(object.as<Machine>()) : nullptr;
  EncodedBody made;
  if (body == nullptr) {
    made = EncodeBody(object, parts);
    if (is_copy) copied.Keep(object.as<Machine>(), made);
    body = &made;
  }
  const core::PlacementStatus& placement = *apis::PlacementOf(object);
  agent::Assign rest;
  rest.set_kind(std::string(object.kind().kind));
  rest.set_namespace_(object.metadata().namespace_);
  rest.set_name(object.metadata().name);
  rest.set_uid(object.metadata().uid);
  rest.set_hash(body->hash);
  rest.set_incarnation(incarnation);
  rest.set_placement(static_cast<uint64_t>(placement.epoch));
  rest.set_pool_uid(placement.pool_uid);
  rest.set_revision(ParseUint(object.metadata().resource_version).value_or(0));
  EncodedAssign encoded;
  encoded.hash = body->hash;
  encoded.bytes.reserve(body->bytes.size() + kRestBytes);
  encoded.bytes = body->bytes;
  rest.AppendToString(&encoded.bytes);
  return encoded;
}

}  // namespace berth::gateway
