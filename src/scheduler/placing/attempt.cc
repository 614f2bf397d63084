// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/attempt.h"

#include <map>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/reservation.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "base/check.h"

namespace berth::scheduler {
namespace {

fleet::ObjectKind FleetKindOf(const meta::KindInfo& kind) {
  if (&kind == &apis::core::kReservationKind) return fleet::ObjectKind::kReservation;
  if (&kind == &apis::storage::kVolumeSnapshotKind) return fleet::ObjectKind::kVolumeSnapshot;
  switch (PoolKindOf(kind)) {
    case PoolKind::kMachine: return fleet::ObjectKind::kMachine;
    case PoolKind::kVolume: return fleet::ObjectKind::kVolume;
    case PoolKind::kBucket: return fleet::ObjectKind::kBucket;
  }
  return fleet::ObjectKind::kMachine;
}

struct Part {
  const ObjectRecord* object = nullptr;
  const PoolEntry* pool = nullptr;
};

// The object and its joint volumes, each with its pool; the object first. Empty if something is
// gone.
std::vector<Part> PartsOf(const Attempt& attempt,
                          const ObjectDirectory& objects,
                          const PoolDirectory& pools) {
  std::vector<Part> parts;
  parts.push_back({objects.Find(attempt.uid), pools.Find(attempt.candidate.pool)});
  CHECK(attempt.joint.size() == attempt.candidate.joint.size()) << attempt.uid;
  for (size_t i = 0; i < attempt.joint.size(); ++i) {
    parts.push_back({objects.Find(attempt.joint[i]), pools.Find(attempt.candidate.joint[i])});
  }
  for (const Part& part : parts) {
    if (part.object == nullptr || part.pool == nullptr) return {};
  }
  return parts;
}

Resources TakenBy(const Part& part) {
  if (const ReservationFacts* reserves = part.object->reserves.get()) {
    Resources taken =
        TakenOf(part.pool->pool, part.object->class_name, RequirementsOf(reserves->unit).resources);
    for (auto& [name, amount] : taken) amount *= reserves->left;
    return taken;
  }
  return TakenOf(
      part.pool->pool, part.object->class_name, RequirementsOf(part.object->shape).resources);
}

fleet::OfferItem ItemFor(const Part& part) {
  const Resources taken = TakenBy(part);
  return {.pool_uid = part.pool->pool.spec.uid,
          .kind = FleetKindOf(*part.object->kind),
          .uid = part.object->uid,
          .placement = static_cast<uint64_t>(part.object->epoch) + 1,
          // A reservation is for as many of its class as its amounts say.
          .class_name = part.object->reserves != nullptr ? "" : part.object->class_name,
          .resources = fleet::Vector(taken.begin(), taken.end())};
}

// Pools of one host are asked together; a pool that names no host is one by itself.
const std::string& HostOf(const PoolEntry& pool) {
  return pool.pool.spec.host.empty() ? pool.pool.spec.uid : pool.pool.spec.host;
}

}  // namespace

std::vector<fleet::Offer> OffersFor(const Attempt& attempt,
                                    const ObjectDirectory& objects,
                                    const PoolDirectory& pools,
                                    uint64_t term,
                                    uint64_t& next_number,
                                    Duration hold_ttl) {
  std::vector<fleet::Offer> offers;
  std::map<std::string, size_t> of_host;
  for (const Part& part : PartsOf(attempt, objects, pools)) {
    // In API mode nobody can be asked: the binding itself is the question.
    if (part.pool->pool.mode != PoolMode::kSession) continue;
    const auto [place, is_new] = of_host.try_emplace(HostOf(*part.pool), offers.size());
    if (!is_new) {
      offers[place->second].joint.push_back(ItemFor(part));
      continue;
    }
    fleet::Offer& offer = offers.emplace_back();
    offer.id = {.term = term, .number = ++next_number};
    offer.item = ItemFor(part);
    offer.hold_ttl = hold_ttl;
    if (part.object->uid != attempt.uid) continue;
    if (const ObjectRecord* reservation = objects.ReservationAt(attempt.candidate.reservation)) {
      offer.reservation_uid = reservation->uid;
    }
  }
  return offers;
}

client::BindRequest BindingFor(const Attempt& attempt,
                               const ObjectDirectory& objects,
                               const PoolDirectory& pools) {
  client::BindRequest request;
  for (const Part& part : PartsOf(attempt, objects, pools)) {
    const Resources taken = TakenBy(part);
    request.items.push_back({.kind = part.object->kind,
                             .key = part.object->key,
                             .uid = part.object->uid,
                             .generation = part.object->generation,
                             .placement = part.object->epoch,
                             .pool = part.pool->pool.spec.name,
                             .pool_uid = part.pool->pool.spec.uid,
                             .resources = client::Amounts(taken.begin(), taken.end())});
  }
  const ObjectRecord* reservation = objects.ReservationAt(attempt.candidate.reservation);
  if (reservation != nullptr && !request.items.empty()) {
    request.items.front().reservation = reservation->key.name;
    request.items.front().reservation_uid = reservation->uid;
  }
  return request;
}

bool IsUnknownOutcome(const Status& status) {
  return status.Is(Reason::kUnavailable) || status.Is(Reason::kTimeout) ||
         status.Is(Reason::kCancelled) || status.Is(Reason::kInternal);
}

bool IsCurrent(const Attempt& attempt, const ObjectDirectory& objects, const PoolDirectory& pools) {
  const std::vector<Part> parts = PartsOf(attempt, objects, pools);
  if (parts.empty() || !objects.NeedsPlace(*parts[0].object)) return false;
  // The reservation that it was to go into has lost its place, or has none yet that is written
  // down.
  const ObjectKey inside = attempt.candidate.reservation;
  if (inside != ObjectKey() && objects.ReservationAt(inside) == nullptr) return false;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].object->is_deleting || !parts[i].object->placed_uid.empty()) return false;
  }
  return true;
}

}  // namespace berth::scheduler
