// SPDX-License-Identifier: Apache-2.0
#include "poollet/reconcile/driver.h"

#include <utility>

#include "base/check.h"
#include "iri/labels.h"

namespace berth::poollet {

using fleet::ObjectKind;

namespace {

struct Keys {
  std::string_view uid;
  std::string_view namespace_;
  std::string_view name;
};

Keys KeysOf(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kMachine:
      return {iri::kMachineUidLabel, iri::kMachineNamespaceLabel, iri::kMachineNameLabel};
    case ObjectKind::kVolume:
      return {iri::kVolumeUidLabel, iri::kVolumeNamespaceLabel, iri::kVolumeNameLabel};
    case ObjectKind::kVolumeSnapshot:
      return {iri::kSnapshotUidLabel, iri::kSnapshotNamespaceLabel, iri::kSnapshotNameLabel};
    case ObjectKind::kBucket:
      return {iri::kBucketUidLabel, iri::kBucketNamespaceLabel, iri::kBucketNameLabel};
    case ObjectKind::kReservation: break;
  }
  CHECK(false) << "a reservation is in no runtime";
  return {};
}

bool IsBeingDeleted(const iri::Machine& machine) {
  return !machine.metadata.deleted_at.is_zero() ||
         machine.status.state == iri::MachineState::kTerminating;
}
bool IsBeingDeleted(const iri::Volume& volume) { return !volume.metadata.deleted_at.is_zero(); }
bool IsBeingDeleted(const iri::VolumeSnapshot& snapshot) {
  return !snapshot.metadata.deleted_at.is_zero();
}
bool IsBeingDeleted(const iri::Bucket& bucket) { return !bucket.metadata.deleted_at.is_zero(); }

}  // namespace

std::string_view UidLabel(ObjectKind kind) { return KeysOf(kind).uid; }

std::vector<RuntimeObject> Observation::AsRuntimeObjects() const {
  std::vector<RuntimeObject> out;
  std::visit(
      [&](const auto& list) {
        for (const auto& object : list) {
          out.push_back({.id = object.metadata.id,
                         .is_being_deleted = IsBeingDeleted(object),
                         .annotations = object.metadata.annotations});
        }
      },
      objects);
  return out;
}

namespace internal {

Seen SeenOf(ObjectKind kind, const iri::ObjectMetadata& metadata) {
  const Keys keys = KeysOf(kind);
  Seen seen;
  seen.kind = kind;
  seen.id = metadata.id;
  seen.uid = iri::LabelOf(metadata, keys.uid);
  seen.namespace_ = iri::LabelOf(metadata, keys.namespace_);
  seen.name = iri::LabelOf(metadata, keys.name);
  return seen;
}

iri::ObjectFilter OfUid(ObjectKind kind, std::string uid, std::string cluster_id) {
  iri::ObjectFilter filter = OfCluster(std::move(cluster_id));
  filter.labels[std::string(UidLabel(kind))] = std::move(uid);
  return filter;
}

iri::ObjectFilter OfCluster(std::string cluster_id) {
  iri::ObjectFilter filter;
  filter.labels[std::string(iri::kClusterIdLabel)] = std::move(cluster_id);
  return filter;
}

}  // namespace internal
}  // namespace berth::poollet
