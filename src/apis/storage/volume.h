// SPDX-License-Identifier: Apache-2.0
// Volume: a block device that outlives machines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/placement.h"
#include "apis/core/references.h"
#include "apis/core/resources.h"
#include "apis/core/taints.h"
#include "meta/kind.h"

namespace berth::apis::storage {

struct VolumeEncryption {
  core::LocalObjectReference secret_ref;
  bool operator==(const VolumeEncryption&) const = default;
};
BERTH_DESCRIBE(VolumeEncryption,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeEncryption",
               "How a volume is encrypted.",
               BERTH_FIELD(secret_ref,
                           "secretRef",
                           "A Secret with the entry encryptionKey: 256 bits in base64.",
                           {.always = true}))

struct OsDataSource {
  std::string image;
  std::optional<std::string> architecture;
  bool operator==(const OsDataSource&) const = default;
};
BERTH_DESCRIBE(OsDataSource,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.OSDataSource",
               "An operating system image.",
               BERTH_FIELD(image, "image", "Reference of the OCI image."),
               BERTH_FIELD(architecture,
                           "architecture",
                           "Which of the image's architectures to take."))

struct VolumeDataSource {
  std::optional<core::LocalObjectReference> volume_snapshot_ref;
  std::optional<OsDataSource> os_image;
  std::optional<core::LocalObjectReference> volume_ref;
  bool operator==(const VolumeDataSource&) const = default;
};
BERTH_DESCRIBE(VolumeDataSource,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeDataSource",
               "What a new volume is filled with; at most one of the fields is set.",
               BERTH_FIELD(volume_snapshot_ref, "volumeSnapshotRef", "This VolumeSnapshot."),
               BERTH_FIELD(os_image, "osImage", "This operating system image."),
               BERTH_FIELD(volume_ref,
                           "volumeRef",
                           "A copy of this Volume of the same namespace, as it is when the copy is "
                           "made; it may be in use."))

struct VolumeSpec {
  std::optional<core::LocalObjectReference> volume_class_ref;
  std::map<std::string, std::string> volume_pool_selector;
  std::optional<core::LocalObjectReference> volume_pool_ref;
  std::optional<core::LocalUidReference> claim_ref;
  core::ResourceList resources;
  bool unclaimable = false;
  std::vector<core::Toleration> tolerations;
  std::optional<VolumeEncryption> encryption;
  std::optional<VolumeDataSource> data_source;
  std::optional<core::LocalObjectReference> image_pull_secret_ref;
};
BERTH_DESCRIBE(VolumeSpec,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeSpec",
               "The volume wanted.",
               BERTH_FIELD(volume_class_ref,
                           "volumeClassRef",
                           "Class of the volume; without one, the volume was made elsewhere and is "
                           "only known here. Cannot change."),
               BERTH_FIELD(volume_pool_selector,
                           "volumePoolSelector",
                           "Labels that the pool must have."),
               BERTH_FIELD(volume_pool_ref,
                           "volumePoolRef",
                           "The pool that holds the volume; usually set by the scheduler. Set "
                           "once."),
               BERTH_FIELD(claim_ref, "claimRef", "The machine that uses the volume."),
               BERTH_FIELD(resources,
                           "resources",
                           "storage is the size. Whether it may change is up to the class."),
               BERTH_FIELD(unclaimable, "unclaimable", "True: no machine may claim the volume."),
               BERTH_FIELD(tolerations, "tolerations", "Taints of pools that are accepted."),
               BERTH_FIELD(encryption, "encryption", "How the volume is encrypted. Cannot change."),
               BERTH_FIELD(data_source, "dataSource", "What the new volume is filled with."),
               BERTH_FIELD(image_pull_secret_ref,
                           "imagePullSecretRef",
                           "A Secret of type kubernetes.io/dockerconfigjson: who the volume is at "
                           "the registry of its image."))

struct VolumeAccess {
  std::optional<core::LocalObjectReference> secret_ref;
  std::string driver;
  std::string handle;
  std::map<std::string, std::string> volume_attributes;
};
BERTH_DESCRIBE(
    VolumeAccess,
    "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeAccess",
    "How to reach the volume.",
    BERTH_FIELD(secret_ref, "secretRef", "A Secret with what is needed for access."),
    BERTH_FIELD(driver, "driver", "How to attach the volume.", {.required = true}),
    BERTH_FIELD(handle, "handle", "Name of the volume for its driver.", {.required = true}),
    BERTH_FIELD(volume_attributes, "volumeAttributes", "What else the driver wants to know."))

struct VolumeCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  int64_t observed_generation = 0;
  WallTime last_transition_time;
  bool operator==(const VolumeCondition&) const = default;
};
BERTH_DESCRIBE(VolumeCondition,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeCondition",
               "One aspect of the volume's condition.",
               BERTH_FIELD(type, "type", "What the condition is about.", {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(reason, "reason", "One word for programs."),
               BERTH_FIELD(message, "message", "A sentence for people."),
               BERTH_FIELD(observed_generation,
                           "observedGeneration",
                           "Generation of the volume that the condition speaks of."),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct VolumeStatus {
  std::string volume_id;
  std::string state;
  WallTime last_state_transition_time;
  std::optional<VolumeAccess> access;
  std::vector<VolumeCondition> conditions;
  core::ResourceList resources;
  std::optional<core::PlacementStatus> placement;
};
BERTH_DESCRIBE(
    VolumeStatus,
    "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeStatus",
    "The volume as its poollet reports it.",
    BERTH_FIELD(volume_id, "volumeID", "Name of the volume at its provider, TYPE://ID."),
    BERTH_FIELD(state,
                "state",
                "Pending, Available or Error.",
                {.values = {"Pending", "Available", "Error"}, .fallback = "\"Pending\""}),
    BERTH_FIELD(last_state_transition_time, "lastStateTransitionTime", "When state last changed."),
    BERTH_FIELD(access, "access", "How to reach the volume."),
    BERTH_FIELD(conditions, "conditions", "More about the volume, aspect by aspect."),
    BERTH_FIELD(resources, "resources", "The size as it is."),
    BERTH_FIELD(placement, "placement", "Where the volume is placed; written by the scheduler."))

struct Volume {
  meta::ObjectMeta metadata;
  VolumeSpec spec;
  VolumeStatus status;
};
BERTH_DESCRIBE(Volume,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.Volume",
               "A block device that outlives machines.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The volume wanted."),
               BERTH_FIELD(status, "status", "The volume as it is; written by the system."))

struct VolumeTemplateSpec {
  meta::ObjectMeta metadata;
  VolumeSpec spec;
};
BERTH_DESCRIBE(VolumeTemplateSpec,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeTemplateSpec",
               "What a generated Volume looks like.",
               BERTH_FIELD(metadata, "metadata", "Labels and annotations of the Volume."),
               BERTH_FIELD(spec, "spec", "Spec of the Volume."))

// The field selector that finds the copies of a volume.
inline constexpr std::string_view kVolumeSourceSelector = "spec.dataSource.volumeRef.name";

extern const meta::KindInfo kVolumeKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Volume>) { return kVolumeKind; }

void CheckVolumeSpec(const VolumeSpec& spec,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors);

// Whether the volume is to become a copy of that volume of its namespace, has a pool for it and is
// not there yet.
bool IsBeingCopiedFrom(const Volume& copy, std::string_view source);

// Why a class with this resize policy does not let the volume's size become what it is now; "" if
// it does.
std::string RefuseResize(const Volume& now, const Volume& before, std::string_view resize_policy);

}  // namespace berth::apis::storage
