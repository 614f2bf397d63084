// SPDX-License-Identifier: Apache-2.0
// A LoopThread is an AsioLoop that runs on a thread of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "rt/asio/asio_loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::rt {

class LoopThread {
 public:
  // The loop runs when the constructor returns.
  explicit LoopThread(std::string name);
  // Stops the loop and joins the thread; what is queued is dropped. REQUIRES: off the loop.
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  AsioLoop& loop() { return loop_; }

  // Runs `task` on the loop and blocks until it has ended. REQUIRES: off the loop.
  template <class T>
  T Await(Task<T> task) {
    CHECK(!loop_.IsOnLoop()) << "a loop cannot wait for itself";
    std::optional<T> answer;
    Latch latch;
    Task<Status> waited = Fulfil(std::move(task), &answer, &latch);
    loop_.Post("loop_thread.await",
               [this, &waited] { awaited_.Spawn("loop_thread.await", std::move(waited)); });
    latch.Wait();
    return *std::move(answer);
  }

 private:
  class Thread;
  // Holds a thread back until another lets it go.
  class Latch {
   public:
    void Wait() EXCLUDES(mutex_);
    void Open() EXCLUDES(mutex_);

   private:
    Mutex mutex_;
    CondVar opened_;
    bool open_ GUARDED_BY(mutex_) = false;
  };

  template <class T>
  static Task<Status> Fulfil(Task<T> task, std::optional<T>* answer, Latch* latch) {
    {
      // Its frame goes before the waiting thread hears of the end: it may refer to that thread's
      // stack.
      Task<T> running = std::move(task);
      answer->emplace(co_await running);
    }
    latch->Open();
    co_return OkStatus();
  }

  AsioLoop loop_;
  TaskScope awaited_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace berth::rt
