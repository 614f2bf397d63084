// SPDX-License-Identifier: Apache-2.0
// One guard per pool: what was promised on it and on which terms. Every bind, unbind, cordon,
// change of capacity and removal rewrites the guard of its pool in its own commit, on the condition
// that nobody else did meanwhile. So a commit that is conditioned on the guard knows the pool: it
// is never promised more than it has (S3d), and after a cordon nothing new lands (S3b), whoever
// writes at the same time. Writes that change none of this leave the guard alone.
//
//   /guard/pool/<uid>   made with the first binding
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apis/placement.h"
#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry/pool_turns.h"
#include "base/result.h"
#include "meta/object.h"
#include "meta/scheme.h"
#include "meta/type.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

struct PoolGuard {
  std::string kind;  // "MachinePool"
  std::string pool;  // name
  std::string mode;
  bool cordoned = false;
  bool deleting = false;
  std::map<std::string, int64_t> allocatable;
  std::map<std::string, int64_t> allocated;
  int64_t count = 0;  // objects bound
  bool operator==(const PoolGuard&) const = default;
};
BERTH_DESCRIBE(PoolGuard,
               "dev.berth.store.PoolGuard",
               "What was promised on a pool, and on which terms.",
               BERTH_FIELD(kind, "kind", "Kind of the pool."),
               BERTH_FIELD(pool, "pool", "Name of the pool."),
               BERTH_FIELD(mode, "mode", "How its poollet speaks."),
               BERTH_FIELD(cordoned, "cordoned", "Nothing new comes."),
               BERTH_FIELD(deleting, "deleting", "Deletion was asked for."),
               BERTH_FIELD(allocatable, "allocatable", "What may be promised."),
               BERTH_FIELD(allocated, "allocated", "What is promised."),
               BERTH_FIELD(count, "count", "How many objects are bound."))

constexpr std::string_view kGuardPrefix = "/guard/pool/";
std::string GuardKey(std::string_view pool_uid);

// The guard as it follows from the pool itself, with nothing promised.
PoolGuard GuardOf(const meta::Object& pool);
// Takes over the pool's terms, not what was promised.
void UpdateTerms(PoolGuard& guard, const meta::Object& pool);
// Forbidden if the pool takes nothing new, or not this much: the cause's field is "cordoned",
// "deleting", "mode" or the dimension.
Status CheckRoom(const PoolGuard& guard, const apis::Amounts& amounts);

// The guards as this server last saw them. What another server wrote is noticed when a commit
// fails.
class PoolGuards {
 public:
  PoolGuards(store::Store& store, const WatchCache& cache, const meta::Scheme& scheme)
      : store_(store), cache_(cache), scheme_(scheme) {}

  struct Entry {
    std::optional<PoolGuard> guard;  // nullopt: the store has none
    store::Revision revision;        // zero: the key must be absent
  };

  // These pools are this task's own (on this server), and their guards are known.
  class Turn {
   public:
    Turn(Turn&& other) noexcept
        : guards_(std::exchange(other.guards_, nullptr)),
          pools_(std::move(other.pools_)),
          permit_(std::move(other.permit_)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn();
    const PoolTurns::Pools& pools() const { return pools_; }

   private:
    friend class PoolGuards;
    Turn(PoolGuards& guards, PoolTurns::Pools pools, PoolTurns::Permit permit)
        : guards_(&guards), pools_(std::move(pools)), permit_(std::move(permit)) {}
    PoolGuards* guards_ = nullptr;
    PoolTurns::Pools pools_;
    PoolTurns::Permit permit_;
  };
  // Waits for the pools and reads the guards that are not known yet.
  rt::Task<Result<Turn>> Enter(PoolTurns::Pools pools);
  // Reads the guards again, whatever is known. REQUIRES: the turn of these pools is held.
  rt::Task<Status> Reload(PoolTurns::Pools pools);
  // REQUIRES: of a turn that is held.
  const Entry& Of(const std::string& pool_uid) const;
  void Forget(const std::string& pool_uid) { entries_.erase(pool_uid); }
  void Set(const std::string& pool_uid, Entry entry) { entries_[pool_uid] = std::move(entry); }

