// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/object_directory.h"

#include <algorithm>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/loss_reasons.h"
#include "apis/core/placement.h"
#include "apis/core/reservation.h"
#include "apis/object_references.h"
#include "apis/placement.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "base/check.h"
#include "base/hash.h"
#include "client/cache/informer.h"
#include "scheduler/placing/drafts.h"
#include "scheduler/translate/translate.h"

namespace berth::scheduler {
namespace {

using apis::compute::kMachineKind;
using apis::core::kReservationKind;
using apis::storage::kBucketKind;
using apis::storage::kVolumeKind;
using apis::storage::kVolumeSnapshotKind;

void ReadPlacement(const std::optional<apis::core::LocalObjectReference>& pool_ref,
                   const std::optional<apis::core::PlacementStatus>& placement,
                   ObjectRecord& record) {
  if (pool_ref) record.pool_ref = pool_ref->name;
  if (placement) {
    record.epoch = placement->epoch;
    record.placed_uid = placement->pool_uid;
    record.is_pinned = placement->pinned;
  }
  if (record.placed_uid.empty() && !record.pool_ref.empty()) record.is_pinned = true;
}

// Of a namespace and a name; they hold no slash.
uint64_t HashOf(std::string_view namespace_, std::string_view name) {
  return Fnv1a(name, Fnv1a("/", Fnv1a(namespace_)));
}

// Everybody that is filed under the name.
template <class Index, class Fn>
void ForEachOf(const Index& index, const client::ObjectKey& key, Fn fn) {
  for (auto at = index.lower_bound({key, ""}); at != index.end() && at->first.first == key; ++at) {
    fn(*at->second);
  }
}

// What stands for a set on the board; never 0, which means none.
uint64_t SetOf(const std::string& uid) {
  const ObjectKey key = ObjectKey::FromUid(uid);
  return (key.high ^ key.low) | 1;
}

}  // namespace

PoolKind PoolKindOf(const meta::KindInfo& kind) {
  if (&kind == &kMachineKind || &kind == &kReservationKind) return PoolKind::kMachine;
  if (&kind == &kVolumeKind || &kind == &kVolumeSnapshotKind) return PoolKind::kVolume;
  CHECK(&kind == &kBucketKind) << kind.kind;
  return PoolKind::kBucket;
}

ObjectDirectory::Name::Name(const meta::KindInfo* kind, const client::ObjectKey& key)
    : kind(kind), key(&key), hash(HashOf(key.namespace_, key.name)) {}

bool ObjectDirectory::Name::operator==(const Name& other) const {
  return kind == other.kind && *key == *other.key;
}

void ObjectDirectory::ReadMachine(const meta::Object& object, ObjectRecord& record) {
  const auto& machine = object.as<apis::compute::Machine>();
  ReadPlacement(machine.spec.machine_pool_ref, machine.status.placement, record);
  record.class_name = machine.spec.machine_class_ref.name;
  record.has_local_state = HasLocalState(machine);
  record.volumes = VolumeNamesOf(machine);
  if (machine.spec.placement) {
    record.priority = machine.spec.placement->priority.value_or(0);
    record.priority_class = PriorityClassNamed(machine.spec.placement->priority_class_name);
    // Once it was bound it has used its part, and goes where any other would.
    const auto& reservation = machine.spec.placement->reservation_ref;
    if (reservation && record.epoch == 0) record.reservation = reservation->name;
  }
  record.is_leaving = machine.status.placement && !machine.status.placement->release.empty();
  for (const meta::OwnerReference& owner : machine.metadata.owner_references) {
    if (owner.controller.value_or(false) && owner.kind == apis::berth_dev::kMachineSetKind.kind) {
      record.set = SetOf(owner.uid);
    }
  }
  record.shape = ShapeOf(machine);
}

Shape ObjectDirectory::ShapeOf(const apis::compute::Machine& machine) {
  const apis::compute::MachineClass* size = FindClass(machine.spec.machine_class_ref.name);
  return size == nullptr ? nullptr : board_.Intern(Translate(machine, *size));
}

const apis::compute::MachineClass* ObjectDirectory::FindClass(std::string_view name) const {
  const auto found = classes_.find(name);
  if (found != classes_.end()) return &found->second;
  if (drafts_ == nullptr) return nullptr;
  const auto draft = drafts_->classes.find(name);
  return draft == drafts_->classes.end() ? nullptr : &draft->second;
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
  } else if (&object.kind() == &kReservationKind) {
    ReadReservation(object, record);
  } else if (&object.kind() == &kVolumeKind) {
    const auto& volume = object.as<apis::storage::Volume>();
    ReadPlacement(volume.spec.volume_pool_ref, volume.status.placement, record);
    if (volume.spec.volume_class_ref) record.class_name = volume.spec.volume_class_ref->name;
    if (volume.spec.claim_ref) record.claimed_by = volume.spec.claim_ref->uid;
    record.is_kept = apis::IsKeptForUser(volume.metadata);
    record.is_available = volume.status.state == "Available";
    record.is_encrypted = volume.spec.encryption.has_value();
    record.shape = board_.Intern(Translate(volume));
    ReadSource(object, record);
  } else if (&object.kind() == &kVolumeSnapshotKind) {
    const auto& snapshot = object.as<apis::storage::VolumeSnapshot>();
    ReadPlacement(snapshot.spec.volume_pool_ref, snapshot.status.placement, record);
    ReadSnapshot(object, record);
  } else {
    const auto& bucket = object.as<apis::storage::Bucket>();
    ReadPlacement(bucket.spec.bucket_pool_ref, bucket.status.placement, record);
    if (bucket.spec.bucket_class_ref) record.class_name = bucket.spec.bucket_class_ref->name;
    record.shape = board_.Intern(Translate(bucket));
  }
  return record;
}

