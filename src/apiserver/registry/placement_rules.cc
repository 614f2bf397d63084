// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/placement_rules.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "apis/adoption.h"
#include "apis/compute/machine.h"
#include "apis/core/loss_reasons.h"
#include "apis/core/reservation.h"
#include "apis/core/well_known.h"
#include "apis/object_references.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "base/strings.h"

namespace berth::apiserver {

namespace {

using apis::compute::Machine;
using apis::core::Reservation;
using apis::storage::Bucket;
using apis::storage::Volume;

std::string Subject(const meta::Object& object) {
  return std::string(object.kind().singular) + " " + Quote(object.metadata().name);
}

Status Mismatch(const meta::Object& object, std::string_view what, int64_t asked, int64_t found) {
  return Conflict(Subject(object) + ": " + std::string(what) + " is " + std::to_string(found) +
                  ", not " + std::to_string(asked));
}

// Every placement and every end of one has the next number. One that was written into the store by
// hand may have none.
Status CheckNumber(const meta::Object& object) {
  const int64_t epoch = apis::EpochOf(object);
  if (epoch >= 0 && epoch < std::numeric_limits<int64_t>::max()) return OkStatus();
  return Conflict(Subject(object) + ": status.placement.epoch is " + std::to_string(epoch) +
                  ", which no placement has");
}

// What a poollet reported is true of its own placement only.
void ForgetReport(meta::Object& object) {
  if (&object.kind() == &apis::compute::kMachineKind) {
    auto& status = object.as<Machine>().status;
    status.machine_id.clear();
    status.state = "Pending";
    status.network_interfaces.clear();
    status.volumes.clear();
  } else if (&object.kind() == &apis::core::kReservationKind) {
    auto& status = object.as<Reservation>().status;
    status.state = apis::core::kReservationPending;
    status.pools.clear();
  } else if (&object.kind() == &apis::storage::kVolumeKind) {
    auto& status = object.as<Volume>().status;
    status.volume_id.clear();
    status.state = "Pending";
    status.access.reset();
  } else if (&object.kind() == &apis::storage::kVolumeSnapshotKind) {
    auto& status = object.as<apis::storage::VolumeSnapshot>().status;
    status.snapshot_id.clear();
    // What was kept is lost: another one of the same name would hold something else.
    status.state = status.state == "Ready" ? "Failed" : "Pending";
    status.size.reset();
  } else {
    auto& status = object.as<Bucket>().status;
    status.bucket_id.clear();
    status.state = "Pending";
    status.access.reset();
  }
}

// If nothing is left of it, it says so.
void NoteUsedUp(Reservation& typed) {
  if (apis::core::LeftOf(typed) != 0) return;
  typed.status.state = apis::core::kReservationBound;
  for (auto& pool : typed.status.pools) pool.state = apis::core::kReservationBound;
}

// What the store has lost of a reservation's uses, its host knows: what it keeps is without them.
// The machines' names are not known there.
void NoteConsumers(meta::Object& object, const std::vector<std::string>& uids) {
  auto& typed = object.as<Reservation>();
  auto& consumers = typed.status.consumers;
  for (const std::string& uid : uids) {
    if (apis::core::LeftOf(typed) == 0) break;
    const bool is_known =
        std::ranges::find(consumers, uid, &apis::core::ReservationConsumer::uid) != consumers.end();
    if (!is_known) consumers.push_back({.name = uid, .uid = uid});
  }
  NoteUsedUp(typed);
}

// Of the room that its host says it keeps. How large a part of a pool one machine is, which counts
// where amounts are not known, only that pool says.
void KeepAtMost(Reservation& typed, const apis::Amounts& unit) {
  const int64_t left = apis::core::LeftOf(typed);
  apis::Amounts kept;
  if (left > 0) {
    for (const auto& [name, amount] : apis::ToAmounts(typed.status.placement->resources)) {
      const auto of_one = unit.find(name);
      if (name == apis::kShare) kept[name] = amount;
      if (of_one == unit.end()) continue;
      const int64_t one = std::max<int64_t>(of_one->second, 0);
      // Divided, since a product may be too large for a number.
      kept[name] = amount / left >= one ? one * left : amount;
    }
  }
  typed.status.placement->resources = apis::ToResources(kept);
}

}  // namespace

Status CheckBindable(const meta::Object& object, const client::BindItem& item) {
  const meta::ObjectMeta& metadata = object.metadata();
  if (metadata.deletion_timestamp) return Conflict(Subject(object) + " is being deleted");
  if (metadata.generation != item.generation) {
    return Mismatch(object, "metadata.generation", item.generation, metadata.generation);
  }
  if (apis::EpochOf(object) != item.placement) {
    return Mismatch(object, "status.placement.epoch", item.placement, apis::EpochOf(object));
  }
  TRY_STATUS(CheckNumber(object));
  if (apis::IsBound(object)) {
    return Conflict(Subject(object) + " is bound to pool " +
                    Quote(apis::PlacementOf(object)->pool));
  }
  const auto& reference = apis::PoolRefOf(object);
  if (reference && reference->name != item.pool) {
    return Conflict(Subject(object) + ": spec." + std::string(apis::PoolRefField(object.kind())) +
                    " is " + Quote(reference->name) + ", not " + Quote(item.pool));
  }
  return OkStatus();
}

void BecomeBound(meta::Object& object,
                 const client::BindItem& item,
                 std::string_view mode,
                 WallTime now) {
  auto& reference = apis::PoolRefOf(object);
  auto& placement = apis::PlacementOf(object);
  const bool was_named = reference.has_value();
  const bool is_adopted = apis::IsBeingAdopted(object);
  placement = apis::core::PlacementStatus{.pool = item.pool,
                                          .pool_uid = item.pool_uid,
                                          .epoch = apis::EpochOf(object) + 1,
                                          .bound_time = WallTime::FromSeconds(now.seconds()),
                                          .attempt = 0,
                                          .reason = {},
                                          .pinned = was_named && !is_adopted,
                                          .resources = apis::ToResources(item.resources),
                                          .reservation_uid = item.reservation_uid};
  meta::ObjectMeta& metadata = object.metadata();
  if (!was_named) {
    reference = apis::core::LocalObjectReference{.name = item.pool};
    ++metadata.generation;
  }
  std::vector<std::string>& finalizers = metadata.finalizers;
  if (mode == apis::core::kPoolModeSession &&
      std::ranges::find(finalizers, apis::kPlacementFinalizer) == finalizers.end()) {
    finalizers.emplace_back(apis::kPlacementFinalizer);
  }
  apis::SetScheduled(object, "True", "Bound", "bound to pool " + item.pool, now);
  apis::ClearReleased(object);
  if (&object.kind() == &apis::core::kReservationKind) {
    // The host has said yes: its hold becomes the reservation.
    auto& status = object.as<Reservation>().status;
    status.state = apis::core::kReservationAccepted;
    status.pools = {{.name = item.pool, .state = std::string(apis::core::kReservationAccepted)}};
  }
}

Status CheckAdoptable(const meta::Object& object, const client::Adoption& adoption) {
  if (apis::EpochOf(object) == adoption.placement) return OkStatus();
  return Mismatch(object, "status.placement.epoch", adoption.placement, apis::EpochOf(object));
}

void BecomeRehomed(meta::Object& object,
                   const client::Adoption& adoption,
                   const std::optional<apis::Amounts>& unit,
                   std::string_view mode,
                   WallTime now) {
  client::BindItem item;
  item.kind = adoption.kind;
  item.key = adoption.key;
  item.uid = adoption.uid;
  item.pool = adoption.pool;
  item.pool_uid = adoption.pool_uid;
  item.resources = adoption.resources;
  apis::PoolRefOf(object).reset();
  BecomeBound(object, item, mode, now);
  if (&object.kind() != &apis::core::kReservationKind) return;
  NoteConsumers(object, adoption.consumers);
  if (unit) KeepAtMost(object.as<Reservation>(), *unit);
}

void BecomeAdopted(meta::Object& object, store::Revision revision) {
  apis::PlacementOf(object) = apis::core::PlacementStatus{
      .epoch = revision.value, .bound_time = {}, .reason = std::string(apis::kPlacementAdopting)};
}

Status CheckClaimable(const meta::Object& volume, const meta::Object& machine) {
  const auto& spec = volume.as<Volume>().spec;
  const bool is_mine = spec.claim_ref && spec.claim_ref->uid == machine.metadata().uid;
  // Its deletion waits for the machine, wherever that goes: R4_6.
  const bool is_kept = is_mine && apis::IsKeptForUser(volume.metadata());
  if (volume.metadata().deletion_timestamp && !is_kept) {
    return Conflict(Subject(volume) + " is being deleted");
  }
  if (spec.claim_ref && !is_mine) {
    return Conflict(Subject(volume) + " is claimed by machine " + Quote(spec.claim_ref->name));
  }
  if (spec.unclaimable) return Conflict(Subject(volume) + " is unclaimable");
  return OkStatus();
}

bool Claim(meta::Object& volume, const meta::Object& machine) {
  auto& spec = volume.as<Volume>().spec;
  if (spec.claim_ref) return false;
  spec.claim_ref =
      apis::core::LocalUidReference{.name = machine.metadata().name, .uid = machine.metadata().uid};
  ++volume.metadata().generation;
  return true;
}

Status CheckUnbindable(const meta::Object& object,
                       const client::UnbindRequest& request,
                       std::string_view mode) {
  if (apis::EpochOf(object) != request.placement) {
    return Mismatch(object, "status.placement.epoch", request.placement, apis::EpochOf(object));
  }
  TRY_STATUS(CheckNumber(object));
  const bool never_bound = request.proof == client::UnbindProof::kNeverBound;
  if (never_bound == apis::IsBound(object)) {
    return Conflict(Subject(object) +
                    (never_bound ? " is bound to pool " + Quote(apis::PlacementOf(object)->pool)
                                 : " is not bound"));
  }
  // The object vanishes from the selected watch of such a poollet, which then runs it for ever. A
  // reservation runs nowhere.
  if (mode == apis::core::kPoolModeApi && request.proof == client::UnbindProof::kFenced &&
      &object.kind() != &apis::core::kReservationKind) {
    const std::string why = "its poollet speaks the API and cannot be fenced";
    return {Reason::kForbidden,
            Subject(object) + ": " + why,
            {{.kind = CauseKind::kForbidden, .field = "mode", .message = why}}};
  }
  return OkStatus();
}

namespace {

// Of a loss in one word. The words for a host that could not be asked follow from the proof:
// controllers and the scheduler act on them, and neither a host nor whoever else unbinds may say
// another one's.
std::string WordOf(const client::UnbindRequest& request) {
  switch (request.proof) {
    case client::UnbindProof::kOperatorFenced:
      return std::string(apis::core::kReasonOperatorFenced);
    case client::UnbindProof::kFenced: return std::string(apis::core::kReasonPoolLost);
    case client::UnbindProof::kHostReleased:
    case client::UnbindProof::kNeverBound: break;
  }
  const bool is_anothers = request.reason == apis::core::kReasonOperatorFenced ||
                           request.reason == apis::core::kReasonPoolLost;
  return is_anothers ? "Refused" : request.reason;
}

}  // namespace

void BecomeUnbound(meta::Object& object, const client::UnbindRequest& request, WallTime now) {
  auto& reference = apis::PoolRefOf(object);
  auto& placement = apis::PlacementOf(object);
  const bool stays_named = placement && placement->pinned && apis::IsBound(object);
  const std::string was_release = placement ? placement->release : std::string();
  const std::string word = WordOf(request);
  if (apis::IsBound(object)) ForgetReport(object);
  placement = apis::core::PlacementStatus{
      .epoch = apis::EpochOf(object) + 1, .bound_time = {}, .attempt = 0, .reason = word};
  if (reference && !stays_named) {
    reference.reset();
    ++object.metadata().generation;
  }
  std::erase(object.metadata().finalizers, apis::kPlacementFinalizer);
  apis::SetScheduled(object, "False", word, request.message, now);
  if (&object.kind() != &apis::core::kReservationKind) return;
  // Whose time is over gets no other place; whose pool was lost is told so until it has one. What
  // machines have used is theirs wherever they go: what is left is looked for anew.
  auto& state = object.as<Reservation>().status.state;
  if (apis::core::LeftOf(object.as<Reservation>()) == 0) {
    state = apis::core::kReservationBound;
  } else if (was_release == apis::core::kReleaseExpired) {
    state = apis::core::kReservationExpired;
  } else if (word == apis::core::kReasonPoolLost || word == apis::core::kReasonOperatorFenced) {
    state = apis::core::kReservationLost;
  }
}

Status CheckConsumable(const meta::Object& reservation,
                       const meta::Object& machine,
                       const client::BindItem& item,
                       const apis::Amounts& room) {
  const auto& typed = reservation.as<Reservation>();
  const auto& placement = typed.status.placement;
  const auto& wanted = machine.as<Machine>().spec.placement;
  if (!wanted || !wanted->reservation_ref ||
      !apis::core::IsNamedBy(typed, wanted->reservation_ref->name)) {
    return Conflict(Subject(machine) + " does not name " + Subject(reservation));
  }
  if (reservation.metadata().deletion_timestamp) {
    return Conflict(Subject(reservation) + " is being deleted");
  }
  if (!placement || placement->pool_uid != item.pool_uid) {
    return Conflict(Subject(reservation) + " keeps no room on pool " + Quote(item.pool));
  }
  if (!placement->release.empty()) {
    return Conflict(Subject(reservation) + " gives its room back: " + placement->release);
  }
  if (apis::core::LeftOf(typed) == 0) return Conflict(Subject(reservation) + " has no room left");
  for (const auto& [name, amount] : item.resources) {
    const auto kept = room.find(name);
    if (amount <= (kept == room.end() ? 0 : kept->second)) continue;
    return Conflict(Subject(reservation) + " keeps less " + name + " for each machine than " +
                    Subject(machine) + " needs");
  }
  return OkStatus();
}

apis::Amounts RoomOfOne(const meta::Object& reservation) {
  const auto& typed = reservation.as<Reservation>();
  apis::Amounts room;
  const int32_t left = apis::core::LeftOf(typed);
  if (!typed.status.placement || left == 0) return room;
  for (const auto& [name, amount] : apis::ToAmounts(typed.status.placement->resources)) {
    room[name] = amount / left;
  }
  return room;
}

void Consume(meta::Object& reservation, const meta::Object& machine, const apis::Amounts& room) {
  auto& typed = reservation.as<Reservation>();
  apis::Amounts left = apis::ToAmounts(typed.status.placement->resources);
  for (const auto& [name, amount] : room) left[name] -= amount;
  typed.status.placement->resources = apis::ToResources(left);
  typed.status.consumers.push_back(
      {.name = machine.metadata().name, .uid = machine.metadata().uid});
  NoteUsedUp(typed);
}

void RemovePoolletFinalizers(meta::Object& object) {
  std::erase_if(object.metadata().finalizers, [](const std::string& finalizer) {
    return finalizer == apis::kPlacementFinalizer || finalizer == apis::core::kMachineFinalizer ||
           finalizer == apis::core::kVolumeFinalizer || finalizer == apis::core::kBucketFinalizer ||
           finalizer == apis::core::kVolumeSnapshotFinalizer;
  });
}

}  // namespace berth::apiserver
