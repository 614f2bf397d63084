// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/auto_recovery.h"

#include "base/log.h"
#include "rt/sleep.h"

namespace berth::store {

rt::Task<Status> RecoverAfterFullDisk(RocksStore* store) {
  while (true) {
    CO_TRY_STATUS(co_await rt::Sleep(kRecoveryInterval));
    if (store->health().ok()) continue;
    const Status recovered = co_await store->Recover();
    if (recovered.Is(Reason::kCancelled)) co_return recovered;
    // Why it does not recover was said when it failed.
    if (recovered.ok()) LOG_INFO("store: the disk has space again; the store is writable");
  }
}

}  // namespace berth::store