bool ObjectDirectory::PassesOver(const meta::Object& now) {
  const meta::ObjectMeta& metadata = now.metadata();
  const client::ObjectKey key = client::KeyOf(now);
  const ObjectRecord* known = Find(metadata.uid);
  const bool is_twin = known != nullptr && (known->kind != &now.kind() || known->key != key);
  if (!is_twin && !metadata.uid.empty()) {
    twins_.Remove(now.kind(), key);
    return false;
  }
  twins_.Put(now.kind(), key, metadata.uid, {&now.kind(), key}, is_twin ? known->key.name : "");
  return true;
}

ObjectDirectory::Waiting ObjectDirectory::TakeTwin(std::string_view uid) {
  Waiting waiting;
  if (auto twin = twins_.Take(uid)) waiting.push_back(*std::move(twin));
  return waiting;
}

ObjectDirectory::Effects ObjectDirectory::OnObject(const meta::Object& now) {
  Effects effects;
  ObjectRecord record = Read(now);
  if (const auto before = records_.find(record.uid); before != records_.end()) {
    Unindex(before->second);
    NoteLoss(before->second, now, effects);
  }
  NoteNomination(record, now);
  const auto place = records_.insert_or_assign(record.uid, std::move(record)).first;
  Index(place->second);
  Settle(place->second);
  ReshapeSnapshotsOf(place->second);
  if (!place->second.claimed_by.empty()) {
    // A volume that came to a host ties its machine to it.
    if (const ObjectRecord* machine = Find(place->second.claimed_by)) Settle(*machine);
  }
  Judge(place->second, effects);
  JudgeRelated(place->second, effects);
  return effects;
}

void ObjectDirectory::NoteLoss(const ObjectRecord& before,
                               const meta::Object& now,
                               Effects& effects) {
  const auto& placement = apis::PlacementOf(now);
  if (placement && !placement->pool_uid.empty()) {
    losses_.erase(before.uid);
    return;
  }
  if (before.placed_uid.empty()) return;
  Loss& loss = losses_[before.uid];
  loss.pool_uid = before.placed_uid;
  loss.reason = placement ? placement->reason : std::string();
  // Everything but what we asked for ourselves, or an operator, is the host's doing.
  const bool was_asked =
      loss.reason == apis::core::kReleaseDrain || loss.reason == apis::core::kReleaseMove ||
      loss.reason == apis::core::kReleaseTaint || loss.reason == apis::core::kReleasePreempted ||
      loss.reason == apis::core::kReleaseExpired || loss.reason == "HostReleased" ||
      loss.reason == apis::core::kReasonPoolLost ||
      loss.reason == apis::core::kReasonOperatorFenced;
  const PoolEntry* pool = pools_.FindByUid(loss.pool_uid);
  if (!was_asked && pool != nullptr) effects.given_back.push_back({before.uid, pool->index});
}

