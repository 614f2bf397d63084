// SPDX-License-Identifier: Apache-2.0
#include "controller/ephemeral/ephemeral_parts.h"

#include <algorithm>
#include <utility>

#include "apis/core/well_known.h"
#include "apis/networking/network_interface.h"
#include "apis/storage/volume.h"

namespace berth::controller {
namespace {

using apis::compute::Machine;
using apis::networking::NetworkInterface;
using apis::storage::Volume;

constexpr std::string_view kMachineApiVersion = "compute.ironcore.dev/v1alpha1";

meta::ObjectMeta MetadataFor(const Machine& machine,
                             std::string name,
                             const meta::ObjectMeta& from) {
  meta::ObjectMeta metadata;
  metadata.namespace_ = machine.metadata.namespace_;
  metadata.name = std::move(name);
  metadata.labels = from.labels;
  metadata.annotations = from.annotations;
  metadata.annotations[std::string(apis::core::kEphemeralManagedByAnnotation)] =
      apis::core::kEphemeralManager;
  meta::OwnerReference& owner = metadata.owner_references.emplace_back();
  owner.api_version = kMachineApiVersion;
  owner.kind = apis::compute::kMachineKind.kind;
  owner.name = machine.metadata.name;
  owner.uid = machine.metadata.uid;
  owner.controller = true;
  owner.block_owner_deletion = true;
  return metadata;
}

// Where the machine may go, its disk should be.
void CopyTopology(const Machine& machine, apis::storage::VolumeSpec& spec) {
  for (const std::string_view key : {apis::core::kRegionLabel, apis::core::kZoneLabel}) {
    const auto wanted = machine.spec.machine_pool_selector.find(std::string(key));
    if (wanted == machine.spec.machine_pool_selector.end()) continue;
    spec.volume_pool_selector.emplace(wanted->first, wanted->second);
  }
}

Volume VolumeFor(const Machine& machine,
                 const apis::compute::MachineVolume& part,
                 const std::string& architecture) {
  const auto& from = *part.ephemeral->volume_template;
  Volume volume;
  volume.metadata = MetadataFor(machine, machine.metadata.name + '-' + part.name, from.metadata);
  volume.spec = from.spec;
  CopyTopology(machine, volume.spec);
  const bool has_image = volume.spec.data_source && volume.spec.data_source->os_image;
  if (has_image && !volume.spec.data_source->os_image->architecture && !architecture.empty()) {
    volume.spec.data_source->os_image->architecture = architecture;
  }
  return volume;
}

NetworkInterface NicFor(const Machine& machine,
                        const apis::compute::MachineNetworkInterface& part) {
  const auto& from = *part.ephemeral->network_interface_template;
  NetworkInterface nic;
  nic.metadata = MetadataFor(machine, machine.metadata.name + '-' + part.name, from.metadata);
  nic.spec = from.spec;
  nic.spec.machine_ref.emplace();
  nic.spec.machine_ref->name = machine.metadata.name;
  nic.spec.machine_ref->uid = machine.metadata.uid;
  return nic;
}

}  // namespace

std::vector<EphemeralPart> EphemeralPartsOf(const Machine& machine,
                                            const std::string& architecture) {
  std::vector<EphemeralPart> parts;
  for (const auto& volume : machine.spec.volumes) {
    if (!volume.ephemeral || !volume.ephemeral->volume_template) continue;
    parts.push_back({.name = machine.metadata.name + '-' + volume.name,
                     .field = "spec.volumes[" + volume.name + "]",
                     .object = meta::Object::Of(apis::storage::kVolumeKind,
                                                VolumeFor(machine, volume, architecture))});
  }
  for (const auto& nic : machine.spec.network_interfaces) {
    if (!nic.ephemeral || !nic.ephemeral->network_interface_template) continue;
    parts.push_back({.name = machine.metadata.name + '-' + nic.name,
                     .field = "spec.networkInterfaces[" + nic.name + "]",
                     .object = meta::Object::Of(apis::networking::kNetworkInterfaceKind,
                                                NicFor(machine, nic))});
  }
  return parts;
}

bool HasEphemeralParts(const Machine& machine) {
  return std::ranges::any_of(machine.spec.volumes, [](const auto& v) { return !!v.ephemeral; }) ||
         std::ranges::any_of(machine.spec.network_interfaces,
                             [](const auto& n) { return !!n.ephemeral; });
}

std::string EphemeralOwnerOf(const meta::ObjectMeta& part) {
  const auto manager =
      part.annotations.find(std::string(apis::core::kEphemeralManagedByAnnotation));
  if (manager == part.annotations.end() || manager->second != apis::core::kEphemeralManager) {
    return {};
  }
  for (const auto& owner : part.owner_references) {
    if (owner.controller.value_or(false) && owner.kind == apis::compute::kMachineKind.kind &&
        owner.api_version == kMachineApiVersion) {
      return owner.uid;
    }
  }
  return {};
}

bool IsEphemeralPartOf(const meta::ObjectMeta& part, const std::string& machine_uid) {
  return !machine_uid.empty() && EphemeralOwnerOf(part) == machine_uid;
}

}  // namespace berth::controller
