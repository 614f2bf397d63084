// SPDX-License-Identifier: Apache-2.0
// Changing and deleting objects. Both are: read the present state, decide what it becomes, commit
// on the condition that nobody was faster, otherwise again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/registry.h"
#include "apiserver/registry/graveyard.h"
#include "apiserver/registry/pool_guards.h"
#include "apiserver/registry/quota_ledger.h"
#include "apiserver/registry/write_parts.h"
#include "base/result.h"
#include "meta/object.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

class Changer {
 public:
  Changer(WriteParts parts, QuotaLedger& quota, PoolGuards& guards, Graveyard& graveyard)
      : parts_(parts), quota_(quota), guards_(guards), graveyard_(graveyard) {}

  rt::Task<Result<WriteResult>> Mutate(const meta::KindInfo& kind,
                                       ObjectKey key,
                                       Mutation mutation,
                                       WriteContext context);
  rt::Task<Result<DeleteResult>> Delete(const meta::KindInfo& kind,
                                        ObjectKey key,
                                        DeleteRequest request,
                                        WriteContext context);

 private:
  struct Current {
    StoredObject stored;
    meta::Object object;  // of the stored kind
  };
  // What becomes of an object.
  struct Plan {
    enum class Outcome : uint8_t { kNothing, kPut, kDelete };
    Outcome outcome = Outcome::kNothing;
    meta::Object object;
    Bytes at_rest;
  };

  rt::Task<Result<Current>> Load(const meta::KindInfo& kind, ObjectKey key);
  // What Load cannot read although it is there; null if it can, or there is none.
  const StoredObject* FindUnreadable(const meta::KindInfo& kind, const ObjectKey& key) const;
  // By force, as nobody can say what it asks for.
  rt::Task<Result<DeleteResult>> DeleteUnreadable(const meta::KindInfo& kind,
                                                  ObjectKey key,
                                                  DeleteRequest request,
                                                  WriteContext context);
  // Conflict if `next` was made from another state than `current`.
  Status CheckBasis(const meta::KindInfo& kind, const Current& current, const meta::Object& next);
  Result<Plan> PlanUpdate(const Current& current, meta::Object next, const WriteContext& context);
  enum class InUse : uint8_t { kNo, kYes };
  // Whether anything is bound to the pool.
  rt::Task<Result<InUse>> LookUpUse(const meta::KindInfo& kind, std::string uid);
  Result<Plan> PlanDelete(const Current& current,
                          const DeleteRequest& request,
                          const WriteContext& context,
                          InUse in_use);
  Status CheckPreconditions(const Current& current, const DeleteRequest& request);
  // The state that was written, or nothing if someone was faster; the cache has it either way.
  rt::Task<Result<std::optional<StoredObject>>> Commit(ObjectKey key, Current current, Plan plan);
  // The pools whose guards the change touches: those of what leaves the store, and a pool whose own
  // terms change.
  static PoolTurns::Pools PoolsOf(const meta::Object& before, const Plan& plan);
  // Writes the change into the guards. False: whether the pool is in use is not what the plan was
  // made for.
  Result<bool> ChangeGuards(const meta::Object& before,
                            const Plan& plan,
                            GuardChanges& guards,
                            store::Txn& txn);
  rt::Task<Status> ClearGraves(std::vector<std::string> pools);

  WriteParts parts_;
  QuotaLedger& quota_;
  PoolGuards& guards_;
  Graveyard& graveyard_;
};

}  // namespace berth::apiserver
