// SPDX-License-Identifier: Apache-2.0
// A BlockingPool runs calls that block (files, processes, libraries without an asynchronous form)
// away from the loops. Two bodies: ThreadPool here, SimBlockingPool in rt/sim.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::rt {

namespace internal {
template <class R>
struct JobAnswer {
  using type = Result<R>;
};
template <>
struct JobAnswer<Status> {
  using type = Status;
};
template <class T>
struct JobAnswer<Result<T>> {
  using type = Result<T>;
};
}  // namespace internal

class BlockingPool {
 public:
  virtual ~BlockingPool() = default;

  // Runs `job` on a thread of the pool and resumes on the caller's loop with its answer: a Status
  // or a Result<T> as it is, any other T as a Result<T>. TooManyRequests if the queue is full. A
  // job that was accepted is waited for even if the caller is cancelled, so it may refer to what
  // the caller keeps alive. `name` is a literal.
  template <class F>
  auto Run(std::string_view name, F job)
      -> Task<typename internal::JobAnswer<std::invoke_result_t<F&>>::type> {
    return RunJob<typename internal::JobAnswer<std::invoke_result_t<F&>>::type>(name,
                                                                                std::move(job));
  }

 protected:
  // Runs `job` elsewhere and then posts `done` to `loop`, or refuses and does neither.
  virtual Status Submit(std::string_view name, Loop& loop, Fn job, Fn done) = 0;

 private:
  template <class T, class F>
  Task<T> RunJob(std::string_view name, F job) {
    Context& context = co_await CurrentContext();
    if (context.cancelled()) co_return Cancelled();
    std::optional<T> answer;
    Leaf<Status, Cancellable::kNo> done;
    // The frame outlives both functions: nothing but their end resumes it.
    Fn run = [&answer, &job] { answer.emplace(job()); };
    Fn finish = [&done] { done.Complete(OkStatus()); };
    CO_TRY_STATUS(Submit(name, context.loop(), std::move(run), std::move(finish)));
    const Status ran = co_await done;
    CHECK(ran.ok());
    co_return *std::move(answer);
  }
};

}  // namespace berth::rt
