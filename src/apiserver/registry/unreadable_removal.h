// SPDX-License-Identifier: Apache-2.0
// Removing what cannot be read (ADR 0038). What a readable object has taken of its pool is given
// back by the commit that removes it. Of an unreadable one nobody knows how much that was, so the
// same commit counts anew what its pool has promised: the sum over what is bound to it and can be
// read, on the condition that nobody changed the pool's guard meanwhile.
//
// Its pool stands in its header. If that cannot be read either, it is the one whose guard is not
// the sum. As long as something else on the pool cannot be read nothing is counted: that would give
// away what the other has. It is made good when the last of them is removed; when that is mended
// instead, by the next such removal.
//
// A host that has it goes on with it, and holds the room for it by its own ledger (4.3).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apis/placement.h"
#include "apiserver/registry.h"
#include "apiserver/registry/pool_guards.h"
#include "apiserver/registry/write_parts.h"
#include "base/result.h"
#include "rt/task.h"

namespace berth::apiserver {

class UnreadableRemoval {
 public:
  UnreadableRemoval(WriteParts parts, PoolGuards& guards) : parts_(parts), guards_(guards) {}

  struct Removed {
    store::Revision revision;
    std::vector<std::string> pools;  // that waited for it alone and went with it
  };
  // Removes the object as it is at `stored.revision`. Conflict if somebody has changed it, or the
  // guards of its pool again and again.
  rt::Task<Result<Removed>> Remove(const meta::KindInfo& kind, ObjectKey key, StoredObject stored);

 private:
  // What is bound to a pool, all told.
  struct Promises {
    apis::Amounts allocated;
    int64_t count = 0;
  };
  // By UID of the pool; without those where something cannot be read.
  using Counts = std::map<std::string, Promises>;
  struct Victim {
    const meta::KindInfo* kind = nullptr;
    std::string suffix;  // of its key
    StoredObject stored;
  };

  // The pools that it may have taken something of, at most kPoolsMax.
  rt::Task<Result<PoolTurns::Pools>> PoolsOf(Victim victim);
  // Of all pools of the kind those whose guards are not the sum of what is bound.
  rt::Task<Result<PoolTurns::Pools>> FindPromising(Victim victim);
  // As the cache has it in one turn of the loop, without the victim. REQUIRES: the turn of these
  // pools is held, and the cache is as new as their guards.
  rt::Task<Result<Counts>> Count(Victim victim, PoolTurns::Pools pools);
  // Whether nothing but the victim has an unreadable header, and so may be bound to any pool.
  bool CanCount(const Victim& victim) const;
  // Reads the guards, and then whatever is newer.
  rt::Task<Status> Refresh(PoolTurns::Pools pools);
  // The kinds that are bound to pools of the same kind.
  std::vector<const meta::KindInfo*> KindsBeside(const meta::KindInfo& kind) const;

  WriteParts parts_;
  PoolGuards& guards_;
};

}  // namespace berth::apiserver
