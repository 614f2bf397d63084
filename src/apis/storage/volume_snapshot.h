// SPDX-License-Identifier: Apache-2.0
// VolumeSnapshot: the contents of a volume at one moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apis/core/placement.h"
#include "apis/core/references.h"
#include "apis/storage/volume.h"
#include "meta/kind.h"
#include "meta/quantity.h"

namespace berth::apis::storage {

struct VolumeSnapshotSpec {
  core::LocalObjectReference volume_ref;
  std::optional<core::LocalObjectReference> volume_pool_ref;
  bool operator==(const VolumeSnapshotSpec&) const = default;
};
BERTH_DESCRIBE(VolumeSnapshotSpec,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeSnapshotSpec",
               "What to keep.",
               BERTH_FIELD(volume_ref,
                           "volumeRef",
                           "The volume to take a snapshot of. Cannot change.",
                           {.always = true}),
               BERTH_FIELD(volume_pool_ref,
                           "volumePoolRef",
                           "The pool that holds the snapshot, which is that of its volume; set by "
                           "the scheduler. Set once."))

struct VolumeSnapshotStatus {
  std::string snapshot_id;
  std::string state;
  WallTime last_state_transition_time;
  std::optional<meta::Quantity> size;
  std::vector<VolumeCondition> conditions;
  std::optional<core::PlacementStatus> placement;
  bool operator==(const VolumeSnapshotStatus&) const = default;
};
BERTH_DESCRIBE(
    VolumeSnapshotStatus,
    "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeSnapshotStatus",
    "The snapshot as its poollet reports it.",
    BERTH_FIELD(snapshot_id, "snapshotID", "Name of the snapshot at its provider, TYPE://ID."),
    BERTH_FIELD(state,
                "state",
                "Pending, Ready or Failed.",
                {.values = {"Pending", "Ready", "Failed"}, .fallback = "\"Pending\""}),
    BERTH_FIELD(last_state_transition_time, "lastStateTransitionTime", "When state last changed."),
    BERTH_FIELD(size, "size", "How large a volume must be to hold it."),
    BERTH_FIELD(conditions, "conditions", "More about the snapshot, aspect by aspect."),
    BERTH_FIELD(placement, "placement", "Where the snapshot is placed; written by the scheduler."))

struct VolumeSnapshot {
  meta::ObjectMeta metadata;
  VolumeSnapshotSpec spec;
  VolumeSnapshotStatus status;
};
BERTH_DESCRIBE(VolumeSnapshot,
               "com.github.ironcore-dev.ironcore.api.storage.v1alpha1.VolumeSnapshot",
               "The contents of a volume at one moment.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "What to keep."),
               BERTH_FIELD(status, "status", "The snapshot as it is; written by the system."))

extern const meta::KindInfo kVolumeSnapshotKind;
inline const meta::KindInfo& BerthKind(meta::Tag<VolumeSnapshot>) { return kVolumeSnapshotKind; }

}  // namespace berth::apis::storage
