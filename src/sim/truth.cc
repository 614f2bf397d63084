// SPDX-License-Identifier: Apache-2.0
#include "sim/truth.h"

#include <algorithm>
#include <cstdlib>

#include "apis/berth/machine_group.h"
#include "apis/berth/machine_set.h"
#include "apis/compute/host_tie.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/pool_parts.h"
#include "apis/core/reservation.h"
#include "apis/core/well_known.h"
#include "apis/object_references.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/loopback_client.h"
#include "base/check.h"
#include "iri/object.h"

namespace berth::sim {
namespace {

constexpr int64_t kGiB = 1LL << 30;

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  return hash;
}

meta::Object Decode(const meta::KindInfo& kind, const Bytes& value, store::Revision revision) {
  auto object = apiserver::DecodeFor(kind, {.at_rest = value, .revision = revision});
  CHECK(object.ok()) << object.status();
  return *std::move(object);
}

void FillCommon(const meta::Object& object, PlacedFact& fact) {
  const meta::ObjectMeta& metadata = object.metadata();
  fact.kind = &object.kind();
  fact.key = {metadata.namespace_, metadata.name};
  fact.uid = metadata.uid;
  fact.is_deleting = metadata.deletion_timestamp.has_value();
  fact.is_used = apis::IsKeptForUser(metadata);
  if (const auto edit = metadata.annotations.find(std::string(kEditAnnotation));
      edit != metadata.annotations.end()) {
    fact.edit = std::atoll(edit->second.c_str());
  }
  if (const auto& placement = apis::PlacementOf(object)) {
    fact.pool = placement->pool;
    fact.pool_uid = placement->pool_uid;
    fact.epoch = placement->epoch;
    fact.release = placement->release;
    fact.reservation_uid = placement->reservation_uid;
    if (placement->nominated) fact.nominated_uid = placement->nominated->pool_uid;
  }
}

template <class Conditions>
void FillReason(const Conditions& conditions, PlacedFact& fact) {
  for (const auto& condition : conditions) {
    if (condition.type != apis::core::kScheduledCondition || condition.status == "True") continue;
    fact.reason = condition.reason;
    fact.message = condition.message;
  }
}

PlacedFact MachineFact(const meta::Object& object) {
  PlacedFact fact;
  FillCommon(object, fact);
  const auto& machine = object.as<apis::compute::Machine>();
  fact.class_name = machine.spec.machine_class_ref.name;
  fact.needs = ClassAmounts(fact.class_name);
  fact.is_picky = !machine.spec.machine_pool_selector.empty();
  fact.is_on = machine.spec.power != apis::compute::kPowerOff;
  fact.state = machine.status.state;
  FillReason(machine.status.conditions, fact);
  for (const auto& volume : machine.spec.volumes) {
    if (volume.volume_ref) fact.volumes.push_back(volume.volume_ref->name);
    if (volume.local_disk) fact.is_tied = true;
  }
  fact.tolerations = machine.spec.tolerations;
  if (machine.spec.placement && machine.spec.placement->group_ref) {
    fact.group = machine.spec.placement->group_ref->name;
  }
  if (machine.spec.placement) {
    fact.priority = machine.spec.placement->priority.value_or(0);
    fact.is_spare = machine.spec.placement->priority_class_name == kSpare;
  }
  if (machine.spec.placement && machine.spec.placement->reservation_ref) {
    fact.reservation = machine.spec.placement->reservation_ref->name;
  }
  fact.needs_fence = apis::compute::DiesWithContact(machine);
  if (apis::compute::MovesOnPoolLoss(machine)) fact.on_loss = PlacedFact::OnLoss::kMove;
  const auto replaces =
      machine.metadata.annotations.find(std::string(apis::core::kOnPoolLossAnnotation));
  if (replaces != machine.metadata.annotations.end() &&
      replaces->second == apis::core::kOnPoolLossReplace) {
    fact.on_loss = PlacedFact::OnLoss::kReplace;
  }
  for (const auto& owner : machine.metadata.owner_references) {
    if (owner.kind == "MachineSet") fact.set_uid = owner.uid;
  }
  return fact;
}

PlacedFact VolumeFact(const meta::Object& object) {
  PlacedFact fact;
  FillCommon(object, fact);
  const auto& volume = object.as<apis::storage::Volume>();
  if (volume.spec.volume_class_ref) fact.class_name = volume.spec.volume_class_ref->name;
  fact.needs = apis::ToAmounts(volume.spec.resources);
  fact.state = volume.status.state;
  FillReason(volume.status.conditions, fact);
  return fact;
}

PlacedFact BucketFact(const meta::Object& object) {
  PlacedFact fact;
  FillCommon(object, fact);
  const auto& bucket = object.as<apis::storage::Bucket>();
  if (bucket.spec.bucket_class_ref) fact.class_name = bucket.spec.bucket_class_ref->name;
  fact.is_picky = !bucket.spec.bucket_pool_selector.empty();
  fact.tolerations = bucket.spec.tolerations;
  fact.state = bucket.status.state;
  FillReason(bucket.status.conditions, fact);
  return fact;
}

PlacedFact ReservationFact(const meta::Object& object) {
  PlacedFact fact;
  FillCommon(object, fact);
  const auto& reservation = object.as<apis::core::Reservation>();
  if (reservation.spec.class_ref) fact.class_name = reservation.spec.class_ref->name;
  const auto whole = reservation.metadata.labels.find(std::string(apis::core::kReservationOfLabel));
  if (whole != reservation.metadata.labels.end()) fact.whole = whole->second;
  for (const auto& consumer : reservation.status.consumers) fact.consumers.insert(consumer.uid);
  fact.count = reservation.spec.count.value_or(1);
  fact.left = std::max<int64_t>(0, fact.count - static_cast<int64_t>(fact.consumers.size()));
  for (const auto& [dimension, amount] : ClassAmounts(fact.class_name)) {
    fact.needs[dimension] = amount * fact.left;
  }
  fact.is_picky = !reservation.spec.selector.empty();
  fact.pools = reservation.spec.pools;
  fact.state = reservation.status.state;
  fact.is_whole = reservation.spec.mode == apis::core::kReserveAll;
  fact.wants_place =
      !fact.is_whole && fact.left > 0 && fact.state != apis::core::kReservationExpired;
  FillReason(reservation.status.conditions, fact);
  return fact;
}

PlacedFact FactOf(const meta::Object& object) {
  if (&object.kind() == &apis::compute::kMachineKind) return MachineFact(object);
  if (&object.kind() == &apis::storage::kBucketKind) return BucketFact(object);
  if (&object.kind() == &apis::core::kReservationKind) return ReservationFact(object);
  return VolumeFact(object);
}

PoolFact FactOfPool(const meta::Object& object) {
  const apis::PoolTerms terms = apis::PoolTermsOf(object);
  PoolFact fact{.kind = &object.kind(),
                .name = object.metadata().name,
                .uid = object.metadata().uid,
                .is_cordoned = terms.is_cordoned,
                .is_deleting = object.metadata().deletion_timestamp.has_value(),
                .taints = apis::TaintsOf(object),
                .allocatable = terms.allocatable};
  const auto& annotations = object.metadata().annotations;
  const auto request = annotations.find(std::string(apis::core::kDrainRequestedAnnotation));
  const auto done = annotations.find(std::string(apis::core::kDrainDoneAnnotation));
  fact.is_leaving = request != annotations.end();
  const bool is_over =
      fact.is_leaving && done != annotations.end() && done->second == request->second;
  if (!is_over || fact.kind != &apis::compute::kMachinePoolKind) return fact;
  // A drain that took too long is over, too, but nobody says then that it is done.
  fact.is_drained = std::ranges::any_of(
      object.as<apis::compute::MachinePool>().status.conditions,
      [](const auto& condition) { return condition.type == apis::core::kPoolDrained; });
  return fact;
}

SetFact FactOfSet(const meta::Object& object) {
  const auto& set = object.as<apis::berth_dev::MachineSet>();
  return {.key = {set.metadata.namespace_, set.metadata.name},
          .uid = set.metadata.uid,
          .replicas = set.spec.replicas.value_or(1),
          .replaces = apis::berth_dev::OnPoolLossOf(set.spec) == apis::core::kOnPoolLossReplace,
          .is_deleting = set.metadata.deletion_timestamp.has_value()};
}

GroupFact FactOfGroup(const meta::Object& object) {
  const auto& group = object.as<apis::berth_dev::MachineGroup>();
  return {.key = {group.metadata.namespace_, group.metadata.name},
          .min_members = group.spec.min_members};
}

// The kind that lies at the key, of those that are decoded; null for others.
const meta::KindInfo* KindAt(std::string_view key) {
  static const auto* const kPrefixes = new std::map<std::string, const meta::KindInfo*>{
      {apiserver::KeyPrefix(apis::compute::kMachineKind), &apis::compute::kMachineKind},
      {apiserver::KeyPrefix(apis::storage::kVolumeKind), &apis::storage::kVolumeKind},
      {apiserver::KeyPrefix(apis::storage::kBucketKind), &apis::storage::kBucketKind},
      {apiserver::KeyPrefix(apis::core::kReservationKind), &apis::core::kReservationKind},
      {apiserver::KeyPrefix(apis::compute::kMachinePoolKind), &apis::compute::kMachinePoolKind},
      {apiserver::KeyPrefix(apis::storage::kVolumePoolKind), &apis::storage::kVolumePoolKind},
      {apiserver::KeyPrefix(apis::storage::kBucketPoolKind), &apis::storage::kBucketPoolKind},
      {apiserver::KeyPrefix(apis::berth_dev::kMachineSetKind), &apis::berth_dev::kMachineSetKind},
      {apiserver::KeyPrefix(apis::berth_dev::kMachineGroupKind),
       &apis::berth_dev::kMachineGroupKind}};
  for (const auto& [prefix, kind] : *kPrefixes) {
    if (key.starts_with(prefix)) return kind;
  }
  return nullptr;
}

}  // namespace

