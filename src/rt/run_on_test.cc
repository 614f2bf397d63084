// SPDX-License-Identifier: Apache-2.0
#include "rt/run_on.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "base/result.h"
#include "rt/asio/asio_loop.h"
#include "rt/asio/loop_thread.h"
#include "rt/event.h"
#include "rt/sleep.h"

namespace berth::rt {
namespace {

class RunOnTest : public testing::Test {
 protected:
  Task<Result<int>> Double(int value) {
    EXPECT_TRUE(thread_->loop().IsOnLoop());
    CO_TRY_STATUS(co_await Yield());
    co_return 2 * value;
  }
  Task<Status> WaitForEver() {
    Event never;
    began_ = true;
    const Status status = co_await never.Wait();
    ended_ = status.Is(Reason::kCancelled);
    co_return status;
  }

  ~RunOnTest() override { thread_.reset(); }  // the turn of the last task is over then

  AsioLoop here_;
  std::unique_ptr<LoopThread> thread_ = std::make_unique<LoopThread>("there");
  TaskScope there_{thread_->loop()};
  bool began_ = false;  // there
  bool ended_ = false;  // there
};

TEST_F(RunOnTest, TheTaskRunsThereAndItsAnswerComesHere) {
  const auto ask = [this]() -> Task<Status> {
    auto owned = std::make_unique<int>(21);
    MakeTask<Result<int>> make = [this, owned = std::move(owned)] { return Double(*owned); };
    CO_TRY(const int answer, co_await RunOn<Result<int>>(&there_, std::move(make)));
    EXPECT_TRUE(here_.IsOnLoop());
    EXPECT_EQ(answer, 42);
    co_return OkStatus();
  };
  EXPECT_EQ(RunTask(here_, ask()), OkStatus());
}

TEST_F(RunOnTest, ManyAtOnceEachGetTheirOwnAnswer) {
  const auto ask = [this](int i) -> Task<Status> {
    MakeTask<Result<int>> make = [this, i] { return Double(i); };
    CO_TRY(const int answer, co_await RunOn<Result<int>>(&there_, std::move(make)));
    EXPECT_EQ(answer, 2 * i);
    co_return OkStatus();
  };
  const auto all = [&]() -> Task<Status> {
    TaskScope scope(here_);
    for (int i = 0; i < 200; ++i) scope.Spawn("test.ask", ask(i));
    co_return co_await scope.Join();
  };
  EXPECT_EQ(RunTask(here_, all()), OkStatus());
}

TEST_F(RunOnTest, CancellingTheWaiterCancelsTheTaskAndWaitsForItsEnd) {
  const auto ask = [this]() -> Task<Status> {
    ChildContext child(co_await CurrentContext());
    Task<Status> waiting = RunOn<Status>(&there_, [this] { return WaitForEver(); });
    const TimerId timer =
        here_.After("test.cancel", Duration::Millis(5), [&child] { child.Cancel(); });
    const Status status = co_await waiting.In(child.context());
    here_.CancelTimer(timer);
    EXPECT_TRUE(status.Is(Reason::kCancelled)) << status;
    EXPECT_TRUE(began_);
    EXPECT_TRUE(ended_);
    co_return OkStatus();
  };
  EXPECT_EQ(RunTask(here_, ask()), OkStatus());
}

TEST_F(RunOnTest, AWaiterThatIsCancelledAlreadyEndsToo) {
  const auto ask = [this]() -> Task<Status> {
    ChildContext child(co_await CurrentContext());
    child.Cancel();
    Task<Status> waiting = RunOn<Status>(&there_, [this] { return WaitForEver(); });
    const Status status = co_await waiting.In(child.context());
    EXPECT_TRUE(status.Is(Reason::kCancelled)) << status;
    co_return OkStatus();
  };
  EXPECT_EQ(RunTask(here_, ask()), OkStatus());
}

}  // namespace
}  // namespace berth::rt
