// SPDX-License-Identifier: Apache-2.0
#include "rt/run_on.h"

#include <gtest/gtest.h>

#include <cstdint>
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
  ~RunOnTest() override { thread_.reset(); }  // the turn of the last task is over then

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

  // On this side.
  Task<Status> Ask(int value) {
    auto owned = std::make_unique<int>(value);
    MakeTask<Result<int>> make = [this, owned = std::move(owned)] { return Double(*owned); };
    CO_TRY(const int answer, co_await RunOn<Result<int>>(&there_, std::move(make)));
    EXPECT_TRUE(here_.IsOnLoop());
    EXPECT_EQ(answer, 2 * value);
    co_return OkStatus();
  }
  Task<Status> AskMany(int count) {
    TaskScope scope(here_);
    for (int i = 0; i < count; ++i) scope.Spawn("test.ask", Ask(i));
    co_return co_await scope.Join();
  }
  enum class Cancel : uint8_t { kBefore, kMeanwhile };
  Task<Status> WaitAndCancel(Cancel when) {
    ChildContext child(co_await CurrentContext());
    if (when == Cancel::kBefore) child.Cancel();
    MakeTask<Status> make = [this] { return WaitForEver(); };
    Task<Status> waiting = RunOn<Status>(&there_, std::move(make));
    const TimerId timer =
        here_.After("test.cancel", Duration::Millis(5), [&child] { child.Cancel(); });
    const Status status = co_await waiting.In(child.context());
    here_.CancelTimer(timer);
    EXPECT_TRUE(status.Is(Reason::kCancelled)) << status;
    co_return OkStatus();
  }

  AsioLoop here_;
  std::unique_ptr<LoopThread> thread_ = std::make_unique<LoopThread>("there");
  TaskScope there_{thread_->loop()};
  bool began_ = false;  // there
  bool ended_ = false;  // there
};

TEST_F(RunOnTest, TheTaskRunsThereAndItsAnswerComesHere) {
  EXPECT_EQ(RunTask(here_, Ask(21)), OkStatus());
}

TEST_F(RunOnTest, ManyAtOnceEachGetTheirOwnAnswer) {
  EXPECT_EQ(RunTask(here_, AskMany(200)), OkStatus());
}

TEST_F(RunOnTest, CancellingTheWaiterCancelsTheTaskAndWaitsForItsEnd) {
  EXPECT_EQ(RunTask(here_, WaitAndCancel(Cancel::kMeanwhile)), OkStatus());
  EXPECT_TRUE(began_);
  EXPECT_TRUE(ended_);
}

TEST_F(RunOnTest, AWaiterThatIsCancelledAlreadyEndsToo) {
  EXPECT_EQ(RunTask(here_, WaitAndCancel(Cancel::kBefore)), OkStatus());
}

}  // namespace
}  // namespace berth::rt
