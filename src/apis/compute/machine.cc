// SPDX-License-Identifier: Apache-2.0
#include "apis/compute/machine.h"

#include <set>

#include "apis/compute/device_names.h"
#include "apis/compute/host_tie.h"
#include "apis/core/category.h"
#include "apis/core/rules.h"

namespace berth::apis::compute {
namespace {

void SetDefaults(Machine& object) {
  for (MachineNetworkInterface& nic : object.spec.network_interfaces) {
    if (nic.ephemeral && nic.ephemeral->network_interface_template) {
      networking::SetNetworkInterfaceSpecDefaults(nic.ephemeral->network_interface_template->spec);
    }
  }
}

void CheckNetworkInterface(const MachineNetworkInterface& nic,
                           const meta::FieldPath& path,
                           meta::FieldErrors& errors) {
  core::CheckSources(int{nic.network_interface_ref.has_value()} + int{nic.ephemeral.has_value()},
                     path,
                     "networkInterfaceRef or ephemeral",
                     errors);
  core::CheckReference(nic.network_interface_ref, path.Child("networkInterfaceRef"), errors);
  if (!nic.ephemeral) return;
  const meta::FieldPath at = path.Child("ephemeral").Child("networkInterfaceTemplate");
  if (!nic.ephemeral->network_interface_template) {
    errors.Required(at);
    return;
  }
  const auto& from = *nic.ephemeral->network_interface_template;
  core::CheckTemplateMetadata(from.metadata, at.Child("metadata"), errors);
  networking::CheckNetworkInterfaceSpec(from.spec, at.Child("spec"), errors);
}

void CheckEphemeralVolume(const EphemeralVolumeSource& source,
                          const meta::FieldPath& path,
                          meta::FieldErrors& errors) {
  const meta::FieldPath at = path.Child("volumeTemplate");
  if (!source.volume_template) {
    errors.Required(at);
    return;
  }
  const storage::VolumeTemplateSpec& from = *source.volume_template;
  const meta::FieldPath spec = at.Child("spec");
  core::CheckTemplateMetadata(from.metadata, at.Child("metadata"), errors);
  storage::CheckVolumeSpec(from.spec, spec, errors);
  if (from.spec.claim_ref) {
    errors.Forbidden(spec.Child("claimRef"), "must not be set in a template");
  }
  if (from.spec.unclaimable) {
    errors.Forbidden(spec.Child("unclaimable"), "must not be set in a template");
  }
}

void CheckVolume(const MachineVolume& volume,
                 const meta::FieldPath& path,
                 meta::FieldErrors& errors) {
  core::CheckSources(int{volume.volume_ref.has_value()} + int{volume.empty_disk.has_value()} +
                         int{volume.local_disk.has_value()} + int{volume.ephemeral.has_value()},
                     path,
                     "volumeRef, emptyDisk, localDisk or ephemeral",
                     errors);
  if (volume.device && !volume.device->empty() && !IsDeviceName(*volume.device)) {
    errors.Invalid(path.Child("device"),
                   *volume.device,
                   "must be three or four lower case letters, such as oda or odaa");
  }
  core::CheckReference(volume.volume_ref, path.Child("volumeRef"), errors);
  if (volume.empty_disk && volume.empty_disk->size_limit) {
    core::CheckNotNegative(
        *volume.empty_disk->size_limit, path.Child("emptyDisk").Child("sizeLimit"), errors);
  }
  if (volume.local_disk && volume.local_disk->size_limit) {
    core::CheckNotNegative(
        *volume.local_disk->size_limit, path.Child("localDisk").Child("sizeLimit"), errors);
  }
  if (volume.ephemeral) CheckEphemeralVolume(*volume.ephemeral, path.Child("ephemeral"), errors);
}

void CheckAttachments(const MachineSpec& spec,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors) {
  core::UniqueNames nic_names;
  for (size_t i = 0; i < spec.network_interfaces.size(); ++i) {
    const MachineNetworkInterface& nic = spec.network_interfaces[i];
    const meta::FieldPath at = path.Child("networkInterfaces").Index(i);
    core::CheckItemName(nic.name, at.Child("name"), nic_names, errors);
    CheckNetworkInterface(nic, at, errors);
  }
  core::UniqueNames volume_names;
  core::UniqueNames devices;
  for (size_t i = 0; i < spec.volumes.size(); ++i) {
    const MachineVolume& volume = spec.volumes[i];
    const meta::FieldPath at = path.Child("volumes").Index(i);
    core::CheckItemName(volume.name, at.Child("name"), volume_names, errors);
    if (volume.device) devices.Check(*volume.device, at.Child("device"), errors);
    CheckVolume(volume, at, errors);
  }
}

}  // namespace

void CheckMachineSpec(const MachineSpec& spec,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors) {
  core::CheckReference(spec.machine_class_ref, path.Child("machineClassRef"), errors);
  core::CheckReference(spec.machine_pool_ref, path.Child("machinePoolRef"), errors);
  core::CheckLabels(spec.machine_pool_selector, path.Child("machinePoolSelector"), errors);
  CheckAttachments(spec, path, errors);
  if (spec.ignition_ref) {
    core::CheckSubdomainName(
        spec.ignition_ref->name, path.Child("ignitionRef").Child("name"), errors);
  }
  core::CheckReference(spec.image_pull_secret_ref, path.Child("imagePullSecretRef"), errors);
  core::UniqueNames variables;
  for (size_t i = 0; i < spec.efi_vars.size(); ++i) {
    variables.Check(spec.efi_vars[i].name, path.Child("efiVars").Index(i).Child("name"), errors);
  }
  core::CheckTolerations(spec.tolerations, path.Child("tolerations"), errors);
  core::CheckPlacement(spec.placement, path.Child("placement"), errors);
  if (spec.guest_config && !spec.guest_config->hostname.empty()) {
    core::CheckLabelName(
        spec.guest_config->hostname, path.Child("guestConfig").Child("hostname"), errors);
  }
}

namespace {

void Validate(const Machine& object, meta::FieldErrors& errors) {
  CheckMachineSpec(object.spec, core::SpecPath(), errors);
}

const MachineVolume* FindVolume(const MachineSpec& spec, std::string_view name) {
  for (const MachineVolume& volume : spec.volumes) {
    if (volume.name == name) return &volume;
  }
  return nullptr;
}

// A disk that was filled from an image is the machine's memory of itself: it neither goes away nor
// turns into another one.
void CheckImagesStay(const MachineSpec& now, const MachineSpec& before, meta::FieldErrors& errors) {
  for (const MachineVolume& volume : before.volumes) {
    if (!volume.local_disk || volume.local_disk->image.empty()) continue;
    if (FindVolume(now, volume.name) == nullptr) {
      errors.Forbidden(core::SpecPath().Child("volumes"),
                       "volume " + volume.name + " has an image and may not be removed");
    }
  }
  for (size_t i = 0; i < now.volumes.size(); ++i) {
    const MachineVolume* old = FindVolume(before, now.volumes[i].name);
    if (old == nullptr || !old->local_disk || old->local_disk->image.empty()) continue;
    const auto& disk = now.volumes[i].local_disk;
    if (!disk || disk->image != old->local_disk->image) {
      errors.Forbidden(core::SpecPath().Child("volumes").Index(i).Child("localDisk").Child("image"),
                       core::kFieldIsSetOnce);
    }
  }
}

void CheckNewVolumeNames(const Machine& now, const Machine& before, meta::FieldErrors& errors) {
  std::set<std::string_view> attached;
  for (const MachineVolumeStatus& volume : before.status.volumes) attached.insert(volume.name);
  for (size_t i = 0; i < now.spec.volumes.size(); ++i) {
    const std::string& name = now.spec.volumes[i].name;
    if (FindVolume(before.spec, name) == nullptr && attached.contains(name)) {
      errors.Forbidden(core::SpecPath().Child("volumes").Index(i).Child("name"),
                       "the volume that had this name is still attached, wait until it is gone "
                       "from status.volumes");
    }
  }
}

void ValidateUpdate(const Machine& now, const Machine& before, meta::FieldErrors& errors) {
  const meta::FieldPath spec = core::SpecPath();
  core::CheckImmutable(now.spec.machine_class_ref,
                       before.spec.machine_class_ref,
                       spec.Child("machineClassRef"),
                       errors);
  core::CheckSetOnce(now.spec.machine_pool_ref,
                     before.spec.machine_pool_ref,
                     spec.Child("machinePoolRef"),
                     errors);
  core::CheckImmutable(
      now.spec.guest_config, before.spec.guest_config, spec.Child("guestConfig"), errors);
  core::CheckPlacementUpdate(
      now.spec.placement, before.spec.placement, spec.Child("placement"), errors);
  CheckImagesStay(now.spec, before.spec, errors);
  CheckNewVolumeNames(now, before, errors);
}

void ValidateStatusUpdate(const Machine& now,
                          const Machine& /*before*/,
                          meta::FieldErrors& errors) {
  const meta::FieldPath status = core::StatusPath();
  core::CheckConditions(now.status.conditions, status.Child("conditions"), errors);
  core::UniqueNames nics;
  for (size_t i = 0; i < now.status.network_interfaces.size(); ++i) {
    nics.Check(now.status.network_interfaces[i].name,
               status.Child("networkInterfaces").Index(i).Child("name"),
               errors);
  }
  core::UniqueNames volumes;
  for (size_t i = 0; i < now.status.volumes.size(); ++i) {
    volumes.Check(
        now.status.volumes[i].name, status.Child("volumes").Index(i).Child("name"), errors);
  }
}

std::string ClassCell(const Machine& object) { return object.spec.machine_class_ref.name; }
std::string ImageCell(const Machine& object) {
  for (const MachineVolume& volume : object.spec.volumes) {
    if (volume.local_disk && !volume.local_disk->image.empty()) return volume.local_disk->image;
  }
  return core::OrNone("");
}
std::string PoolCell(const Machine& object) {
  return core::ReferenceCell(object.spec.machine_pool_ref);
}
std::string StateCell(const Machine& object) { return core::OrUnknown(object.status.state); }

constexpr meta::Column kColumns[] = {
    {.name = "MachineClassRef", .doc = "Class of the machine.", .cell = meta::Hook<&ClassCell>},
    {.name = "Image", .doc = "Image of the first disk with one.", .cell = meta::Hook<&ImageCell>},
    {.name = "MachinePoolRef", .doc = "Pool of the machine.", .cell = meta::Hook<&PoolCell>},
    {.name = "State", .doc = "State of the machine.", .cell = meta::Hook<&StateCell>},
};

constexpr std::string_view kSubresources[] = {
    "binding", "console", "exec", "log", "portforward", "usage"};
constexpr std::string_view kSelectors[] = {"spec.machinePoolRef.name",
                                           "spec.machineClassRef.name",
                                           "status.placement.poolUID",
                                           "spec.placement.priorityClassName",
                                           "spec.ignitionRef.name",
                                           "spec.imagePullSecretRef.name"};

}  // namespace

constinit const meta::KindInfo kMachineKind = {
    .group = "compute",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "Machine",
    .plural = "machines",
    .singular = "machine",
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .name_rule = meta::NameRule::kDnsLabel,
    .type = &meta::TypeInfoOf<Machine>(),
    .has_status = true,
    .subresources = kSubresources,
    .field_selectors = kSelectors,
    .columns = kColumns,
    .set_defaults = meta::Hook<&SetDefaults>,
    .prepare_update = meta::Hook<&NoteNewWish>,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::compute
