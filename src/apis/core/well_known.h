// SPDX-License-Identifier: Apache-2.0
// Labels, annotations, finalizers and secret types that other programs know by name.
#pragma once

#include <string_view>

namespace berth::apis::core {

// Labels.
inline constexpr std::string_view kWatchFilterLabel = "common.ironcore.dev/watch-filter";
inline constexpr std::string_view kArchitectureLabel = "common.ironcore.dev/architecture";
inline constexpr std::string_view kRegionLabel = "topology.ironcore.dev/region";
inline constexpr std::string_view kZoneLabel = "topology.ironcore.dev/zone";
inline constexpr std::string_view kRequesterUidLabel = "ipam.ironcore.dev/requester-uid";
inline constexpr std::string_view kNamespaceNameLabel = "kubernetes.io/metadata.name";

// Annotations.
inline constexpr std::string_view kReconcileRequestedAtAnnotation =
    "reconcile.common.ironcore.dev/requested-at";
inline constexpr std::string_view kManagedByAnnotation = "common.ironcore.dev/managed-by";
inline constexpr std::string_view kEphemeralManagedByAnnotation =
    "common.ironcore.dev/ephemeral-managed-by";
inline constexpr std::string_view kEphemeralManager = "ephemeral-manager";
inline constexpr std::string_view kReplenishQuotaAnnotation =
    "core.ironcore.dev/replenish-resourcequota";
// On a deleted object that waits: who uses it, "machine web".
inline constexpr std::string_view kUsedByAnnotation = "berth.dev/used-by";

// Finalizers.
inline constexpr std::string_view kMachineClassFinalizer = "compute.ironcore.dev/machineclass";
inline constexpr std::string_view kVolumeClassFinalizer = "storage.ironcore.dev/volumeclass";
inline constexpr std::string_view kBucketClassFinalizer = "storage.ironcore.dev/bucketclass";
inline constexpr std::string_view kPriorityClassFinalizer = "berth.dev/priorityclass";
// Of volumes, network interfaces, networks and secrets; only while they are deleted and in use.
inline constexpr std::string_view kInUseFinalizer = "berth.dev/in-use";
inline constexpr std::string_view kPrefixFinalizer = "ipam.ironcore.dev/prefix";
inline constexpr std::string_view kMachineFinalizer = "machinepoollet.ironcore.dev/machine";
inline constexpr std::string_view kVolumeFinalizer = "volumepoollet.ironcore.dev/volume";
inline constexpr std::string_view kVolumeSnapshotFinalizer =
    "volumepoollet.ironcore.dev/volume-snapshot";
inline constexpr std::string_view kBucketFinalizer = "bucketpoollet.ironcore.dev/bucket";
inline constexpr std::string_view kNamespaceFinalizer = "kubernetes";

// Types of Secrets, and the entries that are read when a reference names none.
inline constexpr std::string_view kIgnitionSecretType = "compute.ironcore.dev/ignition";
inline constexpr std::string_view kVolumeAuthSecretType = "storage.ironcore.dev/volume-auth";
inline constexpr std::string_view kVolumeEncryptionSecretType =
    "storage.ironcore.dev/volume-encryption";
inline constexpr std::string_view kIgnitionKey = "ignition.yaml";
inline constexpr std::string_view kEncryptionKey = "encryptionKey";

}  // namespace berth::apis::core
