// SPDX-License-Identifier: Apache-2.0
// A TaskScope owns running tasks: nothing is detached. Destroying the owner means closing the scope
// first, which cancels its tasks and waits for them.
#pragma once

#include <cstddef>
#include <list>
#include <string_view>

#include "rt/leaf.h"
#include "rt/task.h"

namespace berth::rt {

class TaskScope {
 public:
  explicit TaskScope(Loop& loop) : loop_(loop) {}
  // CHECKs that no task is left: Close() was awaited, or all tasks ended by themselves.
  ~TaskScope();
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

  // Starts a task; it runs at once until its first suspension. A non-ok end other than Cancelled is
  // logged under `name`. After Cancel() new tasks start cancelled. On-loop only.
  void Spawn(std::string_view name, Task<Status> task);

  // Cancels every task; they end in later turns. On-loop only. Idempotent.
  void Cancel();
  // Cancels every task and waits until the last has ended. Always ok: cancelling the caller does
  // not shorten the wait, so that what comes after it finds the scope really empty. One waiter at a
  // time.
  Task<Status> Close();
  // The same without cancelling.
  Task<Status> Join();

  size_t size() const { return contexts_.size(); }
  Loop& loop() const { return loop_; }

 private:
  struct Root;
  using Contexts = std::list<Context>;
  Root Run(std::string_view name, Task<Status> task, Contexts::iterator context);
  void Ended(std::string_view name, const Status& status, Contexts::iterator context);

  Loop& loop_;
  bool cancelled_ = false;
  Contexts contexts_;                               // one per running task
  Leaf<Status, Cancellable::kNo>* idle_ = nullptr;  // the waiter of Join or Close
};

}  // namespace berth::rt