ObjectDirectory::Effects ObjectDirectory::OnGone(std::string_view uid) {
  Effects effects;
  const auto found = records_.find(uid);
  if (found == records_.end()) return effects;
  const ObjectRecord record = found->second;
  Unindex(found->second);
  board_.Forget(ObjectKey::FromUid(record.uid));
  if (record.reserves != nullptr) {
    std::erase_if(copies_, [&](const auto& copy) {
      if (copy.second != record.uid) return false;
      board_.Forget(copy.first);
      return true;
    });
  }
  losses_.erase(record.uid);
  nominations_.erase(record.uid);
  records_.erase(found);
  effects.settled.insert(record.uid);
  JudgeRelated(record, effects);
  return effects;
}

ObjectDirectory::Waiting ObjectDirectory::OnMachineClass(const apis::compute::MachineClass& size) {
  classes_.insert_or_assign(size.metadata.name, size);
  Waiting waiting;
  const auto found = without_class_.find(size.metadata.name);
  if (found == without_class_.end()) return waiting;
  for (const ObjectRecord* record : found->second) waiting.emplace_back(record->kind, record->key);
  std::ranges::sort(
      waiting, {}, [](const auto& one) { return std::pair(one.first->kind, one.second); });
  return waiting;
}

void ObjectDirectory::NoteNomination(const ObjectRecord& record, const meta::Object& now) {
  const auto& placement = apis::PlacementOf(now);
  if (placement && placement->nominated && placement->pool_uid.empty()) {
    nominations_.insert_or_assign(record.uid, *placement->nominated);
  } else {
    nominations_.erase(record.uid);
  }
}

const apis::core::Nomination* ObjectDirectory::NominationOf(std::string_view uid) const {
  const auto found = nominations_.find(uid);
  return found == nominations_.end() ? nullptr : &found->second;
}

uint16_t ObjectDirectory::PriorityClassNamed(const std::string& name) {
  if (name.empty()) return 0;
  const auto known = priority_classes_.find(name);
  if (known != priority_classes_.end()) return known->second;
  if (priority_rules_.size() > UINT16_MAX) return 0;  // more than anybody has
  const auto number = static_cast<uint16_t>(priority_rules_.size());
  priority_rules_.push_back({.name = name});
  priority_classes_.emplace(name, number);
  return number;
}

ObjectDirectory::Effects ObjectDirectory::OnPriorityClass(const std::string& name,
                                                          const apis::k8s::PriorityClass* now) {
  Effects effects;
  const uint16_t number = PriorityClassNamed(name);
  if (number == 0) return effects;
  PriorityRules& rules = priority_rules_[number];
  const bool was_preemptible = rules.is_preemptible;
  const bool is_preemptible = now != nullptr && apis::k8s::IsPreemptible(*now);
  rules.value = now == nullptr ? 0 : now->value;
  rules.may_preempt = now == nullptr || now->preemption_policy != apis::k8s::kPreemptNever;
  if (was_preemptible == is_preemptible) return effects;
  for (const auto& [uid, record] : records_) {
    if (record.priority_class == number) CountPreemptible(record, -1);
  }
  rules.is_preemptible = is_preemptible;
  for (const auto& [uid, record] : records_) {
    if (record.priority_class != number) continue;
    CountPreemptible(record, 1);
    Settle(record);
  }
  if (!is_preemptible) return effects;
  for (const auto& [uid, record] : records_) {
    if (MayPreempt(record) && NeedsPlace(record)) effects.wanting.insert(uid);
  }
  return effects;
}

void ObjectDirectory::OnMachineSet(const std::string& uid, const apis::berth_dev::MachineSet* now) {
  if (now == nullptr || !now->spec.disruption_budget) {
    budgets_.erase(SetOf(uid));
  } else {
    budgets_[SetOf(uid)] = now->spec.disruption_budget->max_unavailable.value_or(0);
  }
}

void ObjectDirectory::CountPreemptible(const ObjectRecord& record, int sign) {
  if (!priority_rules_[record.priority_class].is_preemptible || record.placed_uid.empty()) return;
  const auto count = preemptible_.try_emplace(record.priority, 0).first;
  count->second += static_cast<size_t>(sign);
  if (count->second == 0) preemptible_.erase(count);
}

