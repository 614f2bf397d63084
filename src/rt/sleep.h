// SPDX-License-Identifier: Apache-2.0
// Waiting for time to pass, and letting others run.
#pragma once

#include "base/time.h"
#include "rt/task.h"

namespace berth::rt {

// Ok after `duration`, not before; Cancelled as soon as the context is cancelled.
Task<Status> Sleep(Duration duration);

// co_await Yield() goes to the end of the loop's queue: long work calls it every few milliseconds.
// Cancelled if the context was cancelled meanwhile.
class [[nodiscard]] Yield {
 public:
  bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> handle) {
    context_ = &handle.promise().context();
    context_->loop().Post("rt.yield", [handle] { handle.resume(); });
  }
  Status await_resume() const { return context_->cancelled() ? Cancelled() : OkStatus(); }

 private:
  Context* context_ = nullptr;
};

}  // namespace berth::rt
