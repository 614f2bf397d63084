// SPDX-License-Identifier: Apache-2.0
// A ChildContext cancels a part of a task tree without the rest. Cancelling the parent cancels the
// child; cancelling the child leaves the parent alone.
//
//   ChildContext child(co_await CurrentContext());
//   Status status = co_await task.In(child.context());   // elsewhere: child.Cancel()
#pragma once

#include "rt/leaf.h"
#include "rt/task.h"

namespace berth::rt {

class ChildContext final : private CancelHook {
 public:
  explicit ChildContext(Context& parent) : parent_(parent), context_(parent.loop()) {
    if (parent.cancelled()) {
      context_.Cancel();
    } else {
      parent.Register(*this);
    }
  }
  ~ChildContext() { parent_.Unregister(*this); }
  ChildContext(const ChildContext&) = delete;
  ChildContext& operator=(const ChildContext&) = delete;

  Context& context() { return context_; }
  // On-loop only. Idempotent.
  void Cancel() override { context_.Cancel(); }

 private:
  Context& parent_;
  Context context_;
};

}  // namespace berth::rt
