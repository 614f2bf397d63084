// SPDX-License-Identifier: Apache-2.0
// An Event is a flag that tasks of one loop wait for.
#pragma once

#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::rt {

class Event {
 public:
  // Ok at once if the flag is set, else when it is; Cancelled.
  Task<Status> Wait() {
    if (set_) co_return OkStatus();
    co_return co_await waiters_.Wait();
  }
  // Wakes every waiter. On-loop only. Idempotent.
  void Set() {
    set_ = true;
    waiters_.CompleteAll(OkStatus());
  }
  // Later waiters wait again; those already woken are not held back.
  void Reset() { set_ = false; }
  bool is_set() const { return set_; }

 private:
  bool set_ = false;
  Waiters<Status> waiters_;
};

}  // namespace berth::rt
