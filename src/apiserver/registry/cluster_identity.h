// SPDX-License-Identifier: Apache-2.0
// The cluster's identity in the store: /guard/cluster.
#pragma once

#include <optional>

#include "base/result.h"
#include "client/cluster.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

// Reads the identity and counts this start; the first start makes it. Once per server, before
// anything is served.
rt::Task<Result<client::ClusterIdentity>> CountStart(rt::Loop& loop, store::Store& store);
// What is in the store; nullopt before the first start.
rt::Task<Result<std::optional<client::ClusterIdentity>>> ReadIdentity(store::Store& store);
// History was rewound: the incarnation is one more than any before. `replaced` is the identity of
// the store whose place this one takes, if that is known: a copy can be restored twice, or after a
// later one. For `restore`, on a store that nobody serves.
rt::Task<Result<client::ClusterIdentity>> BeginIncarnation(
    rt::Loop& loop, store::Store& store, std::optional<client::ClusterIdentity> replaced);
// All hosts were heard since the restore: the store's word on places is good again.
rt::Task<Status> SettleIncarnation(rt::Loop& loop, store::Store& store);

}  // namespace berth::apiserver
