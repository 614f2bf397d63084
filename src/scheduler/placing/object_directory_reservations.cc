// SPDX-License-Identifier: Apache-2.0
// Reservations in the ObjectDirectory. On the board a reservation is one object for each machine
// that it is still for, all on its pool: machines go into them one by one.
#include <algorithm>
#include <utility>

#include "apis/core/reservation.h"
#include "apis/placement.h"
#include "scheduler/placing/drafts.h"
#include "scheduler/placing/object_directory.h"
#include "scheduler/translate/translate.h"

namespace berth::scheduler {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;

// The first one has the key under which the reservation itself is placed.
ObjectKey CopyKey(const std::string& uid, int32_t number) {
  ObjectKey key = ObjectKey::FromUid(uid);
  key.low += static_cast<uint64_t>(number);
  return key;
}

bool IsFor(const ObjectRecord& machine, const ObjectRecord& reservation) {
  return !machine.reservation.empty() && machine.key.namespace_ == reservation.key.namespace_ &&
         (machine.reservation == reservation.key.name ||
          machine.reservation == reservation.reserves->part_of);
}

}  // namespace

void ObjectDirectory::ReadReservation(const meta::Object& object, ObjectRecord& record) {
  const auto& reservation = object.as<Reservation>();
  if (reservation.spec.machine_pool_ref) record.pool_ref = reservation.spec.machine_pool_ref->name;
  if (const auto& placement = reservation.status.placement) {
    record.epoch = placement->epoch;
    record.placed_uid = placement->pool_uid;
    record.is_pinned = placement->pinned;
    record.is_leaving = !placement->release.empty();
  }
  if (record.placed_uid.empty() && !record.pool_ref.empty()) record.is_pinned = true;
  auto facts = std::make_shared<ReservationFacts>();
  facts->count = apis::core::CountOf(reservation.spec);
  facts->left = apis::core::LeftOf(reservation);
  facts->is_for_all = apis::core::IsForAll(reservation.spec);
  facts->is_over = reservation.status.state == apis::core::kReservationExpired;
  facts->pools = reservation.spec.pools;
  const auto& labels = reservation.metadata.labels;
  const auto whole = labels.find(std::string(apis::core::kReservationOfLabel));
  if (whole != labels.end()) facts->part_of = whole->second;
  for (const auto& consumer : reservation.status.consumers) {
    facts->consumers.push_back(consumer.uid);
  }
  const apis::compute::MachineClass* size = nullptr;
  if (reservation.spec.class_ref) {
    record.class_name = reservation.spec.class_ref->name;
    size = FindClass(record.class_name);
  }
  if (size != nullptr || !reservation.spec.class_ref) {
    const Requirements one = Translate(reservation, size);
    facts->unit = board_.Intern(one);
    record.shape = facts->left <= 1 ? facts->unit : board_.Intern(Times(one, facts->left));
  }
  record.reserves = std::move(facts);
}

void ObjectDirectory::SettleReservation(const ObjectRecord& record) {
  const ReservationFacts& facts = *record.reserves;
  const PoolEntry* place = PlaceOf(record);
  if (place == nullptr || facts.unit == nullptr) {
    for (int32_t i = 0; i < facts.count; ++i) {
      const ObjectKey key = CopyKey(record.uid, i);
      copies_.erase(key);
      // What is only assumed belongs to an attempt that is under way.
      if (board_.IsConfirmed(key)) board_.Forget(key);
    }
    return;
  }
  // The commit that wrote this bound them too, whether or not that is known here already. Not so
  // what a host has named after a restore: who is on another pool is left alone.
  for (const std::string& uid : facts.consumers) {
    const ObjectRecord* machine = Find(uid);
    if (machine == nullptr || machine->epoch != 0 || !IsFor(*machine, record)) continue;
    const ObjectKey key = ObjectKey::FromUid(uid);
    if (board_.PoolOf(key) == place->index) board_.Confirm(key);
  }
  Request request;
  request.shape = facts.unit;
  request.is_reservation = true;
  int32_t kept = 0;
  std::vector<ObjectKey> free;
  for (int32_t i = 0; i < facts.count; ++i) {
    request.key = CopyKey(record.uid, i);
    const bool is_here = board_.PoolOf(request.key) == place->index;
    if (is_here && kept < facts.left) {
      board_.Settle(request, place->index);
      copies_.insert_or_assign(request.key, record.uid);
      ++kept;
      continue;
    }
    board_.Forget(request.key);
    copies_.erase(request.key);
    free.push_back(request.key);
  }
  for (size_t i = 0; kept < facts.left; ++i, ++kept) {
    request.key = free[i];
    board_.Settle(request, place->index);
    copies_.insert_or_assign(request.key, record.uid);
  }
}

