// SPDX-License-Identifier: Apache-2.0
// Runs one task on a SimLoop to its end: the door between a test and the tasks it tests.
#pragma once

#include <optional>
#include <utility>

#include "rt/join_all.h"
#include "rt/scope.h"
#include "rt/sim/sim_loop.h"
#include "rt/task.h"

namespace berth::rt {

// Other tasks of the world run on meanwhile. CHECKs that the task ends within `limit` of virtual
// time.
template <class T>
T RunTask(SimLoop& loop, Task<T> task, Duration limit = Duration::Hours(1)) {
  std::optional<T> answer;
  TaskScope scope(loop);
  scope.Spawn("run_task", internal::StoreResult(std::move(task), &answer));
  const bool ended = loop.RunUntil([&scope] { return scope.size() == 0; }, limit);
  CHECK(ended) << "a task did not end within " << FormatDuration(limit) << " of virtual time";
  return *std::move(answer);
}

}  // namespace berth::rt
