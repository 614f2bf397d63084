// SPDX-License-Identifier: Apache-2.0
// Running several tasks at once and waiting for all of them.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "rt/leaf.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::rt {

namespace internal {

// Passes the cancellation of the awaiting context to a scope.
class ScopeCanceller final : private CancelHook {
 public:
  ScopeCanceller(Context& context, TaskScope& scope) : context_(context), scope_(scope) {
    if (context.cancelled()) {
      scope.Cancel();
    } else {
      context.Register(*this);
    }
  }
  ~ScopeCanceller() { context_.Unregister(*this); }
  ScopeCanceller(const ScopeCanceller&) = delete;
  ScopeCanceller& operator=(const ScopeCanceller&) = delete;

 private:
  void Cancel() override { scope_.Cancel(); }
  Context& context_;
  TaskScope& scope_;
};

template <class T>
Task<Status> StoreResult(Task<T> task, std::optional<T>* out) {
  out->emplace(co_await task);
  co_return OkStatus();
}

}  // namespace internal

// What a JoinAll ended with: one answer per task, in order.
template <class T>
using Answers = std::vector<T>;

// Runs all tasks concurrently on the caller's loop; cancelling the caller cancels them. A failure
// of one does not stop the others.
template <class T>
Task<Answers<T>> JoinAll(std::vector<Task<T>> tasks) {
  Context& context = co_await CurrentContext();
  std::vector<std::optional<T>> slots(tasks.size());
  {
    TaskScope scope(context.loop());
    internal::ScopeCanceller canceller(context, scope);
    for (size_t i = 0; i < tasks.size(); ++i) {
      scope.Spawn("rt.join_all", internal::StoreResult(std::move(tasks[i]), &slots[i]));
    }
    const Status joined = co_await scope.Join();
    CHECK(joined.ok());
  }
  Answers<T> answers;
  answers.reserve(slots.size());
  for (auto& slot : slots) answers.push_back(*std::move(slot));
  co_return answers;
}

}  // namespace berth::rt
