// SPDX-License-Identifier: Apache-2.0
// RunOn runs a task on another loop and waits for its end on this one:
//
//   Result<Answer> answer = co_await RunOn<Result<Answer>>(&scope_there, [=] { return Ask(); });
//
// Cancelling the waiting task cancels the other one; its end is awaited all the same, so that what
// comes after RunOn finds nothing running. `make` is called there, and what it captures is
// destroyed there or, if that loop was stopped, wherever the loop is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"
#include "rt/child_context.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::rt {

template <class T>
using MakeTask = std::move_only_function<Task<T>()>;

namespace internal {

// What the two loops share. Each touches its own half only.
template <class T>
struct Errand {
  explicit Errand(Loop& loop) : here(loop) {}

  Loop& here;
  std::optional<T> answer;
  Leaf<Status, Cancellable::kNo>* waiter = nullptr;

  // There.
  ChildContext* running = nullptr;
  bool is_cancelled = false;
};

// Passes a cancellation on to the other loop.
template <class T>
class CancelThere final : private CancelHook {
 public:
  CancelThere(Context& context, std::shared_ptr<Errand<T>> errand, Loop& there)
      : context_(context), errand_(std::move(errand)), there_(there) {
    if (context.cancelled()) {
      CancelThere::Cancel();
    } else {
      context.Register(*this);
    }
  }
  ~CancelThere() { context_.Unregister(*this); }
  CancelThere(const CancelThere&) = delete;
  CancelThere& operator=(const CancelThere&) = delete;

 private:
  void Cancel() override {
    there_.Post("rt.run_on.cancel", [errand = errand_] {
      errand->is_cancelled = true;
      if (errand->running != nullptr) errand->running->Cancel();
    });
  }

  Context& context_;
  const std::shared_ptr<Errand<T>> errand_;
  Loop& there_;
};

template <class T>
Task<Status> Run(std::shared_ptr<Errand<T>> errand, MakeTask<T> make) {
  std::optional<T> answer;
  {
    ChildContext child(co_await CurrentContext());
    errand->running = &child;
    if (errand->is_cancelled) child.Cancel();
    Task<T> task = make();
    answer.emplace(co_await task.In(child.context()));
    errand->running = nullptr;
  }
  make = nullptr;  // here, and not by whoever happens to be last
  errand->here.Post("rt.run_on.done", [errand, answer = *std::move(answer)]() mutable {
    errand->answer.emplace(std::move(answer));
    if (errand->waiter != nullptr) errand->waiter->Complete(OkStatus());
  });
  co_return OkStatus();
}

}  // namespace internal

// REQUIRES: `there` outlives the call, and the turn of its loop in which the task ends.
template <class T>
Task<T> RunOn(TaskScope* there, MakeTask<T> make) {
  Context& context = co_await CurrentContext();
  auto errand = std::make_shared<internal::Errand<T>>(context.loop());
  Leaf<Status, Cancellable::kNo> done;
  errand->waiter = &done;
  there->loop().Post("rt.run_on", [errand, there, make = std::move(make)]() mutable {
    there->Spawn("rt.run_on", internal::Run<T>(std::move(errand), std::move(make)));
  });
  {
    const internal::CancelThere<T> cancel(context, errand, there->loop());
    const Status ended = co_await done;
    (void)ended;
  }
  errand->waiter = nullptr;
  co_return *std::move(errand->answer);
}

}  // namespace berth::rt