apis::Amounts ClassAmounts(std::string_view class_name) {
  const auto amounts = [](int64_t cores, int64_t gib) {
    return apis::Amounts{{std::string(iri::kCpu), cores * 1000},
                         {std::string(iri::kMemory), gib * kGiB}};
  };
  if (class_name == "small") return amounts(1, 1);
  if (class_name == "medium") return amounts(2, 4);
  if (class_name == "large") return amounts(4, 8);
  if (class_name == "huge") return amounts(8, 16);
  return {};
}

const PlacedFact* Truth::Find(const std::string& uid) const {
  const auto found = placed_.find(uid);
  return found == placed_.end() ? nullptr : &found->second;
}

const PlacedFact* Truth::FindPlaced(const meta::KindInfo& kind,
                                    const client::ObjectKey& key) const {
  for (const auto& [uid, fact] : placed_) {
    if (fact.kind == &kind && fact.key == key) return &fact;
  }
  return nullptr;
}

bool Truth::IsInside(const PlacedFact& machine) const {
  if (machine.reservation_uid.empty()) return false;
  const PlacedFact* reservation = Find(machine.reservation_uid);
  return reservation != nullptr && reservation->pool_uid == machine.pool_uid &&
         !reservation->consumers.contains(machine.uid);
}

const PoolFact* Truth::FindPool(const meta::KindInfo& kind, std::string_view name) const {
  for (const auto& [uid, pool] : pools_) {
    if (pool.kind == &kind && pool.name == name) return &pool;
  }
  return nullptr;
}

