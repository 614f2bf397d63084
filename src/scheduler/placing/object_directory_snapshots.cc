// SPDX-License-Identifier: Apache-2.0
// Snapshots and copies in the ObjectDirectory. A snapshot goes where its volume is, a volume that
// begins with one, or with a copy of another, goes where that is: for all there is one pool or
// none.
#include <utility>

#include "apis/placement.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "scheduler/placing/object_directory.h"

namespace berth::scheduler {
namespace {

using apis::storage::kVolumeKind;
using apis::storage::kVolumeSnapshotKind;

// The pool has the volume: whoever keeps others away from it does not mean this.
Toleration TolerateAll() {
  Toleration all;
  all.op = Toleration::Op::kAny;
  return all;
}

}  // namespace

void ObjectDirectory::ReadSnapshot(const meta::Object& object, ObjectRecord& record) {
  const auto& snapshot = object.as<apis::storage::VolumeSnapshot>();
  auto facts = std::make_shared<SnapshotFacts>();
  facts->source_kind = &kVolumeKind;
  facts->source = snapshot.spec.volume_ref.name;
  facts->is_ready = snapshot.status.state == "Ready";
  facts->is_failed = snapshot.status.state == "Failed";
  if (snapshot.status.size) facts->bytes = snapshot.status.size->Value();
  record.snapshot = std::move(facts);
  Resources taken;
  if (const auto& placement = snapshot.status.placement) {
    for (const auto& [name, amount] : apis::ToAmounts(placement->resources)) {
      if (name != apis::kShare) taken[name] = amount;
    }
  }
  ShapeSnapshot(record, std::move(taken));
}

void ObjectDirectory::ReadSource(const meta::Object& object, ObjectRecord& record) const {
  const auto& volume = object.as<apis::storage::Volume>();
  const auto& source = volume.spec.data_source;
  if (!source || record.class_name.empty()) return;
  const auto& named = source->volume_ref ? source->volume_ref : source->volume_snapshot_ref;
  if (!named) return;
  auto facts = std::make_shared<SnapshotFacts>();
  facts->source_kind = source->volume_ref ? &kVolumeKind : &kVolumeSnapshotKind;
  facts->source = named->name;
  const auto* size = apis::core::FindResource(volume.spec.resources, apis::core::kStorage);
  if (size != nullptr) facts->bytes = size->Value();
  record.snapshot = std::move(facts);
}

void ObjectDirectory::ShapeSnapshot(ObjectRecord& record, Resources otherwise) {
  Requirements wanted;
  wanted.kind = PoolKind::kVolume;
  wanted.namespace_name = record.key.namespace_;
  wanted.tolerations.push_back(TolerateAll());
  wanted.resources = std::move(otherwise);
  const ObjectRecord* volume = FindByKey(
      kVolumeKind, {.namespace_ = record.key.namespace_, .name = record.snapshot->source});
  if (volume != nullptr && volume->shape != nullptr) {
    wanted.class_name = volume->class_name;
    // Its volume may have grown since.
    if (wanted.resources.empty()) wanted.resources = RequirementsOf(volume->shape).resources;
  }
  record.class_name = wanted.class_name;
  record.shape = board_.Intern(std::move(wanted));
}

void ObjectDirectory::ReshapeSnapshotsOf(const ObjectRecord& volume) {
  if (volume.kind != &kVolumeKind) return;
  for (auto at = snapshots_.lower_bound({volume.key, ""});
       at != snapshots_.end() && at->first.first == volume.key;
       ++at) {
    ObjectRecord& snapshot = records_.find(at->first.second)->second;
    if (snapshot.placed_uid.empty()) ShapeSnapshot(snapshot, {});
  }
}

const PoolEntry* ObjectDirectory::SourcePoolOf(const ObjectRecord& snapshot) const {
  const ObjectRecord* volume = FindByKey(
      kVolumeKind, {.namespace_ = snapshot.key.namespace_, .name = snapshot.snapshot->source});
  return volume == nullptr ? nullptr : PlaceOf(*volume);
}

std::optional<NotYet> ObjectDirectory::AddSource(const ObjectRecord& record, Ask& ask) const {
  if (record.snapshot == nullptr) return std::nullopt;
  const bool is_copy = record.kind == &kVolumeKind && record.snapshot->source_kind == &kVolumeKind;
  auto not_yet = is_copy                       ? AddCopiedVolume(record, ask)
                 : record.kind == &kVolumeKind ? AddSourceSnapshot(record, ask)
                                               : AddSourceVolume(record, ask);
  if (not_yet || !record.is_pinned) return not_yet;
  const PoolEntry* own = pools_.FindByName(PoolKind::kVolume, record.pool_ref);
  if (own == nullptr || own->index == ask.request.pinned) return std::nullopt;
  const PoolEntry* source = pools_.Find(*ask.request.pinned);
  const std::string_view what = record.snapshot->source_kind->kind;
  return NotYet{.reason = std::string(what) + "OnOtherPool",
                .message = "spec.volumePoolRef is " + record.pool_ref + ", but " +
                           std::string(what) + " " + record.snapshot->source + " is on pool " +
                           (source == nullptr ? std::string() : source->pool.spec.name)};
}

std::optional<NotYet> ObjectDirectory::AddSourceVolume(const ObjectRecord& snapshot,
                                                       Ask& ask) const {
  const std::string name = "Volume " + snapshot.snapshot->source;
  const ObjectRecord* volume = FindByKey(
      kVolumeKind, {.namespace_ = snapshot.key.namespace_, .name = snapshot.snapshot->source});
  if (volume == nullptr) {
    return NotYet{.reason = "VolumeNotFound", .message = "there is no " + name};
  }
  if (volume->is_deleting) {
    return NotYet{.reason = "VolumeDeleting", .message = name + " is being deleted"};
  }
  if (volume->class_name.empty()) {
    return NotYet{.reason = "VolumeWithoutClass",
                  .message = name + " was made elsewhere: no pool could " +
                             (snapshot.kind == &kVolumeKind ? "copy it" : "take a snapshot of it")};
  }
  const PoolEntry* place = PlaceOf(*volume);
  if (place == nullptr) {
    return NotYet{.reason = "VolumeNotPlaced", .message = name + " has no pool yet"};
  }
  ask.request.pinned = place->index;
  return std::nullopt;
}

ObjectDirectory::ByName& ObjectDirectory::TiedTo(const ObjectRecord& record) {
  if (record.kind == &kVolumeSnapshotKind) return snapshots_;
  return record.snapshot->source_kind == &kVolumeKind ? clones_ : restores_;
}

std::optional<NotYet> ObjectDirectory::AddCopiedVolume(const ObjectRecord& copy, Ask& ask) const {
  if (auto not_yet = AddSourceVolume(copy, ask)) return not_yet;
  const std::string name = "Volume " + copy.snapshot->source;
  const ObjectRecord* volume =
      FindByKey(kVolumeKind, {.namespace_ = copy.key.namespace_, .name = copy.snapshot->source});
  const PoolEntry* place = pools_.Find(*ask.request.pinned);
  if (place != nullptr && place->pool.mode == PoolMode::kApi) {
    // It would not know the field, and make an empty one.
    return NotYet{.reason = "PoolCannotCopy",
                  .message = name + " is on pool " + place->pool.spec.name +
                             ", whose poollet cannot copy volumes"};
  }
  if (!volume->is_available) {
    return NotYet{.reason = "VolumeNotAvailable", .message = name + " is not available yet"};
  }
  const Resources& has = RequirementsOf(volume->shape).resources;
  const auto bytes = has.find(std::string(apis::core::kStorage));
  if (bytes != has.end() && copy.snapshot->bytes < bytes->second) {
    return NotYet{.reason = "VolumeTooLarge",
                  .message = "spec.resources[storage] is " + std::to_string(copy.snapshot->bytes) +
                             " bytes, " + name + " needs " + std::to_string(bytes->second)};
  }
  if (volume->is_encrypted && !copy.is_encrypted) {
    return NotYet{.reason = "VolumeEncrypted",
                  .message = name +
                             " is encrypted, and so is its copy: spec.encryption must name a "
                             "Secret with the same key"};
  }
  return std::nullopt;
}

std::optional<NotYet> ObjectDirectory::AddSourceSnapshot(const ObjectRecord& volume,
                                                         Ask& ask) const {
  const std::string name = "VolumeSnapshot " + volume.snapshot->source;
  const ObjectRecord* snapshot = FindByKey(
      kVolumeSnapshotKind, {.namespace_ = volume.key.namespace_, .name = volume.snapshot->source});
  if (snapshot == nullptr) {
    return NotYet{.reason = "SnapshotNotFound", .message = "there is no " + name};
  }
  if (snapshot->is_deleting) {
    return NotYet{.reason = "SnapshotDeleting", .message = name + " is being deleted"};
  }
  if (snapshot->snapshot->is_failed) {
    return NotYet{.reason = "SnapshotFailed", .message = name + " could not be taken"};
  }
  if (!snapshot->snapshot->is_ready) {
    return NotYet{.reason = "SnapshotNotReady", .message = name + " is not ready yet"};
  }
  // A poollet that speaks the API takes snapshots where their volumes are, and says no more.
  const PoolEntry* place = PlaceOf(*snapshot);
  if (place == nullptr && snapshot->placed_uid.empty()) place = SourcePoolOf(*snapshot);
  if (place == nullptr) {
    return NotYet{.reason = "SnapshotPoolNotFound", .message = "the pool of " + name + " is gone"};
  }
  if (volume.snapshot->bytes < snapshot->snapshot->bytes) {
    return NotYet{.reason = "SnapshotTooLarge",
                  .message = "spec.resources[storage] is " +
                             std::to_string(volume.snapshot->bytes) + " bytes, " + name +
                             " needs " + std::to_string(snapshot->snapshot->bytes)};
  }
  ask.request.pinned = place->index;
  return std::nullopt;
}

}  // namespace berth::scheduler
