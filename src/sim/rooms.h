// SPDX-License-Identifier: Apache-2.0
// Rooms is what the hosts of a world at rest have left for more: in amounts as their ledgers count,
// or, of a runtime that only knows how many of a class fit, in shares of a whole (PROTOCOL 5.6).
#pragma once

#include <string>
#include <vector>

#include "apis/placement.h"
#include "sim/troubles.h"
#include "sim/truth.h"
#include "sim/world.h"

namespace berth::sim {

// Whether it could go there if there was room: the host is there, and nothing of the pool is
// against it.
bool IsUsable(const World& world,
              const Troubles& troubles,
              const PoolFact& pool,
              const PlacedFact& wanted);

class Rooms {
 public:
  // As of now. Both outlive it. REQUIRES: every host that is not gone is up.
  Rooms(const World& world, const Troubles& troubles);

  // The name of a pool that has room for it; "" if none has.
  std::string For(const PlacedFact& wanted) const;
  // Whether there is room for all of them at once: exact if they are equal, else never too much.
  bool ForAll(const std::vector<const PlacedFact*>& wanted) const;
  // The name of a pool that would have room for it once whatever is less important, and may be
  // stopped, had left (PROTOCOL 8.4); "" if none would. Pools where room is or was made for it, or
  // for another one that waits, do not count: the room may have been in vain, or is not to be had.
  std::string IfOthersLeft(const PlacedFact& wanted) const;

 private:
  struct Room {
    const PoolFact* pool = nullptr;
    const HostProcess* host = nullptr;
    apis::Amounts free;
  };
  // The first of them that has room; none: null.
  Room* Find(std::vector<Room>& rooms, const PlacedFact& wanted) const;

  bool IsContested(const std::string& pool_uid, const PlacedFact& wanted) const;

  const World& world_;
  const Troubles& troubles_;
  std::vector<Room> rooms_;
};

}  // namespace berth::sim
