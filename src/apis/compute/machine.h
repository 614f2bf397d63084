// SPDX-License-Identifier: Apache-2.0
// Machine: one virtual machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apis/compute/machine_parts.h"
#include "apis/core/placement.h"
#include "apis/core/references.h"
#include "apis/core/taints.h"
#include "base/status.h"
#include "meta/kind.h"

namespace berth::apis::compute {

inline constexpr std::string_view kPowerOn = "On";
inline constexpr std::string_view kPowerOff = "Off";

// Absent is OnFailure. Nobody writes the default into objects.
inline constexpr std::string_view kRestartAlways = "Always";
inline constexpr std::string_view kRestartOnFailure = "OnFailure";
inline constexpr std::string_view kRestartNever = "Never";

struct MachineSpec {
  core::LocalObjectReference machine_class_ref;
  std::map<std::string, std::string> machine_pool_selector;
  std::optional<core::LocalObjectReference> machine_pool_ref;
  std::string power;
  std::vector<MachineNetworkInterface> network_interfaces;
  std::vector<MachineVolume> volumes;
  std::optional<core::SecretKeySelector> ignition_ref;
  std::optional<core::LocalObjectReference> image_pull_secret_ref;
  std::vector<EfiVar> efi_vars;
  std::vector<core::Toleration> tolerations;
  std::optional<MachineGuestConfig> guest_config;
  std::string restart_policy;
  std::optional<core::Placement> placement;
};
BERTH_DESCRIBE(
    MachineSpec,
    "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachineSpec",
    "The machine wanted.",
    BERTH_FIELD(machine_class_ref,
                "machineClassRef",
                "Class of the machine: its size. Cannot change.",
                {.always = true}),
    BERTH_FIELD(machine_pool_selector, "machinePoolSelector", "Labels that the pool must have."),
    BERTH_FIELD(machine_pool_ref,
                "machinePoolRef",
                "The pool that runs the machine; usually set by the scheduler. Set once."),
    BERTH_FIELD(power, "power", "On or Off.", {.values = {"On", "Off"}, .fallback = "\"On\""}),
    BERTH_FIELD(network_interfaces,
                "networkInterfaces",
                "Connections to networks.",
                {.merge_key = "name", .retain_keys = true}),
    BERTH_FIELD(
        volumes, "volumes", "Disks of the machine.", {.merge_key = "name", .retain_keys = true}),
    BERTH_FIELD(ignition_ref,
                "ignitionRef",
                "A Secret's entry with the first-boot configuration; the entry is ignition.yaml "
                "when none is named."),
    BERTH_FIELD(
        image_pull_secret_ref,
        "imagePullSecretRef",
        "A Secret of type kubernetes.io/dockerconfigjson: who the machine is at the registries of "
        "its images."),
    BERTH_FIELD(efi_vars,
                "efiVars",
                "Variables of the machine's firmware.",
                {.merge_key = "name", .retain_keys = true}),
    BERTH_FIELD(tolerations, "tolerations", "Taints of pools that are accepted."),
    BERTH_FIELD(guest_config,
                "guestConfig",
                "What the guest is told about itself. Only at creation."),
    BERTH_FIELD(restart_policy,
                "restartPolicy",
                "When a machine that has stopped by itself is started again. OnFailure (also when "
                "empty): unless its guest shut it down.",
                {.values = {"Always", "OnFailure", "Never"}}),
    BERTH_FIELD(placement, "placement", "What is asked of the pool beyond the selector."))

struct MachineCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  WallTime last_transition_time;
  bool operator==(const MachineCondition&) const = default;
};
BERTH_DESCRIBE(MachineCondition,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachineCondition",
               "One aspect of the machine's condition.",
               BERTH_FIELD(type,
                           "type",
                           "What the condition is about: Scheduled, Released, Movable, Ready, "
                           "VolumesReady, NetworkInterfacesReady.",
                           {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(reason, "reason", "One word for programs.", {.always = true}),
               BERTH_FIELD(message, "message", "A sentence for people.", {.always = true}),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct MachineStatus {
  std::string machine_id;
  int64_t observed_generation = 0;
  std::string state;
  std::vector<MachineCondition> conditions;
  std::vector<MachineNetworkInterfaceStatus> network_interfaces;
  std::vector<MachineVolumeStatus> volumes;
  std::optional<core::PlacementStatus> placement;
};
BERTH_DESCRIBE(
    MachineStatus,
    "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.MachineStatus",
    "The machine as its poollet reports it.",
    BERTH_FIELD(machine_id, "machineID", "Name of the machine at its provider, TYPE://ID."),
    BERTH_FIELD(observed_generation,
                "observedGeneration",
                "Generation of the spec that the poollet has acted on."),
    BERTH_FIELD(state,
                "state",
                "What the machine is doing.",
                {.values = {"Pending", "Running", "Shutdown", "Terminated", "Terminating"},
                 .fallback = "\"Pending\""}),
    BERTH_FIELD(conditions, "conditions", "More about the machine, aspect by aspect."),
    BERTH_FIELD(network_interfaces, "networkInterfaces", "Connections as they are."),
    BERTH_FIELD(volumes, "volumes", "Disks as they are."),
    BERTH_FIELD(placement, "placement", "Where the machine is placed; written by the scheduler."))

struct Machine {
  meta::ObjectMeta metadata;
  MachineSpec spec;
  MachineStatus status;
};
BERTH_DESCRIBE(Machine,
               "com.github.ironcore-dev.ironcore.api.compute.v1alpha1.Machine",
               "One virtual machine.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The machine wanted."),
               BERTH_FIELD(status, "status", "The machine as it is; written by the system."))

extern const meta::KindInfo kMachineKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Machine>) { return kMachineKind; }

// The rules of a machine's spec, here or in a template.
void CheckMachineSpec(const MachineSpec& spec,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors);

// The restart policy, with what absent means.
inline std::string_view RestartPolicyOf(const MachineSpec& spec) {
  return spec.restart_policy.empty() ? kRestartOnFailure : std::string_view(spec.restart_policy);
}

}  // namespace berth::apis::compute