bool Truth::WasNominated(const std::string& uid, const std::string& pool_uid) const {
  return nominated_.contains({uid, pool_uid});
}

int64_t Truth::MembersOf(const std::string& set_uid) const {
  int64_t count = 0;
  for (const auto& [uid, fact] : placed_) {
    if (fact.set_uid == set_uid && !fact.is_deleting) ++count;
  }
  return count;
}

std::optional<Truth::Change> Truth::Apply(const std::string& key,
                                          const std::optional<Bytes>& value,
                                          store::Revision revision) {
  last_revision_ = std::max(last_revision_, revision);
  StoredFact& stored = keys_[key];
  if (stored.revision > revision) return std::nullopt;
  Change change{.key = key, .revision = revision, .is_deleted = !value.has_value()};
  std::string& uid = uid_of_[key];
  if (const auto before = placed_.find(uid); before != placed_.end()) {
    change.before = std::move(before->second);
    placed_.erase(before);
  }
  pools_.erase(uid);
  sets_.erase(uid);
  groups_.erase(uid);
  if (!value) {
    keys_.erase(key);
    uid_of_.erase(key);
    return change;
  }
  stored = {.revision = revision, .hash = HashOf(value->view())};
  const meta::KindInfo* kind = KindAt(key);
  if (kind == nullptr) return change;
  const meta::Object object = Decode(*kind, *value, revision);
  uid = object.metadata().uid;
  if (apis::IsPlaceable(*kind)) {
    change.now = FactOf(object);
    placed_[uid] = *change.now;
    if (!change.now->nominated_uid.empty()) nominated_.emplace(uid, change.now->nominated_uid);
  } else if (apis::IsPool(*kind)) {
    pools_[uid] = FactOfPool(object);
  } else if (kind == &apis::berth_dev::kMachineGroupKind) {
    groups_[uid] = FactOfGroup(object);
  } else {
    sets_[uid] = FactOfSet(object);
  }
  return change;
}

}  // namespace berth::sim
