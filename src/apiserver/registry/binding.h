// SPDX-License-Identifier: Apache-2.0
// Binding and unbinding: the Binder on a store. A request is looked at in the cache, and everything
// that the verdict rests on is a condition of its commit (S3): the object, its pool's guard, the
// scheduler's Lease, the volumes that the machine claims, the reservation that it uses. What
// changed meanwhile without mattering, a status or the renewal of the Lease, leads to another try
// and not to a failure.
//
// Requests of one call share commits. Each pool is in one commit at a time; commits of different
// pools go in parallel and share the store's fsyncs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/registry/creator.h"
#include "apiserver/registry/pool_guards.h"
#include "apiserver/registry/scheduler_term.h"
#include "apiserver/registry/write_parts.h"
#include "base/result.h"
#include "client/binder.h"
#include "client/rewound.h"
#include "meta/object.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

class StoreBinder final : public client::Binder, public client::Rewound {
 public:
  StoreBinder(WriteParts parts, PoolGuards& guards, Creator& creator)
      : parts_(parts), guards_(guards), creator_(creator), term_(parts.cache) {}

  using BindVerdicts = std::vector<Result<std::vector<meta::Object>>>;
  rt::Task<BindVerdicts> BindBatch(std::vector<client::BindRequest> requests) override;
  rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                 std::vector<client::BindItem> items,
                                                 std::string holder,
                                                 int64_t term) override;
  rt::Task<std::vector<Status>> UnbindBatch(std::vector<client::UnbindRequest> requests) override;
  rt::Task<std::vector<Status>> AdoptBatch(std::vector<client::Adoption> adoptions) override;
  rt::Task<Status> Settle() override;

 private:
  // A bind, an unbind or an adoption on its way into the store.
  struct Draft {
    const client::BindRequest* bind = nullptr;
    const client::UnbindRequest* unbind = nullptr;
    const client::Adoption* adopt = nullptr;
    PoolTurns::Pools pools;
    size_t keys = 0;  // at least
    int attempts = 0;
    bool goes_alone = false;  // its objects change so often that it would spoil others
    std::vector<std::string> keys_written;
    std::optional<Status> verdict;  // ok: committed, or nothing to do
    std::vector<meta::Object> objects;
  };
  using Chunk = std::vector<Draft*>;

  // An object as this commit leaves it.
  struct Staged {
    meta::Object object;
    store::Revision revision;  // as it was read
    size_t size = 0;
    bool is_changed = false;
  };
  // A reservation of which one part becomes a machine's.
  struct Use {
    std::string key;  // of the store
    std::string pool_uid;
    apis::Amounts room;
    meta::Object after;
  };
  // One commit in the making.
  struct Work {
    explicit Work(PoolGuards& guards) : guards(guards) {}
    GuardChanges guards;
    std::map<std::string, Staged> staged;  // by store key
    std::optional<store::Condition> term;
    std::vector<store::Op> tombstones;
    size_t keys = 0;
    size_t bytes = 0;
  };
  enum class Freshness : uint8_t { kCached, kFresh };
  enum class Fit : uint8_t { kStaged, kRefused, kNextCommit };

  rt::Task<Status> DecideAll(std::vector<Draft>* drafts);
  rt::Task<std::vector<Status>> VerdictsOf(std::vector<Draft>* drafts);
  // Which pool the object is bound to is read from it; if that is behind, the next try knows
  // better.
  void AddPoolOf(const meta::KindInfo& kind, const client::ObjectKey& key, Draft& draft);
  static std::vector<Chunk> Divide(std::vector<Draft>& drafts);
  // Tries once; drafts without a verdict afterwards are to be tried again.
  rt::Task<Status> TryCommit(Chunk chunk);
  // Puts all drafts of the chunk that are right into `work`. False: some would be refused, and the
  // cache may be behind.
  bool Stage(const Chunk& chunk, Freshness freshness, Work& work, Chunk& staged);
  Fit StageBind(Draft& draft, Work& work, Status& why);
  Fit StageUnbind(Draft& draft, Work& work, Status& why);
  Fit StageAdopt(Draft& draft, Work& work, Status& why);
  // What a reservation keeps for one machine; nullopt for other objects, and if its class is gone.
  std::optional<apis::Amounts> UnitOf(const meta::Object& object) const;
  Result<Staged*> Open(Work& work,
                       const meta::KindInfo& kind,
                       const client::ObjectKey& key,
                       const std::string& uid);
  Status UseReservation(Work& work,
                        const client::BindItem& item,
                        const meta::Object& machine,
                        std::vector<Use>& uses);
  Result<std::vector<std::string>> CheckClaims(const client::BindRequest& request,
                                               const meta::Object& machine,
                                               Work& work);
  Result<store::Txn> MakeTxn(Work& work);
  void OnConflict(const Chunk& staged, const store::TxnResult& result, Work& work);
  static void Settle(const Chunk& staged, store::Revision revision, Work& work);

  WriteParts parts_;
  PoolGuards& guards_;
  Creator& creator_;
  SchedulerTerm term_;
};

}  // namespace berth::apiserver