bool ObjectDirectory::MayPreempt(const ObjectRecord& record) const {
  return record.kind == &kMachineKind && !preemptible_.empty() &&
         preemptible_.begin()->first < record.priority &&
         priority_rules_[record.priority_class].may_preempt;
}

std::map<uint64_t, int64_t> ObjectDirectory::BudgetsNow() const {
  std::map<uint64_t, int64_t> left(budgets_.begin(), budgets_.end());
  if (left.empty()) return left;
  for (const auto& [uid, record] : records_) {
    if (record.set == 0 || record.is_deleting) continue;
    if (!record.placed_uid.empty() && !record.is_leaving) continue;
    if (const auto budget = left.find(record.set); budget != left.end()) --budget->second;
  }
  return left;
}

std::vector<const ObjectRecord*> ObjectDirectory::FindPlaced(
    PoolIndex pool, std::span<const ObjectKey> keys) const {
  std::vector<const ObjectRecord*> found(keys.size(), nullptr);
  const PoolEntry* entry = pools_.Find(pool);
  if (entry == nullptr) return found;
  for (const auto& [uid, record] : records_) {
    if (record.placed_uid != entry->pool.spec.uid) continue;
    const auto at = std::ranges::find(keys, ObjectKey::FromUid(uid));
    if (at != keys.end()) found[static_cast<size_t>(at - keys.begin())] = &record;
  }
  return found;
}

bool ObjectDirectory::IsTiedToHost(const ObjectRecord& record) const {
  if (record.has_local_state) return true;
  return std::ranges::any_of(record.volumes, [&](const std::string& name) {
    const ObjectRecord* volume =
        FindByKey(kVolumeKind, {.namespace_ = record.key.namespace_, .name = name});
    const PoolEntry* place = volume == nullptr ? nullptr : PlaceOf(*volume);
    return place != nullptr && place->pool.spec.reach == Reach::kHost;
  });
}

void ObjectDirectory::OnMachineClassGone(const std::string& name) { classes_.erase(name); }

ObjectDirectory::Effects ObjectDirectory::OnPoolAdded(const PoolEntry& pool) {
  Effects effects;
  for (const auto& [uid, record] : records_) {
    if (PoolKindOf(*record.kind) != pool.pool.spec.kind) continue;
    const bool names_it = record.pool_ref == pool.pool.spec.name ||
                          (record.reserves != nullptr &&
                           std::ranges::find(record.reserves->pools, pool.pool.spec.name) !=
                               record.reserves->pools.end());
    if (record.placed_uid != pool.pool.spec.uid && !names_it) continue;
    Settle(record);
    Judge(record, effects);
    JudgeRelated(record, effects);
  }
  // It may be within reach of a machine that has waited for a volume.
  if (pool.pool.spec.kind == PoolKind::kVolume) JudgeAwaited(effects);
  return effects;
}

ObjectDirectory::Effects ObjectDirectory::OnReachChanged() const {
  Effects effects;
  JudgeAwaited(effects);
  return effects;
}

void ObjectDirectory::JudgeAwaited(Effects& effects) const {
  for (const auto& [volume, machines] : awaited_by_) {
    for (const ObjectRecord* machine : machines) JudgeRelated(*machine, effects);
  }
}

const ObjectRecord* ObjectDirectory::Find(std::string_view uid) const {
  const auto found = records_.find(uid);
  return found == records_.end() ? nullptr : &found->second;
}

const ObjectRecord* ObjectDirectory::FindByKey(const meta::KindInfo& kind,
                                               const client::ObjectKey& key) const {
  const auto found = by_key_.find(Name(&kind, key));
  if (found != by_key_.end()) return *found;
  return drafts_ == nullptr ? nullptr : drafts_->Find(kind, key);
}

std::map<client::ObjectKey, std::string> ObjectDirectory::UidsOf(const meta::KindInfo& kind) const {
  std::map<client::ObjectKey, std::string> uids;
  for (const auto& [uid, record] : records_) {
    if (record.kind == &kind) uids.emplace(record.key, uid);
  }
  twins_.ForEachOf(kind, [&uids](const client::ObjectKey& key, const std::string& uid) {
    uids.emplace(key, uid);
  });
  return uids;
}

