// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/compactor.h"

#include "base/log.h"
#include "rt/sleep.h"

namespace berth::apiserver {

rt::Task<Status> Compactor::Run() {
  store::Revision an_interval_ago;
  for (;;) {
    if (an_interval_ago.value > 0) {
      const Status compacted = co_await store_.Compact(an_interval_ago);
      if (compacted.Is(Reason::kCancelled)) co_return compacted;
      if (!compacted.ok()) {
        LOG_WARNING("compact to revision {}: {}", an_interval_ago.value, compacted.ToString());
      }
    }
    const Result<store::Revision> now = co_await store_.CurrentRevision();
    if (now.ok()) an_interval_ago = *now;
    CO_TRY_STATUS(co_await rt::Sleep(options_.interval));
  }
}

}  // namespace berth::apiserver