  // A guard that follows from a pool as it is at that revision.
  struct Made {
    PoolGuard guard;
    store::Revision revision;
  };
  // The guard for a pool that has none yet. NotFound if there is no pool of this name and UID.
  Result<Made> Make(const meta::KindInfo& kind, const std::string& name, const std::string& uid);
  // How the pool's poollet speaks; "" if there is no such pool, or nobody spoke yet. A pool that
  // has to be looked into is Made with the same look.
  std::string ModeOf(const meta::KindInfo& kind, const std::string& name, const std::string& uid);

  // The pool of this kind and name in the cache; null if there is none.
  const StoredObject* FindPool(const meta::KindInfo& kind, const std::string& name) const;
  const meta::KindInfo* PoolKindNamed(std::string_view kind) const;
  const meta::Scheme& scheme() const { return scheme_; }
  store::Store& store() { return store_; }

 private:
  rt::Task<Status> Load(PoolTurns::Pools pools);

  store::Store& store_;
  const WatchCache& cache_;
  const meta::Scheme& scheme_;
  PoolTurns turns_;
  // Bounded by the number of pools: an entry goes with its pool, and that there is none is
  // remembered for a turn only.
  std::unordered_map<std::string, Entry> entries_;
  // Made for ModeOf, by UID, until somebody wants it: at most kMadeMax.
  std::unordered_map<std::string, Made> made_;
};

// The changes of one commit to the guards. REQUIRES: a turn with their pools is held until the
// commit has ended.
class GuardChanges {
 public:
  explicit GuardChanges(PoolGuards& guards) : guards_(guards) {}

  // The guard as this commit leaves it, or null if the pool has none: then it was never bound to,
  // or is gone.
  const PoolGuard* Find(const std::string& pool_uid) const;
  // The guard of a pool that objects of `kind` are bound to, made from the pool if there is none
  // yet. NotFound if there is no pool of this name and UID.
  Result<const PoolGuard*> Open(const meta::KindInfo& pool_kind,
                                const std::string& pool,
                                const std::string& pool_uid);
  // REQUIRES: opened, and CheckRoom was ok.
  void Take(const std::string& pool_uid, const apis::Amounts& amounts);
  // Gives back what an object that leaves has taken. A pool that waits to be deleted goes with the
  // last one.
  Status Release(const std::string& pool_uid, const apis::Amounts& amounts);
  // Gives back a part of what an object has taken that stays.
  void Shrink(const std::string& pool_uid, const apis::Amounts& amounts);
  // Sets what all objects on it have taken. A pool that waits to be deleted goes if that is
  // nothing. No effect without a guard.
  Status Recount(const std::string& pool_uid, const apis::Amounts& amounts, int64_t count);
  // After a write to the pool itself: null if it leaves the store.
  void PoolChanged(const meta::Object& before, const meta::Object* after);

  // How many keys of a transaction the changes take.
  size_t keys() const;
  // Writes the guards, on the condition that they are as they were read.
  void AddTo(store::Txn& txn) const;
  // What became of the commit. After Failed the guards are read anew. Committed tells which pools
  // went with it.
  std::vector<std::string> Committed(store::Revision revision);
  void Failed();

 private:
  struct Change {
    std::optional<PoolGuard> guard;  // nullopt: to be removed, or never there
    bool is_used = false;            // the commit rests on it
    bool is_short = false;           // more was given back than was taken
    std::string pool_key;            // new or released: bound to the pool's own state, too
    store::Revision pool_revision;
    std::optional<Bytes> pool_at_rest;  // released: the pool without its finalizer; empty: it goes
  };
  Change& Edit(const std::string& pool_uid);
  Status ReleasePool(const std::string& pool_uid, Change& change);

  PoolGuards& guards_;
  std::map<std::string, Change> changes_;
};

}  // namespace berth::apiserver
