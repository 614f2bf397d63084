// SPDX-License-Identifier: Apache-2.0
// A limit on how long a task may take.
#pragma once

#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "rt/child_context.h"
#include "rt/leaf.h"
#include "rt/task.h"

namespace berth::rt {

// Runs `task`; after `limit` it is cancelled and, once it has ended because of that, the answer is
// Timeout. A task that ends well in spite of the cancellation keeps its answer. T is a Status or a
// Result.
template <class T>
Task<T> WithDeadline(Task<T> task, Duration limit) {
  ChildContext child(co_await CurrentContext());
  Loop& loop = child.context().loop();
  bool expired = false;
  const TimerId timer = loop.After("rt.deadline", limit, [&child, &expired] {
    expired = true;
    child.Cancel();
  });
  T result = co_await task.In(child.context());
  loop.CancelTimer(timer);
  if (expired && berth::internal::StatusOf(result).Is(Reason::kCancelled)) {
    co_return T(Timeout("no answer within " + FormatDuration(limit)));
  }
  co_return result;
}

}  // namespace berth::rt
