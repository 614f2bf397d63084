// SPDX-License-Identifier: Apache-2.0
// The cluster's identity in the store: /guard/cluster.
#pragma once

#include "base/result.h"
#include "client/cluster.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

// Reads the identity and counts this start; the first start makes it. Once per server, before
// anything is served.
rt::Task<Result<client::ClusterIdentity>> CountStart(rt::Loop& loop, store::Store& store);
// History was rewound: the incarnation is one more than before. For `restore`, on a store that
// nobody serves.
rt::Task<Result<client::ClusterIdentity>> BeginIncarnation(rt::Loop& loop, store::Store& store);

}  // namespace berth::apiserver
