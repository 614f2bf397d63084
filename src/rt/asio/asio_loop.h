// SPDX-License-Identifier: Apache-2.0
// AsioLoop is the loop of production: one thread, real time, sockets through asio (net only).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace boost::asio {
class io_context;
}

namespace berth::rt {

class AsioLoop final : public Loop {
 public:
  explicit AsioLoop(std::string name = "main");
  // What is still queued is dropped, not run. REQUIRES: Run() is not in progress.
  ~AsioLoop() override;

  void Post(std::string_view name, Fn fn) override;
  TimerId After(std::string_view name, Duration delay, Fn fn) override;
  bool CancelTimer(TimerId timer) override;
  Time Now() const override;
  WallTime WallNow() const override;
  Random& random() override;
  // The thread that runs the loop or ran it last; before that, the thread that made it, so that a
  // component can be put together before its loop runs.
  bool IsOnLoop() const override;

  // Runs until Stop(), on the calling thread. May be called again after it returned.
  void Run();
  // Makes Run() return after the function in progress. Any thread. A Stop() before Run() is lost.
  void Stop();

  // Calls fn on the loop for every arrival of one of the signals. On-loop only.
  void OnSignal(std::initializer_list<int> signals, std::function<void(int)> fn);

  const std::string& name() const;
  // Functions that took more than 100 ms of the thread's CPU time. Any thread.
  uint64_t slow_turns() const;

  // For net only. An asio handler calls Turn once, around all it does: fn and what it posts run as
  // one turn, timed, without a second trip through asio.
  boost::asio::io_context& io_context();
  void Turn(std::string_view name, Fn fn);

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

namespace internal {
template <class T>
Task<Status> StoreResultAndStop(Task<T> task, std::optional<T>* out, AsioLoop* loop) {
  out->emplace(co_await task);
  loop->Stop();
  co_return OkStatus();
}
}  // namespace internal

// Runs `task` on a loop that nobody runs yet, on the calling thread, and returns its answer.
template <class T>
T RunTask(AsioLoop& loop, Task<T> task) {
  std::optional<T> answer;
  TaskScope scope(loop);
  Task<Status> stored = internal::StoreResultAndStop(std::move(task), &answer, &loop);
  loop.Post("run_task", [&scope, &stored] { scope.Spawn("run_task", std::move(stored)); });
  loop.Run();
  return *std::move(answer);
}

}  // namespace berth::rt
