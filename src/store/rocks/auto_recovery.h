// SPDX-License-Identifier: Apache-2.0
// The store becomes writable again by itself once a full disk has space.
#pragma once

#include "base/status.h"
#include "base/time.h"
#include "rt/task.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {

// Trying costs little while the disk is full; a client that is told to retry comes back sooner.
constexpr Duration kRecoveryInterval = Duration::Seconds(10);

// Tries Recover() every interval in which the store is not healthy, until it is cancelled. The
// store outlives it and is not closed before.
rt::Task<Status> RecoverAfterFullDisk(RocksStore* store);

}  // namespace berth::store
