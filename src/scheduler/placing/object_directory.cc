// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/object_directory.h"

#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/placement.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "base/check.h"
#include "client/cache/informer.h"
#include "scheduler/translate/translate.h"

namespace berth::scheduler {
namespace {

using apis::compute::kMachineKind;
using apis::storage::kBucketKind;
using apis::storage::kVolumeKind;

void ReadPlacement(const std::optional<apis::core::LocalObjectReference>& pool_ref,
                   const std::optional<apis::core::PlacementStatus>& placement,
                   ObjectRecord& record) {
  if (pool_ref) record.pool_ref = pool_ref->name;
  if (placement) {
    record.epoch = placement->epoch;
    record.placed_uid = placement->pool_uid;
    record.is_pinned = placement->pinned;
    if (placement->pool_uid.empty()) record.left_reason = placement->reason;
  }
  if (record.placed_uid.empty() && !record.pool_ref.empty()) record.is_pinned = true;
}

}  // namespace

PoolKind PoolKindOf(const meta::KindInfo& kind) {
  if (&kind == &kMachineKind) return PoolKind::kMachine;
  if (&kind == &kVolumeKind) return PoolKind::kVolume;
  CHECK(&kind == &kBucketKind) << kind.kind;
  return PoolKind::kBucket;
}

void ObjectDirectory::SetShape(const Requirements& requirements, ObjectRecord& record) {
  record.shape = board_.Intern(requirements);
  if (record.placed_uid.empty()) record.resources = requirements.resources;
}

void ObjectDirectory::ReadMachine(const meta::Object& object, ObjectRecord& record) {
  const auto& machine = object.as<apis::compute::Machine>();
  ReadPlacement(machine.spec.machine_pool_ref, machine.status.placement, record);
  record.class_name = machine.spec.machine_class_ref.name;
  record.has_local_state = HasLocalState(machine);
  record.volumes = VolumeNamesOf(machine);
  if (const auto size = classes_.find(record.class_name); size != classes_.end()) {
    SetShape(Translate(machine, size->second), record);
  } else {
    without_class_[record.class_name].insert_or_assign(record.uid, object);
  }
}

ObjectRecord ObjectDirectory::Read(const meta::Object& object) {
  ObjectRecord record;
  record.kind = &object.kind();
  record.key = client::KeyOf(object);
  record.uid = object.metadata().uid;
  record.generation = object.metadata().generation;
  record.is_deleting = object.metadata().deletion_timestamp.has_value();
  if (&object.kind() == &kMachineKind) {
    ReadMachine(object, record);
  } else if (&object.kind() == &kVolumeKind) {
    const auto& volume = object.as<apis::storage::Volume>();
    ReadPlacement(volume.spec.volume_pool_ref, volume.status.placement, record);
    if (volume.spec.volume_class_ref) record.class_name = volume.spec.volume_class_ref->name;
    if (volume.spec.claim_ref) record.claimed_by = volume.spec.claim_ref->uid;
    SetShape(Translate(volume), record);
  } else {
    const auto& bucket = object.as<apis::storage::Bucket>();
    ReadPlacement(bucket.spec.bucket_pool_ref, bucket.status.placement, record);
    if (bucket.spec.bucket_class_ref) record.class_name = bucket.spec.bucket_class_ref->name;
    SetShape(Translate(bucket), record);
  }
  return record;
}

ObjectDirectory::Effects ObjectDirectory::OnObject(const meta::Object& now) {
  Effects effects;
  ObjectRecord record = Read(now);
  // The same name under another UID: the old one is gone, even if nobody said so.
  const auto same_name = uids_.find({record.kind, record.key});
  if (same_name != uids_.end() && same_name->second != record.uid) {
    const std::string old = same_name->second;
    Unindex(records_.find(old)->second);
    board_.Forget(ObjectKey::FromUid(old));
    records_.erase(old);
    effects.settled.insert(old);
  }
  if (const auto before = records_.find(record.uid); before != records_.end()) {
    Unindex(before->second);
    NoteLoss(before->second, record, effects);
  }
  const auto place = records_.insert_or_assign(record.uid, std::move(record)).first;
  Index(place->second);
  Settle(place->second);
  Judge(place->second, effects);
  JudgeRelated(place->second, effects);
  return effects;
}

void ObjectDirectory::NoteLoss(const ObjectRecord& before,
                               ObjectRecord& now,
                               Effects& effects) const {
  if (!now.placed_uid.empty()) return;
  if (before.placed_uid.empty()) {
    now.left_uid = before.left_uid;
    now.left_reason = before.left_reason;
    return;
  }
  now.left_uid = before.placed_uid;
  // Everything but what we asked for ourselves is the host's doing.
  const bool was_asked = now.left_reason == apis::core::kReleaseDrain ||
                         now.left_reason == apis::core::kReleaseMove ||
                         now.left_reason == apis::core::kReleaseTaint ||
                         now.left_reason == apis::core::kReleasePreempted ||
                         now.left_reason == "HostReleased" || now.left_reason == "PoolLost";
  const PoolEntry* pool = pools_.FindByUid(now.left_uid);
  if (!was_asked && pool != nullptr) effects.failing.push_back(pool->index);
}

ObjectDirectory::Effects ObjectDirectory::OnGone(std::string_view uid) {
  Effects effects;
  const auto found = records_.find(uid);
  if (found == records_.end()) return effects;
  const ObjectRecord record = found->second;
  Unindex(record);
  board_.Forget(ObjectKey::FromUid(record.uid));
  if (const auto waiting = without_class_.find(record.class_name);
      waiting != without_class_.end()) {
    waiting->second.erase(record.uid);
    if (waiting->second.empty()) without_class_.erase(waiting);
  }
  records_.erase(found);
  effects.settled.insert(record.uid);
  JudgeRelated(record, effects);
  return effects;
}

ObjectDirectory::Effects ObjectDirectory::OnMachineClass(const apis::compute::MachineClass& size) {
  classes_.insert_or_assign(size.metadata.name, size);
  Effects effects;
  const auto waiting = without_class_.find(size.metadata.name);
  if (waiting == without_class_.end()) return effects;
  const auto machines = std::exchange(waiting->second, {});
  without_class_.erase(waiting);
  for (const auto& [uid, machine] : machines) {
    Effects of_one = OnObject(machine);
    effects.wanting.merge(of_one.wanting);
    effects.settled.merge(of_one.settled);
    effects.failing.insert(effects.failing.end(), of_one.failing.begin(), of_one.failing.end());
  }
  return effects;
}

void ObjectDirectory::OnMachineClassGone(const std::string& name) { classes_.erase(name); }

ObjectDirectory::Effects ObjectDirectory::OnPoolAdded(const PoolEntry& pool) {
  Effects effects;
  for (const auto& [uid, record] : records_) {
    if (PoolKindOf(*record.kind) != pool.pool.spec.kind) continue;
    if (record.placed_uid != pool.pool.spec.uid && record.pool_ref != pool.pool.spec.name) continue;
    Settle(record);
    Judge(record, effects);
  }
  return effects;
}

const ObjectRecord* ObjectDirectory::Find(std::string_view uid) const {
  const auto found = records_.find(uid);
  return found == records_.end() ? nullptr : &found->second;
}

const ObjectRecord* ObjectDirectory::FindByKey(const meta::KindInfo& kind,
                                               const client::ObjectKey& key) const {
  const auto found = uids_.find({&kind, key});
  return found == uids_.end() ? nullptr : Find(found->second);
}

// Where the store says the object is. In API mode the reference itself is the assignment; in a
// session it is one only once the host was asked (defect 12).
const PoolEntry* ObjectDirectory::PlaceOf(const ObjectRecord& record) const {
  if (!record.placed_uid.empty()) return pools_.FindByUid(record.placed_uid);
  if (record.pool_ref.empty()) return nullptr;
  const PoolEntry* pool = pools_.FindByName(PoolKindOf(*record.kind), record.pool_ref);
  return pool != nullptr && pool->pool.mode == PoolMode::kApi ? pool : nullptr;
}

bool ObjectDirectory::NeedsPlace(const ObjectRecord& record) const {
  if (record.is_deleting || !record.placed_uid.empty()) return false;
  // Volumes and buckets without a class were made elsewhere.
  if (record.kind != &kMachineKind && record.class_name.empty()) return false;
  if (PlaceOf(record) != nullptr) return false;
  if (record.kind != &kVolumeKind) return true;
  // A volume that a machine without a place names goes with it.
  const auto machines = named_by_.find(record.key);
  return machines == named_by_.end();
}

void ObjectDirectory::Settle(const ObjectRecord& record) {
  const ObjectKey key = ObjectKey::FromUid(record.uid);
  const PoolEntry* place = PlaceOf(record);
  if (place != nullptr && record.shape != nullptr) {
    Request request;
    request.key = key;
    request.shape = record.shape;
    request.priority = record.priority;
    request.has_local_state = record.has_local_state;
    board_.Settle(request, place->index);
  } else if (board_.IsConfirmed(key)) {
    // It had a place and lost it. What is only assumed belongs to an attempt that is under way.
    board_.Forget(key);
  }
}

std::variant<Ask, NotYet> ObjectDirectory::Prepare(const ObjectRecord& record) const {
  if (record.shape == nullptr) {
    return NotYet{.reason = "ClassNotFound",
                  .message = "there is no MachineClass " + record.class_name};
  }
  Ask ask;
  ask.request.key = ObjectKey::FromUid(record.uid);
  ask.request.shape = record.shape;
  ask.request.priority = record.priority;
  ask.request.has_local_state = record.has_local_state;
  if (record.is_pinned) {
    const PoolEntry* pool = pools_.FindByName(PoolKindOf(*record.kind), record.pool_ref);
    if (pool == nullptr) {
      return NotYet{.reason = "PoolNotFound", .message = "there is no pool " + record.pool_ref};
    }
    ask.request.pinned = pool->index;
  }
  if (record.left_reason == apis::core::kReleaseMove) {
    if (const PoolEntry* left = pools_.FindByUid(record.left_uid)) ask.left = left->index;
  }
  if (auto not_yet = AddVolumes(record, ask)) return *std::move(not_yet);
  return ask;
}

std::optional<NotYet> ObjectDirectory::AddVolumes(const ObjectRecord& machine, Ask& ask) const {
  for (const std::string& name : machine.volumes) {
    const ObjectRecord* volume =
        FindByKey(kVolumeKind, {.namespace_ = machine.key.namespace_, .name = name});
    if (volume == nullptr) {
      return NotYet{.reason = "VolumeNotFound", .message = "there is no Volume " + name};
    }
    if (volume->is_deleting) {
      return NotYet{.reason = "VolumeDeleting", .message = "Volume " + name + " is being deleted"};
    }
    if (!volume->claimed_by.empty() && volume->claimed_by != machine.uid) {
      return NotYet{.reason = "VolumeInUse",
                    .message = "Volume " + name + " is claimed by another machine"};
    }
    if (const PoolEntry* place = PlaceOf(*volume)) {
      ask.request.bound_volumes.push_back(place->index);
      continue;
    }
    if (!volume->placed_uid.empty()) {
      return NotYet{.reason = "VolumePoolNotFound",
                    .message = "the pool of Volume " + name + " is gone"};
    }
    if (volume->class_name.empty()) continue;  // made elsewhere, reachable from anywhere
    Request& joint = ask.request.joint.emplace_back();
    joint.key = ObjectKey::FromUid(volume->uid);
    joint.shape = volume->shape;
    ask.joint.push_back(volume);
  }
  return std::nullopt;
}

void ObjectDirectory::Index(const ObjectRecord& record) {
  uids_[{record.kind, record.key}] = record.uid;
  if (record.kind != &kMachineKind || record.is_deleting || PlaceOf(record) != nullptr) return;
  for (const std::string& name : record.volumes) {
    named_by_[{.namespace_ = record.key.namespace_, .name = name}].insert(record.uid);
  }
}

void ObjectDirectory::Unindex(const ObjectRecord& record) {
  uids_.erase({record.kind, record.key});
  for (const std::string& name : record.volumes) {
    const auto found = named_by_.find({.namespace_ = record.key.namespace_, .name = name});
    if (found == named_by_.end()) continue;
    found->second.erase(record.uid);
    if (found->second.empty()) named_by_.erase(found);
  }
}

void ObjectDirectory::Judge(const ObjectRecord& record, Effects& effects) const {
  if (NeedsPlace(record)) {
    effects.settled.erase(record.uid);
    effects.wanting.insert(record.uid);
  } else {
    effects.settled.insert(record.uid);
  }
}

void ObjectDirectory::JudgeRelated(const ObjectRecord& record, Effects& effects) const {
  if (record.kind == &kVolumeKind) {
    const auto machines = named_by_.find(record.key);
    if (machines == named_by_.end()) return;
    for (const std::string& uid : machines->second) Judge(records_.find(uid)->second, effects);
  }
  for (const std::string& name : record.volumes) {
    const ObjectRecord* volume =
        FindByKey(kVolumeKind, {.namespace_ = record.key.namespace_, .name = name});
    if (volume != nullptr) Judge(*volume, effects);
  }
}

}  // namespace berth::scheduler
