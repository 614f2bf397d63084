// SPDX-License-Identifier: Apache-2.0
// What a Machine is made of: disks, connections, firmware variables.
#pragma once

#include <optional>
#include <string>

#include "apis/core/references.h"
#include "apis/networking/network_interface.h"
#include "apis/storage/volume.h"
#include "meta/quantity.h"
#include "meta/type.h"

namespace berth::apis::compute {

inline constexpr std::string_view kAttachmentPending = "Pending";
inline constexpr std::string_view kAttachmentAttached = "Attached";

struct EphemeralNetworkInterfaceSource {
  std::optional<networking::NetworkInterfaceTemplateSpec> network_interface_template;
};
BERTH_DESCRIBE(
    EphemeralNetworkInterfaceSource,
    "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.EphemeralNetworkInterfaceSource",
    "A NetworkInterface that is made for the machine and goes with it.",
    BERTH_FIELD(network_interface_template,
                "networkInterfaceTemplate",
                "What the NetworkInterface looks like."))

struct MachineNetworkInterface {
  std::string name;
  std::optional<core::LocalObjectReference> network_interface_ref;
  std::optional<EphemeralNetworkInterfaceSource> ephemeral;
};
BERTH_DESCRIBE(MachineNetworkInterface,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.NetworkInterface",
               "One connection of a machine: a name and exactly one source.",
               BERTH_FIELD(name, "name", "Unique within the machine.", {.required = true}),
               BERTH_FIELD(network_interface_ref, "networkInterfaceRef", "This NetworkInterface."),
               BERTH_FIELD(ephemeral, "ephemeral", "A NetworkInterface made for the machine."))

struct EmptyDiskVolumeSource {
  std::optional<meta::Quantity> size_limit;
};
BERTH_DESCRIBE(EmptyDiskVolumeSource,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.EmptyDiskVolumeSource",
               "An empty disk on the host. Deprecated: use localDisk.",
               BERTH_FIELD(size_limit, "sizeLimit", "How large the disk may grow."))

struct LocalDiskVolumeSource {
  std::optional<meta::Quantity> size_limit;
  std::string image;
};
BERTH_DESCRIBE(LocalDiskVolumeSource,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.LocalDiskVolumeSource",
               "A disk on the host that goes with the machine.",
               BERTH_FIELD(size_limit, "sizeLimit", "How large the disk may grow."),
               BERTH_FIELD(image,
                           "image",
                           "Reference of the OCI image that the disk is filled with. Once set, "
                           "neither it nor the disk can be taken away."))

struct EphemeralVolumeSource {
  std::optional<storage::VolumeTemplateSpec> volume_template;
};
BERTH_DESCRIBE(EphemeralVolumeSource,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.EphemeralVolumeSource",
               "A Volume that is made for the machine and goes with it.",
               BERTH_FIELD(volume_template, "volumeTemplate", "What the Volume looks like."))

struct MachineVolume {
  std::string name;
  std::optional<std::string> device;
  std::optional<core::LocalObjectReference> volume_ref;
  std::optional<EmptyDiskVolumeSource> empty_disk;
  std::optional<LocalDiskVolumeSource> local_disk;
  std::optional<EphemeralVolumeSource> ephemeral;
};
BERTH_DESCRIBE(MachineVolume,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.Volume",
               "One disk of a machine: a name and exactly one source.",
               BERTH_FIELD(name, "name", "Unique within the machine.", {.required = true}),
               BERTH_FIELD(device,
                           "device",
                           "Device name that the guest is offered, such as oda; chosen by the "
                           "server when absent."),
               BERTH_FIELD(volume_ref, "volumeRef", "This Volume."),
               BERTH_FIELD(empty_disk, "emptyDisk", "An empty disk on the host. Deprecated."),
               BERTH_FIELD(local_disk, "localDisk", "A disk on the host."),
               BERTH_FIELD(ephemeral, "ephemeral", "A Volume made for the machine."))

struct EfiVar {
  std::string name;
  std::string uuid;
  std::string value;
  bool operator==(const EfiVar&) const = default;
};
BERTH_DESCRIBE(EfiVar,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.EFIVar",
               "One variable of the machine's firmware.",
               BERTH_FIELD(name, "name", "Name of the variable.", {.required = true}),
               BERTH_FIELD(uuid, "uuid", "Vendor's UUID of the variable.", {.required = true}),
               BERTH_FIELD(value, "value", "Value of the variable.", {.required = true}))

struct MachineGuestConfig {
  std::string hostname;
  bool operator==(const MachineGuestConfig&) const = default;
};
BERTH_DESCRIBE(MachineGuestConfig,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachineGuestConfig",
               "What the guest is told about itself.",
               BERTH_FIELD(hostname, "hostname", "Name of the guest; a DNS label."))

struct MachineNetworkInterfaceStatus {
  std::string name;
  std::string handle;
  std::string state;
  core::LocalObjectReference network_interface_ref;
  WallTime last_state_transition_time;
  bool operator==(const MachineNetworkInterfaceStatus&) const = default;
};
BERTH_DESCRIBE(
    MachineNetworkInterfaceStatus,
    "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.NetworkInterfaceStatus",
    "One connection as it is.",
    BERTH_FIELD(name, "name", "Its name in the machine's spec.", {.required = true}),
    BERTH_FIELD(handle, "handle", "Its name at the provider."),
    BERTH_FIELD(state,
                "state",
                "Pending or Attached.",
                {.values = {"Pending", "Attached"}, .fallback = "\"Pending\""}),
    BERTH_FIELD(network_interface_ref, "networkInterfaceRef", "The NetworkInterface behind it."),
    BERTH_FIELD(last_state_transition_time, "lastStateTransitionTime", "When state last changed."))

struct MachineVolumeStatus {
  std::string name;
  std::string handle;
  std::string state;
  core::LocalObjectReference volume_ref;
  WallTime last_state_transition_time;
  bool operator==(const MachineVolumeStatus&) const = default;
};
BERTH_DESCRIBE(MachineVolumeStatus,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.VolumeStatus",
               "One disk as it is.",
               BERTH_FIELD(name, "name", "Its name in the machine's spec.", {.required = true}),
               BERTH_FIELD(handle, "handle", "Its name at the provider."),
               BERTH_FIELD(state,
                           "state",
                           "Pending or Attached.",
                           {.values = {"Pending", "Attached"}, .fallback = "\"Pending\""}),
               BERTH_FIELD(volume_ref, "volumeRef", "The Volume behind it, if there is one."),
               BERTH_FIELD(last_state_transition_time,
                           "lastStateTransitionTime",
                           "When state last changed."))

}  // namespace berth::apis::compute
