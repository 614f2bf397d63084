// SPDX-License-Identifier: Apache-2.0
#include "rt/scope.h"

#include "base/log.h"

namespace berth::rt {

// The coroutine at the bottom of every tree of tasks. It starts at once and frees itself.
struct TaskScope::Root {
  struct promise_type {
    promise_type(TaskScope&, std::string_view, Task<Status>&, Contexts::iterator& context)
        : context_(&*context) {}
    Root get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
    Context& context() const { return *context_; }

   private:
    Context* context_;
  };
};

TaskScope::~TaskScope() {
  CHECK(contexts_.empty()) << contexts_.size() << " tasks outlive their scope: await Close() first";
}

TaskScope::Root TaskScope::Run(std::string_view name,
                               Task<Status> task,
                               Contexts::iterator context) {
  Status status;
  {
    // The frame of the task goes before anybody hears that it ended.
    Task<Status> running = std::move(task);
    status = co_await running;
  }
  Ended(name, status, context);
}

// Out of line: what it takes to write a log line is not for the frame of every task.
[[gnu::noinline]] void TaskScope::Ended(std::string_view name,
                                        const Status& status,
                                        Contexts::iterator context) {
  if (!status.ok() && !status.Is(Reason::kCancelled)) {
    LOG_WARNING("task {} ended: {}", name, status.ToString());
  }
  contexts_.erase(context);
  if (contexts_.empty() && idle_ != nullptr) idle_->Complete(OkStatus());
}

void TaskScope::Spawn(std::string_view name, Task<Status> task) {
  loop_.Assert();
  const auto context = contexts_.emplace(contexts_.end(), loop_);
  if (cancelled_) context->Cancel();
  Run(name, std::move(task), context);
}

void TaskScope::Cancel() {
  loop_.Assert();
  cancelled_ = true;
  for (Context& context : contexts_) context.Cancel();
}

Task<Status> TaskScope::Close() {
  Cancel();
  co_return co_await Join();
}

Task<Status> TaskScope::Join() {
  loop_.Assert();
  // A task may be spawned between the last end and our resumption: look again.
  while (!contexts_.empty()) {
    CHECK(idle_ == nullptr) << "a scope has one waiter at a time";
    Leaf<Status, Cancellable::kNo> idle;
    idle_ = &idle;
    const Status ended = co_await idle;
    idle_ = nullptr;
    CHECK(ended.ok());
  }
  co_return OkStatus();
}

}  // namespace berth::rt
