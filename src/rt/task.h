// SPDX-License-Identifier: Apache-2.0
// Task<T> is a lazy coroutine that runs on one loop. It starts when it is awaited or given to a
// TaskScope, is awaited at most once, and T is a Status, a Result, or a type that carries its own
// failure.
//
// Every running task has a Context: its loop and its cancellation. A child inherits the context of
// the task that awaits it; a leaf (a timer, a channel, a socket) registers with it. Cancelling a
// context makes the leaf in progress and all later ones return Cancelled: cancellation is a value,
// delivered at the leaf and passed up by CO_TRY. A cancelled leaf still resumes exactly once.
#pragma once

#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "rt/loop.h"

namespace berth::rt {

template <class T>
class Task;

// The cancellable part of a leaf. Cancel() is called on the loop, at most once, only while
// registered.
class CancelHook {
 public:
  virtual void Cancel() = 0;

 protected:
  ~CancelHook() = default;

 private:
  friend class Context;
  CancelHook* previous_ = nullptr;
  CancelHook* next_ = nullptr;
  bool registered_ = false;
};

// What a tree of tasks shares. Owned by whoever started the root task (TaskScope); outlives all its
// tasks.
class Context {
 public:
  explicit Context(Loop& loop) : loop_(loop) {}
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Loop& loop() const { return loop_; }
  bool cancelled() const { return cancelled_; }
  // Cancels the leaves in progress; leaves started later fail at once. On-loop only. Idempotent.
  void Cancel();

  void Register(CancelHook& hook);
  void Unregister(CancelHook& hook);  // no effect if it is not registered

 private:
  Loop& loop_;
  bool cancelled_ = false;
  CancelHook* first_ = nullptr;
};

namespace internal {

class PromiseBase {
 public:
  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept {
    struct Transfer {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        return continuation;
      }
      void await_resume() noexcept {}
      std::coroutine_handle<> continuation;
    };
    return Transfer{continuation_ ? continuation_ : std::noop_coroutine()};
  }
  // Exceptions do not cross coroutines: wrappers turn them into a Status. One that gets here is a
  // bug.
  [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }

  Context& context() const { return *context_; }
  void set_context(Context& context) { context_ = &context; }
  void set_continuation(std::coroutine_handle<> handle) { continuation_ = handle; }

 private:
  Context* context_ = nullptr;
  std::coroutine_handle<> continuation_;
};

template <class T>
class Promise final : public PromiseBase {
 public:
  Task<T> get_return_object();
  template <class U>
    requires std::is_constructible_v<T, U&&>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T Take() {
    CHECK(value_.has_value());
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
};

}  // namespace internal

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;
  static_assert(!std::is_void_v<T>,
                "a task ends with a Status, a Result, or a type that carries its own failure");

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  struct Awaiter {
    Handle handle;
    Context* context = nullptr;  // null: the context of the awaiting task
    bool await_ready() noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> parent) noexcept {
      handle.promise().set_context(context != nullptr ? *context : parent.promise().context());
      handle.promise().set_continuation(parent);
      return handle;
    }
    T await_resume() { return handle.promise().Take(); }
  };

  // Awaiting a task runs it to its end on the awaiting task's context.
  Awaiter operator co_await() && {
    CHECK(handle_) << "a task is awaited once";
    return Awaiter{handle_, nullptr};
  }
  Awaiter operator co_await() & { return std::move(*this).operator co_await(); }

  // Awaiting this runs the task on another context of the same loop, which outlives the await; see
  // child_context.h.
  Awaiter In(Context& context) {
    CHECK(handle_) << "a task is awaited once";
    return Awaiter{handle_, &context};
  }

 private:
  friend class internal::Promise<T>;
  explicit Task(Handle handle) : handle_(handle) {}
  Handle handle_;
};

template <class T>
Task<T> internal::Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}

}  // namespace berth::rt
