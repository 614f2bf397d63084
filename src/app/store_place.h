// SPDX-License-Identifier: Apache-2.0
// Stores that take the place of others in a data folder: what a restore and a migration share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "client/cluster.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

// No watcher remembers a revision this far ahead of a copy (PROTOCOL 4.4).
constexpr int64_t kRevisionJump = 1'000'000'000;

// Conflict if a process has the embedded store `store` open; `doing` begins the message.
Status CheckNotInUse(const std::string& doing, const std::string& store);

// How far the store was whose place is taken. A copy may be older than an earlier restore, whose
// numbers must not come twice.
struct Before {
  std::optional<client::ClusterIdentity> identity;
  store::Revision revision;
};
// Nothing if there is no store, or one that cannot be read, which is the reason for many a restore.
rt::Task<Result<Before>> ReadBefore(rt::Loop* loop, std::string store);

// Exchanges the two in one step, so that there is a store at every moment: a server that finds none
// begins an empty one. Where the store before it is now; "" if there was none.
Result<std::string> PutStoreInPlace(const std::string& made, const std::string& store);
// Renames `store` to the first free of store.WORD-1, store.WORD-2, ...
Result<std::string> SetAside(const std::string& path,
                             const std::string& store,
                             const std::string& word);
Status SyncFolder(const std::string& path);

}  // namespace berth::app