// Where the store says the object is. In API mode the reference itself is the assignment; in a
// session it is one only once the host was asked (defect 12).
const PoolEntry* ObjectDirectory::PlaceOf(const ObjectRecord& record) const {
  if (!record.placed_uid.empty()) {
    const PoolEntry* placed = pools_.FindByUid(record.placed_uid);
    const bool is_for_it = placed != nullptr && placed->pool.spec.kind == PoolKindOf(*record.kind);
    return is_for_it ? placed : nullptr;
  }
  if (record.pool_ref.empty()) return nullptr;
  const PoolEntry* pool = pools_.FindByName(PoolKindOf(*record.kind), record.pool_ref);
  return pool != nullptr && pool->pool.mode == PoolMode::kApi ? pool : nullptr;
}

bool ObjectDirectory::NeedsPlace(const ObjectRecord& record) const {
  if (record.is_deleting || !record.placed_uid.empty()) return false;
  if (const ReservationFacts* reserves = record.reserves.get()) {
    if (reserves->is_for_all || reserves->is_over || reserves->left == 0) return false;
  } else if (record.kind == &kVolumeSnapshotKind) {
    // The poollets of API-mode pools look for snapshots of their volumes themselves.
    const PoolEntry* source = SourcePoolOf(record);
    if (record.snapshot->is_failed) return false;
    if (source != nullptr && source->pool.mode == PoolMode::kApi) return false;
  } else if (record.kind != &kMachineKind && record.class_name.empty()) {
    return false;  // volumes and buckets without a class were made elsewhere
  }
  if (PlaceOf(record) != nullptr) return false;
  if (record.kind != &kVolumeKind) return true;
  // A volume that a machine without a place names goes with it, unless it is known where to.
  return record.snapshot != nullptr || NamedBy(record).empty();
}

const ObjectRecord* ObjectDirectory::WaitsWith(const ObjectRecord& record) const {
  const bool waits = record.kind == &kVolumeKind && !record.is_deleting &&
                     record.placed_uid.empty() && !record.class_name.empty() &&
                     record.snapshot == nullptr && PlaceOf(record) == nullptr;
  if (!waits) return nullptr;
  // Always the same one of several: what is said of it must not change by itself.
  const std::vector<const ObjectRecord*> machines = NamedBy(record);
  const auto by_uid = [](const ObjectRecord* machine) { return std::string_view(machine->uid); };
  const auto first = std::ranges::min_element(machines, {}, by_uid);
  return first == machines.end() ? nullptr : *first;
}

void ObjectDirectory::Settle(const ObjectRecord& record) {
  if (record.reserves != nullptr) return SettleReservation(record);
  const ObjectKey key = ObjectKey::FromUid(record.uid);
  const PoolEntry* place = PlaceOf(record);
  if (place != nullptr && record.shape != nullptr) {
    Request request;
    request.key = key;
    request.shape = record.shape;
    request.priority = record.priority;
    request.has_local_state = IsTiedToHost(record);
    request.set = record.set;
    // In API mode nobody stops a machine for others: its poollet would leave it running (4.1).
    request.is_preemptible = priority_rules_[record.priority_class].is_preemptible &&
                             place->pool.mode == PoolMode::kSession;
    board_.Settle(request, place->index);
  } else if (board_.IsConfirmed(key)) {
    // It had a place and lost it. What is only assumed belongs to an attempt that is under way.
    board_.Forget(key);
  }
}

