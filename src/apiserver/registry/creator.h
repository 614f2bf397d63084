// SPDX-License-Identifier: Apache-2.0
// Creating objects, one or many. Objects of one call share commits; each has its own verdict.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/registry.h"
#include "apiserver/registry/quota_ledger.h"
#include "apiserver/registry/write_parts.h"
#include "base/result.h"
#include "meta/object.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

class Creator {
 public:
  Creator(WriteParts parts, QuotaLedger& quota) : parts_(parts), quota_(quota) {}

  rt::Task<std::vector<Result<WriteResult>>> Create(std::vector<meta::Object> objects,
                                                    WriteContext context);

 private:
  // An object on its way into the store.
  struct Draft {
    meta::Object object;  // of the stored kind
    std::string key;      // in the store
    std::string generate_name;
    int names_tried = 0;
    Bytes at_rest;
    std::optional<Result<WriteResult>> verdict;
  };
  using Chunk = std::vector<Draft*>;

  Status Prepare(Draft& draft, const WriteContext& context);
  Status Finish(Draft& draft, const WriteContext& context);
  Status NameIt(Draft& draft);
  // The undecided drafts that fit into one transaction.
  Chunk NextChunk(std::vector<Draft>& drafts) const;
  // Tries once; drafts without a verdict afterwards are to be tried again.
  rt::Task<Status> TryCommit(Chunk chunk, DryRun dry_run);
  // Decides about drafts whose namespace does not take them, and binds the rest to its state.
  void CheckNamespaces(const Chunk& chunk, store::Txn& txn);
  void CheckDryRun(const Chunk& chunk);
  void OnConflict(const Chunk& chunk, const store::TxnResult& result);

  WriteParts parts_;
  QuotaLedger& quota_;
};

}  // namespace berth::apiserver
