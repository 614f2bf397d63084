// SPDX-License-Identifier: Apache-2.0
// Events are kept for an hour. Their keys hang on leases of the store, one for all events of a few
// minutes, so that expiry costs one lease and not one per event.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "meta/kind.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

// They live at least this long.
inline constexpr Duration kEventTtl = Duration::Hours(1);

class EventLeases {
 public:
  EventLeases(rt::Loop& loop, store::Store& store) : loop_(loop), store_(store) {}

  // The lease for a write of this kind: zero for all but events.
  rt::Task<Result<store::LeaseId>> For(const meta::KindInfo& kind);
  // The store does not know the lease any more (NotFound); the write is tried again with a new one.
  void Forget(store::LeaseId lease);

 private:
  rt::Loop& loop_;
  store::Store& store_;
  store::LeaseId current_;
  Time granted_at_;
};

}  // namespace berth::apiserver
