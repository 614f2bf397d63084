// SPDX-License-Identifier: Apache-2.0
// Moving what a server keeps from one store to another, while no server runs. Incarnation and
// objects stay what they are; revisions go on behind those of the old store, so clients list again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "app/backup_job.h"
#include "base/result.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::app {

struct Migrated {
  size_t values = 0;
  int64_t revision = 0;   // behind which the new store begins
  std::string set_aside;  // where an embedded store that was left is now
};

// `from` and `to` have one data folder; exactly one of them is an etcd. Conflict if a server runs
// on either, or if `to` holds something. What was broken off is begun anew. The old store is set
// aside or marked, so that no server starts on it by mistake. `to_name` is how the new one is
// called.
rt::Task<Result<Migrated>> Migrate(rt::AsioLoop& loop,
                                   DataPlace from,
                                   DataPlace to,
                                   std::string to_name);

}  // namespace berth::app