std::variant<Ask, NotYet> ObjectDirectory::Prepare(const ObjectRecord& record) const {
  Ask ask;
  if (auto not_yet = AddSource(record, ask)) return *std::move(not_yet);
  if (record.shape == nullptr) {
    return NotYet{.reason = "ClassNotFound",
                  .message = "there is no MachineClass " + record.class_name};
  }
  ask.request.key = ObjectKey::FromUid(record.uid);
  ask.request.shape = record.shape;
  ask.request.priority = record.priority;
  ask.request.has_local_state = record.has_local_state;
  ask.request.set = record.set;
  ask.request.is_reservation = record.reserves != nullptr;
  if (record.is_pinned) {
    const PoolEntry* pool = pools_.FindByName(PoolKindOf(*record.kind), record.pool_ref);
    if (pool == nullptr) {
      return NotYet{.reason = "PoolNotFound", .message = "there is no pool " + record.pool_ref};
    }
    ask.request.pinned = pool->index;
  }
  const auto loss = losses_.find(record.uid);
  if (loss != losses_.end() && loss->second.reason == apis::core::kReleaseMove) {
    if (const PoolEntry* left = pools_.FindByUid(loss->second.pool_uid)) ask.left = left->index;
  }
  if (auto not_yet = AddReservation(record, ask)) return *std::move(not_yet);
  if (auto not_yet = AddPools(record, ask)) return *std::move(not_yet);
  if (auto not_yet = AddVolumes(record, ask)) return *std::move(not_yet);
  if (auto not_yet = AddReach(record, ask)) return *std::move(not_yet);
  return ask;
}

std::optional<NotYet> ObjectDirectory::AddReach(const ObjectRecord& volume, Ask& ask) const {
  // Who names a pool, or begins with what is on one, goes there and nowhere else.
  if (volume.kind != &kVolumeKind || ask.request.pinned) return std::nullopt;
  const std::vector<const ObjectRecord*> machines = NamedBy(awaited_by_, volume);
  // Only one of several gets it: the one that claimed it, else always the same one.
  const ObjectRecord* user = nullptr;
  for (const ObjectRecord* machine : machines) {
    if (!volume.claimed_by.empty() && machine->uid != volume.claimed_by) continue;
    if (PlaceOf(*machine) == nullptr) continue;
    if (user == nullptr || machine->uid < user->uid) user = machine;
  }
  if (user == nullptr) return std::nullopt;
  const PoolEntry* place = PlaceOf(*user);
  ask.request.among = board_.VolumePoolsFor(place->index);
  if (!ask.request.among.empty()) return std::nullopt;
  return NotYet{.reason = "NoPoolWithinReach",
                .message = "Machine " + user->key.name +
                           " names it, and no pool is within reach of " + place->pool.spec.name};
}

std::optional<NotYet> ObjectDirectory::AddVolumes(const ObjectRecord& machine, Ask& ask) const {
  for (const std::string& name : machine.volumes) {
    const ObjectRecord* volume =
        FindByKey(kVolumeKind, {.namespace_ = machine.key.namespace_, .name = name});
    if (volume == nullptr) {
      return NotYet{.reason = "VolumeNotFound", .message = "there is no Volume " + name};
    }
    const bool is_mine = volume->claimed_by == machine.uid;
    // R4_6: whoever has it keeps it, on another host too.
    if (volume->is_deleting && !(is_mine && volume->is_kept)) {
      return NotYet{.reason = "VolumeDeleting", .message = "Volume " + name + " is being deleted"};
    }
    if (!volume->claimed_by.empty() && !is_mine) {
      return NotYet{.reason = "VolumeInUse",
                    .message = "Volume " + name + " is claimed by another machine"};
    }
    if (const PoolEntry* place = PlaceOf(*volume)) {
      ask.request.bound_volumes.push_back(place->index);
      ask.bound.push_back(volume);
      continue;
    }
    if (!volume->placed_uid.empty()) {
      return NotYet{.reason = "VolumePoolNotFound",
                    .message = "the pool of Volume " + name + " is gone"};
    }
    if (volume->class_name.empty()) continue;  // made elsewhere, reachable from anywhere
    if (volume->is_deleting) {
      return NotYet{.reason = "VolumeDeleting",
                    .message = "Volume " + name +
                               " is being deleted and gets no pool any more: it goes when the "
                               "machine is deleted or does not name it in spec.volumes any more"};
    }
    if (volume->snapshot != nullptr) {
      return NotYet{.reason = "VolumeNotPlaced",
                    .message = "Volume " + name + " is placed first, where " +
                               std::string(volume->snapshot->source_kind->kind) + " " +
                               volume->snapshot->source + " is"};
    }
    Request& joint = ask.request.joint.emplace_back();
    joint.key = ObjectKey::FromUid(volume->uid);
    joint.shape = volume->shape;
    ask.joint.push_back(volume);
  }
  return std::nullopt;
}

