// SPDX-License-Identifier: Apache-2.0
// Repeats an attempt while its failure may pass by itself.
#pragma once

#include <functional>
#include <utility>

#include "base/result.h"
#include "rt/backoff.h"
#include "rt/leaf.h"
#include "rt/sleep.h"
#include "rt/task.h"

namespace berth::rt {

struct RetryOptions {
  BackoffOptions backoff;
  int attempts_max = 5;
};

// Unavailable, Timeout and TooManyRequests may pass by themselves. Conflict needs a new read first.
inline bool IsTransient(const Status& status) {
  return status.Is(Reason::kUnavailable) || status.Is(Reason::kTimeout) ||
         status.Is(Reason::kTooManyRequests);
}

// Calls `attempt` until it succeeds, fails for good, or `attempts_max` are used up; the answer is
// that of the last attempt. A retry_after in the failure is respected. REQUIRES: the attempt is
// idempotent. T is a Status or a Result.
template <class T>
Task<T> Retry(RetryOptions options, std::function<Task<T>()> attempt) {
  Loop& loop = (co_await CurrentContext()).loop();
  Backoff backoff(options.backoff);
  for (int used = 1;; ++used) {
    T result = co_await attempt();
    const Status status = berth::internal::StatusOf(result);
    if (status.ok() || !IsTransient(status) || used >= options.attempts_max) co_return result;
    Duration pause = backoff.Next(loop.random());
    if (status.retry_after().has_value()) pause = std::max(pause, *status.retry_after());
    const Status slept = co_await Sleep(pause);
    if (!slept.ok()) co_return T(slept);
  }
}

}  // namespace berth::rt
