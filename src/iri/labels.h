// SPDX-License-Identifier: Apache-2.0
// Keys that poollets put on runtime objects. Those of ironcore.dev are fixed by compatibility:
// other runtimes filter by them and store them. Those of berth.dev are ours.
#pragma once

#include <array>
#include <string_view>

namespace berth::iri {

// Machines: labels.
inline constexpr std::string_view kMachineUidLabel = "machinepoollet.ironcore.dev/machine-uid";
inline constexpr std::string_view kMachineNamespaceLabel =
    "machinepoollet.ironcore.dev/machine-namespace";
inline constexpr std::string_view kMachineNameLabel = "machinepoollet.ironcore.dev/machine-name";
// Machines: annotations. Generations are decimal numbers.
inline constexpr std::string_view kMachineGenerationAnnotation =
    "machinepoollet.ironcore.dev/machine-generation";
inline constexpr std::string_view kIriMachineGenerationAnnotation =
    "machinepoollet.ironcore.dev/irimachine-generation";
// JSON: name of the machine's interface -> {"name":..,"uid":..}.
inline constexpr std::string_view kNicMappingAnnotation =
    "machinepoollet.ironcore.dev/networkinterfacemapping";
// Followed by the name: labels and annotations.
inline constexpr std::string_view kMachineDownwardPrefix =
    "downward-api.machinepoollet.ironcore.dev/";

// Attributes of a machine's network interface: each a JSON object of the labels below.
inline constexpr std::string_view kRawNicLabelsAttribute = "rawNICLabels";
inline constexpr std::string_view kRawNetworkLabelsAttribute = "rawNetworkLabels";
inline constexpr std::string_view kNicUidLabel = "machinepoollet.ironcore.dev/nic-uid";
inline constexpr std::string_view kNicNamespaceLabel = "machinepoollet.ironcore.dev/nic-namespace";
inline constexpr std::string_view kNicNameLabel = "machinepoollet.ironcore.dev/nic-name";
inline constexpr std::string_view kNetworkUidLabel = "machinepoollet.ironcore.dev/network-uid";
inline constexpr std::string_view kNetworkNamespaceLabel =
    "machinepoollet.ironcore.dev/network-namespace";
inline constexpr std::string_view kNetworkNameLabel = "machinepoollet.ironcore.dev/network-name";
// Which Network it is: the server alone says it. Its id may be any name that a user chose.
inline constexpr std::string_view kNetworkUidAttribute = "berth.dev/network-uid";
// Never those of a user.
inline constexpr std::array<std::string_view, 3> kServersNicAttributes = {
    kNetworkUidAttribute, kRawNicLabelsAttribute, kRawNetworkLabelsAttribute};

// Attribute of a machine's volume connection: a JSON object of volume-uid, -namespace, -name.
inline constexpr std::string_view kRawVolumeLabelsAttribute = "rawVolumeLabels";
inline constexpr std::string_view kConnectionVolumeUidLabel =
    "machinepoollet.ironcore.dev/volume-uid";
inline constexpr std::string_view kConnectionVolumeNamespaceLabel =
    "machinepoollet.ironcore.dev/volume-namespace";
inline constexpr std::string_view kConnectionVolumeNameLabel =
    "machinepoollet.ironcore.dev/volume-name";

// Volumes.
inline constexpr std::string_view kVolumeUidLabel = "volumepoollet.ironcore.dev/volume-uid";
inline constexpr std::string_view kVolumeNamespaceLabel =
    "volumepoollet.ironcore.dev/volume-namespace";
inline constexpr std::string_view kVolumeNameLabel = "volumepoollet.ironcore.dev/volume-name";
inline constexpr std::string_view kVolumeDownwardPrefix =
    "downward-api.volumepoollet.ironcore.dev/";

// Snapshots of volumes.
inline constexpr std::string_view kSnapshotUidLabel =
    "volumepoollet.ironcore.dev/volume-snapshot-uid";
inline constexpr std::string_view kSnapshotNamespaceLabel =
    "volumepoollet.ironcore.dev/volume-snapshot-namespace";
inline constexpr std::string_view kSnapshotNameLabel =
    "volumepoollet.ironcore.dev/volume-snapshot-name";
inline constexpr std::string_view kSnapshotDownwardPrefix =
    "downward-api.volumepoollet.ironcore.dev/volume-snapshot-";

// Buckets.
inline constexpr std::string_view kBucketUidLabel = "bucketpoollet.ironcore.dev/bucket-uid";
inline constexpr std::string_view kBucketNamespaceLabel =
    "bucketpoollet.ironcore.dev/bucket-namespace";
inline constexpr std::string_view kBucketNameLabel = "bucketpoollet.ironcore.dev/bucket-name";
inline constexpr std::string_view kBucketDownwardPrefix =
    "downward-api.bucketpoollet.ironcore.dev/";

// Whose object it is: what carries another cluster's id, or none, is never touched.
inline constexpr std::string_view kClusterIdLabel = "berth.dev/cluster-id";
// The placement that it belongs to, decimal: incarnation and placement number.
inline constexpr std::string_view kIncarnationLabel = "berth.dev/incarnation";
inline constexpr std::string_view kPlacementLabel = "berth.dev/placement";
// "Move": a runtime that can fence starts this guest only under a running lease (iri/host.h).
inline constexpr std::string_view kOnPoolLossAnnotation = "berth.dev/on-pool-loss";
inline constexpr std::string_view kOnPoolLossMove = "Move";

}  // namespace berth::iri