void ObjectDirectory::Index(const ObjectRecord& record) {
  by_key_.insert(&record);
  const bool has_class = record.kind == &kMachineKind || record.kind == &kReservationKind;
  if (has_class && record.shape == nullptr) without_class_[record.class_name].insert(&record);
  if (record.reserves != nullptr && !record.reserves->part_of.empty()) {
    parts_.insert({{{record.key.namespace_, record.reserves->part_of}, record.uid}, &record});
  }
  if (record.snapshot != nullptr) {
    TiedTo(record).insert(
        {{{record.key.namespace_, record.snapshot->source}, record.uid}, &record});
  }
  if (record.kind != &kMachineKind) return;
  CountPreemptible(record, 1);
  if (!record.reservation.empty()) {
    into_.insert({{{record.key.namespace_, record.reservation}, record.uid}, &record});
  }
  if (record.is_deleting) return;
  const bool is_placed = PlaceOf(record) != nullptr;
  for (const std::string& name : record.volumes) {
    if (is_placed) {
      const ObjectRecord* volume =
          FindByKey(kVolumeKind, {.namespace_ = record.key.namespace_, .name = name});
      if (volume != nullptr && PlaceOf(*volume) != nullptr) continue;
    }
    ByVolume& index = is_placed ? awaited_by_ : named_by_;
    index[HashOf(record.key.namespace_, name)].insert(&record);
  }
}

void ObjectDirectory::Unindex(const ObjectRecord& record) {
  by_key_.erase(&record);
  if (record.kind == &kMachineKind) CountPreemptible(record, -1);
  if (!record.reservation.empty()) {
    into_.erase({{record.key.namespace_, record.reservation}, record.uid});
  }
  if (record.reserves != nullptr) {
    parts_.erase({{record.key.namespace_, record.reserves->part_of}, record.uid});
  }
  if (record.snapshot != nullptr) {
    TiedTo(record).erase({{record.key.namespace_, record.snapshot->source}, record.uid});
  }
  if (const auto waiting = without_class_.find(record.class_name);
      waiting != without_class_.end()) {
    waiting->second.erase(&record);
    if (waiting->second.empty()) without_class_.erase(waiting);
  }
  for (const std::string& name : record.volumes) {
    for (ByVolume* index : {&named_by_, &awaited_by_}) {
      const auto naming = index->find(HashOf(record.key.namespace_, name));
      if (naming == index->end()) continue;
      naming->second.erase(&record);
      if (naming->second.empty()) index->erase(naming);
    }
  }
}

std::vector<const ObjectRecord*> ObjectDirectory::NamedBy(const ByVolume& index,
                                                          const ObjectRecord& volume) {
  std::vector<const ObjectRecord*> machines;
  const auto naming = index.find(HashOf(volume.key.namespace_, volume.key.name));
  if (naming == index.end()) return machines;
  for (const ObjectRecord* machine : naming->second) {
    const bool names_it =
        machine->key.namespace_ == volume.key.namespace_ &&
        std::ranges::find(machine->volumes, volume.key.name) != machine->volumes.end();
    if (names_it) machines.push_back(machine);
  }
  return machines;
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
    for (const ObjectRecord* machine : NamedBy(record)) Judge(*machine, effects);
    ForEachOf(snapshots_, record.key, [&](const ObjectRecord& it) { Judge(it, effects); });
  }
  const auto judge_filled = [&](const ObjectRecord& volume) {
    Judge(volume, effects);
    for (const ObjectRecord* machine : NamedBy(volume)) Judge(*machine, effects);
  };
  if (record.kind == &kVolumeKind) ForEachOf(clones_, record.key, judge_filled);
  if (record.kind == &kVolumeSnapshotKind) ForEachOf(restores_, record.key, judge_filled);
  if (record.reserves != nullptr) {
    for (const std::string& name : {record.key.name, record.reserves->part_of}) {
      const client::ObjectKey key{.namespace_ = record.key.namespace_, .name = name};
      ForEachOf(into_, key, [&](const ObjectRecord& machine) { Judge(machine, effects); });
    }
  }
  for (const std::string& name : record.volumes) {
    const ObjectRecord* volume =
        FindByKey(kVolumeKind, {.namespace_ = record.key.namespace_, .name = name});
    if (volume != nullptr) Judge(*volume, effects);
  }
}

}  // namespace berth::scheduler
