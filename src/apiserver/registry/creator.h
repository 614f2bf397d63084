// SPDX-License-Identifier: Apache-2.0
// Creating objects, one or many, also already bound to their pools. Objects of one call share
// commits; each has its own verdict.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/registry.h"
#include "apiserver/registry/copy_encoder.h"
#include "apiserver/registry/pool_guards.h"
#include "apiserver/registry/quota_ledger.h"
#include "apiserver/registry/scheduler_term.h"
#include "apiserver/registry/write_parts.h"
#include "base/result.h"
#include "base/text_map.h"
#include "client/binder.h"
#include "meta/object.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

class Creator {
 public:
  Creator(WriteParts parts, QuotaLedger& quota) : parts_(parts), quota_(quota) {}

  rt::Task<std::vector<Result<WriteResult>>> Create(std::vector<meta::Object> objects,
                                                    WriteContext context);

  // Who binds new objects, and where. Each item is a copy.
  struct Bound {
    const std::vector<client::BindItem>* items = nullptr;
    std::string holder;
    int64_t term = 0;
    PoolGuards* guards = nullptr;
    SchedulerTerm* terms = nullptr;
  };
  rt::Task<std::vector<Status>> CreateBound(meta::Object model, Bound bound);

 private:
  // An object on its way into the store.
  struct Draft {
    meta::Object object;  // of the stored kind
    std::string key;      // in the store
    std::string generate_name;
    int names_tried = 0;
    Bytes at_rest;
    const client::BindItem* item = nullptr;  // null: it is not bound
    std::string mode;                        // of the item's pool
    std::optional<Result<WriteResult>> verdict;
  };
  using Chunk = std::vector<Draft*>;
  // What a chunk with bound objects does to their pools.
  struct Places {
    explicit Places(PoolGuards& guards) : changes(guards) {}
    GuardChanges changes;
    std::optional<store::Condition> term;
    bool has_refused = false;
  };

  void PrepareCopies(meta::Object model, const Bound& bound, std::vector<Draft>& drafts);
  // Makes a draft one of its own that is a copy of a complete object.
  Status Imprint(Draft& draft, CopyEncoder& encoder);
  Status Prepare(Draft& draft, const WriteContext& context);
  // Everything that the server adds and checks, but the place.
  Status Complete(Draft& draft, const WriteContext& context);
  // Gives it its place, if it has one, and makes the bytes to store.
  Status Seal(Draft& draft);
  rt::Task<std::vector<Result<WriteResult>>> CommitAll(std::vector<Draft> drafts,
                                                       DryRun dry_run,
                                                       const Bound* bound);
  // The pool's mode; "" if there is no such pool, which its Place finds out.
  Status FindMode(Draft& draft, PoolGuards& guards, TextMap<std::string>& modes) const;
  // Whether all undecided drafts of the chunk have their places now. What has none is refused if
  // the caches are fresh.
  enum class Freshness : uint8_t { kCached, kFresh };
  bool Place(const Chunk& chunk, const Bound& bound, Freshness freshness, Places& places);
  rt::Task<Result<std::unique_ptr<Places>>> PlaceAll(Chunk chunk,
                                                     const Bound* bound,
                                                     PoolTurns::Pools pools);
  static PoolTurns::Pools PoolsOf(const Chunk& chunk);
  Status Finish(Draft& draft, const WriteContext& context);
  Status NameIt(Draft& draft);
  // All drafts, those for one pool together: they share its guard.
  static Chunk InOrder(std::vector<Draft>& drafts);
  // The undecided drafts that fit into one transaction; the others stay in `order`.
  Chunk NextChunk(Chunk& order) const;
  // Tries once; drafts without a verdict afterwards are to be tried again.
  rt::Task<Status> TryCommit(Chunk chunk, DryRun dry_run, const Bound* bound);
  // Decides about drafts whose namespace does not take them, and binds the rest to its state.
  void CheckNamespaces(const Chunk& chunk, store::Txn& txn);
  void CheckDryRun(const Chunk& chunk);
  void OnConflict(const Chunk& chunk, const store::TxnResult& result);

  WriteParts parts_;
  QuotaLedger& quota_;
};

}  // namespace berth::apiserver
