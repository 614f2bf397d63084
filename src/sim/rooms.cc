// SPDX-License-Identifier: Apache-2.0
#include "sim/rooms.h"

#include <algorithm>

#include "apis/core/reservation.h"

namespace berth::sim {
namespace {

// How many of that size an empty host holds.
int64_t QuantityOf(const HostProcess& host, const apis::Amounts& size) {
  int64_t quantity = apis::kShareWhole;
  for (const auto& [dimension, amount] : size) {
    const auto has = host.capacity().find(dimension);
    const int64_t whole = has == host.capacity().end() ? 0 : has->second;
    quantity = std::min(quantity, whole / std::max<int64_t>(amount, 1));
  }
  return quantity;
}

// Its part of the host, rounded down, so that as many fit as the runtime says. A reservation is for
// several machines of its class.
int64_t ShareOf(const HostProcess& host, const PlacedFact& fact) {
  const bool reserves = fact.kind == &apis::core::kReservationKind;
  const int64_t quantity = QuantityOf(host, reserves ? ClassAmounts(fact.class_name) : fact.needs);
  if (quantity == 0) return apis::kShareWhole + 1;  // never fits
  return apis::kShareWhole / quantity * (reserves ? fact.left : 1);
}

// What it takes of a pool of the host. Buckets take nothing.
apis::Amounts TakenBy(const PlacedFact& fact, const HostProcess& host) {
  if (fact.needs.empty() || !host.is_foreign()) return fact.needs;
  return {{std::string(apis::kShare), ShareOf(host, fact)}};
}

apis::Amounts FreeOf(HostProcess& host, const std::string& pool_uid) {
  apis::Amounts free(host.capacity().begin(), host.capacity().end());
  if (host.is_foreign()) free = {{std::string(apis::kShare), apis::kShareWhole}};
  for (const auto& [dimension, amount] : host.poollet().host().ledger().AllocatedOf(pool_uid)) {
    free[dimension] -= amount;
  }
  return free;
}

bool Fits(const apis::Amounts& needed, const apis::Amounts& free) {
  return std::ranges::all_of(needed, [&free](const auto& need) {
    const auto left = free.find(need.first);
    return left != free.end() && need.second <= left->second;
  });
}

// Who lives in room that is reserved leaves none to others.
bool MayBeStoppedFor(const PlacedFact& wanted, const PlacedFact& other) {
  return other.is_spare && other.priority < wanted.priority && !other.is_tied &&
         other.reservation_uid.empty() && !other.is_deleting && other.release.empty();
}

}  // namespace

bool IsUsable(const World& world,
              const Troubles& troubles,
              const PoolFact& pool,
              const PlacedFact& wanted) {
  const HostProcess* host = world.HostOf(pool.uid);
  if (host == nullptr || troubles.IsGone(*host)) return false;
  if (pool.is_cordoned || pool.is_deleting) return false;
  // Nobody there kills a guest when contact is lost.
  if (wanted.needs_fence && host->is_foreign()) return false;
  return &apis::PoolKindOf(*wanted.kind) == pool.kind &&
         (wanted.pools.empty() ||
          std::ranges::find(wanted.pools, pool.name) != wanted.pools.end()) &&
         apis::core::TolerateTaints(wanted.tolerations, pool.taints);
}

Rooms::Rooms(const World& world, const Troubles& troubles) : world_(world), troubles_(troubles) {
  for (const auto& [uid, pool] : world.truth().pools()) {
    HostProcess* host = world.HostOf(uid);
    if (host == nullptr || troubles.IsGone(*host)) continue;
    rooms_.push_back({.pool = &pool, .host = host, .free = FreeOf(*host, uid)});
  }
}

Rooms::Room* Rooms::Find(std::vector<Room>& rooms, const PlacedFact& wanted) const {
  const auto found = std::ranges::find_if(rooms, [&](const Room& room) {
    return IsUsable(world_, troubles_, *room.pool, wanted) &&
           Fits(TakenBy(wanted, *room.host), room.free);
  });
  return found == rooms.end() ? nullptr : &*found;
}

std::string Rooms::For(const PlacedFact& wanted) const {
  std::vector<Room> rooms = rooms_;
  const Room* room = Find(rooms, wanted);
  return room == nullptr ? "" : room->pool->name;
}

bool Rooms::ForAll(const std::vector<const PlacedFact*>& wanted) const {
  std::vector<Room> rooms = rooms_;
  return std::ranges::all_of(wanted, [&](const PlacedFact* one) {
    Room* room = Find(rooms, *one);
    if (room == nullptr) return false;
    for (const auto& [dimension, amount] : TakenBy(*one, *room->host)) {
      room->free[dimension] -= amount;
    }
    return true;
  });
}

bool Rooms::IsContested(const std::string& pool_uid, const PlacedFact& wanted) const {
  if (world_.truth().WasNominated(wanted.uid, pool_uid)) return true;
  return std::ranges::any_of(world_.truth().placed(), [&pool_uid](const auto& entry) {
    return entry.second.pool_uid.empty() && entry.second.nominated_uid == pool_uid;
  });
}

std::string Rooms::IfOthersLeft(const PlacedFact& wanted) const {
  std::vector<Room> rooms = rooms_;
  std::erase_if(rooms, [&](const Room& room) { return IsContested(room.pool->uid, wanted); });
  for (Room& room : rooms) {
    for (const auto& [uid, fact] : world_.truth().placed()) {
      if (fact.pool_uid != room.pool->uid || !MayBeStoppedFor(wanted, fact)) continue;
      for (const auto& [dimension, amount] : TakenBy(fact, *room.host)) {
        room.free[dimension] += amount;
      }
    }
  }
  const Room* room = Find(rooms, wanted);
  return room == nullptr ? "" : room->pool->name;
}

}  // namespace berth::sim
