// SPDX-License-Identifier: Apache-2.0
// A Leaf<T> is the bottom of a co_await: something outside the task completes it, once, on the
// loop. It is how timers, channels, sockets and gRPC calls become awaitable.
//
//   Leaf<Status> done;
//   timer = loop.After("x", d, [&] { done.Complete(OkStatus()); });
//   CO_TRY_STATUS(co_await done);       // Cancelled if the context is cancelled first
//   loop.CancelTimer(timer);            // the owner cleans up what it started
//
// A leaf lives in the frame of the coroutine that awaits it. Complete() after a cancellation is
// ignored while the leaf lives, so an owner that cannot withdraw its callback shares state with it
// instead of the leaf itself.
//
// A Leaf<T, Cancellable::kNo> waits for its completion whatever happens to the context: for joins
// and for work that cannot be withdrawn.
#pragma once

#include <coroutine>
#include <cstdint>
#include <optional>
#include <utility>

#include "rt/task.h"

namespace berth::rt {

enum class Cancellable : uint8_t { kYes, kNo };

template <class T, Cancellable kCancellable = Cancellable::kYes>
class Leaf final : private CancelHook {
 public:
  Leaf() = default;
  Leaf(const Leaf&) = delete;
  Leaf& operator=(const Leaf&) = delete;
  ~Leaf() { CHECK(!waiting_) << "a leaf is destroyed while its task waits on it"; }

  // On the loop of the waiting task. The task resumes in a later turn, never inside this call:
  // whoever completes a leaf may go on touching its own state. The first completion wins.
  void Complete(T value) {
    if (value_.has_value()) return;
    value_.emplace(std::move(value));
    if (!waiting_) return;
    context_->Unregister(*this);
    Context& context = *context_;
    // waiting_ stays set until the resumption runs, which is what keeps the leaf alive until then.
    context.loop().Post("rt.leaf", [this] { Resume(); });
  }
  bool completed() const { return value_.has_value(); }

  bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) {
    context_ = &handle.promise().context();
    if constexpr (kCancellable == Cancellable::kYes) {
      if (!value_.has_value() && context_->cancelled()) value_.emplace(Cancelled());
    }
    if (value_.has_value()) return false;
    handle_ = handle;
    waiting_ = true;
    if constexpr (kCancellable == Cancellable::kYes) context_->Register(*this);
    return true;
  }
  T await_resume() { return *std::move(value_); }

 private:
  void Cancel() override {
    if constexpr (kCancellable == Cancellable::kYes) Complete(T(Cancelled()));
  }
  void Resume() {
    waiting_ = false;
    handle_.resume();
  }

  std::optional<T> value_;
  Context* context_ = nullptr;
  std::coroutine_handle<> handle_;
  bool waiting_ = false;
};

// Gives a coroutine its own context: Context& context = co_await CurrentContext();
struct CurrentContext {
  Context* context = nullptr;
  bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) noexcept {
    context = &handle.promise().context();
    return false;
  }
  Context& await_resume() const noexcept { return *context; }
};

}  // namespace berth::rt