std::vector<Request> ObjectDirectory::CopiesOf(const ObjectRecord& reservation, PoolIndex pool) {
  std::vector<Request> copies;
  for (int32_t i = 0; i < reservation.reserves->left; ++i) {
    Request& copy = copies.emplace_back();
    copy.key = CopyKey(reservation.uid, i);
    copy.shape = reservation.reserves->unit;
    copy.is_reservation = true;
    copy.pinned = pool;
  }
  return copies;
}

const ObjectRecord* ObjectDirectory::ReservationAt(ObjectKey copy) const {
  const auto found = copies_.find(copy);
  return found == copies_.end() ? nullptr : Find(found->second);
}

std::vector<const ObjectRecord*> ObjectDirectory::PartsOf(const ObjectRecord& reservation) const {
  if (!reservation.reserves->is_for_all) return {&reservation};
  std::vector<const ObjectRecord*> parts;
  for (auto at = parts_.lower_bound({reservation.key, ""});
       at != parts_.end() && at->first.first == reservation.key;
       ++at) {
    parts.push_back(at->second);
  }
  return parts;
}

std::optional<NotYet> ObjectDirectory::AddReservation(const ObjectRecord& machine, Ask& ask) const {
  if (machine.reservation.empty()) return std::nullopt;
  const std::string& name = machine.reservation;
  const ObjectRecord* reservation =
      FindByKey(kReservationKind, {.namespace_ = machine.key.namespace_, .name = name});
  if (reservation == nullptr) {
    return NotYet{.reason = "ReservationNotFound", .message = "there is no Reservation " + name};
  }
  bool is_placed = false;
  bool is_over = reservation->reserves->is_over || reservation->is_deleting;
  for (const ObjectRecord* part : PartsOf(*reservation)) {
    if (part->is_deleting || part->is_leaving || part->reserves->is_over) continue;
    is_placed = is_placed || !part->placed_uid.empty();
    for (int32_t i = 0; i < part->reserves->count; ++i) {
      const ObjectKey key = CopyKey(part->uid, i);
      const bool is_draft = drafts_ != nullptr && drafts_->copies.contains(key);
      if (is_draft || copies_.contains(key)) ask.request.reservation.push_back(key);
    }
  }
  if (!ask.request.reservation.empty()) return std::nullopt;
  if (is_over) {
    return NotYet{.reason = "ReservationOver",
                  .message = "Reservation " + name + " keeps no room any more"};
  }
  if (is_placed) {
    return NotYet{.reason = "ReservationUsed",
                  .message = "others have used all of Reservation " + name};
  }
  return NotYet{.reason = "ReservationNotAccepted",
                .message = "no pool has accepted Reservation " + name + " yet"};
}

std::optional<NotYet> ObjectDirectory::AddPools(const ObjectRecord& reservation, Ask& ask) const {
  if (reservation.reserves == nullptr || reservation.reserves->pools.empty()) return std::nullopt;
  for (const std::string& name : reservation.reserves->pools) {
    const PoolEntry* pool = pools_.FindByName(PoolKind::kMachine, name);
    if (pool != nullptr) ask.request.among.push_back(pool->index);
  }
  if (!ask.request.among.empty()) return std::nullopt;
  return NotYet{.reason = "PoolNotFound", .message = "there is none of the pools that it names"};
}

}  // namespace berth::scheduler
