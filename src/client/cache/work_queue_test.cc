// SPDX-License-Identifier: Apache-2.0
// Defends the work queue: a key waits once, is worked on once at a time, is not lost when it
// changes during its work, and comes back later after each failure.
#include "client/cache/work_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::client {
namespace {

class WorkQueueTest : public ::testing::Test {
 protected:
  std::string Get() { return *rt::RunTask(loop_, queue_.Get()); }

  rt::SimLoop loop_{1};
  WorkQueue queue_{loop_};
};

TEST_F(WorkQueueTest, AKeyWaitsOnce) {
  queue_.Add("a");
  queue_.Add("b");
  queue_.Add("a");
  EXPECT_EQ(queue_.waiting(), 2U);
  EXPECT_EQ(Get(), "a");
  EXPECT_EQ(Get(), "b");
}

TEST_F(WorkQueueTest, ReAddsAKeyThatChangedWhileItWasProcessed) {
  queue_.Add("a");
  EXPECT_EQ(Get(), "a");
  queue_.Add("a");
  EXPECT_EQ(queue_.waiting(), 0U);
  queue_.Done("a");
  EXPECT_EQ(queue_.waiting(), 1U);
  EXPECT_EQ(Get(), "a");
  queue_.Done("a");
  EXPECT_TRUE(queue_.idle());
}

TEST_F(WorkQueueTest, AWaitingWorkerGetsANewKey) {
  loop_.After("add", Duration::Seconds(1), [this] { queue_.Add("late"); });
  EXPECT_EQ(Get(), "late");
}

TEST_F(WorkQueueTest, OfSeveralDelaysTheShortestCounts) {
  queue_.AddAfter("a", Duration::Seconds(10));
  queue_.AddAfter("a", Duration::Seconds(2));
  queue_.AddAfter("a", Duration::Seconds(5));
  const Time start = loop_.Now();
  EXPECT_EQ(Get(), "a");
  EXPECT_EQ(loop_.Now() - start, Duration::Seconds(2));
  queue_.Done("a");
  EXPECT_TRUE(queue_.idle());
}

TEST_F(WorkQueueTest, FailuresComeBackLaterEachTimeUntilOneSucceeds) {
  Duration last;
  for (int i = 0; i < 5; ++i) {
    const Time start = loop_.Now();
    queue_.AddAfterFailure("a");
    EXPECT_EQ(Get(), "a");
    const Duration pause = loop_.Now() - start;
    EXPECT_GT(pause, last);
    last = pause;
    queue_.Done("a");
  }
  queue_.Forget("a");
  const Time start = loop_.Now();
  queue_.AddAfterFailure("a");
  Get();
  EXPECT_LE(loop_.Now() - start, Duration::Millis(60));
}

TEST_F(WorkQueueTest, SaysHowLongKeysWaitAndFail) {
  EXPECT_EQ(queue_.waiting_longest(), Duration());
  queue_.Add("a");
  loop_.RunFor(Duration::Seconds(3));
  queue_.Add("b");
  EXPECT_EQ(queue_.waiting_longest(), Duration::Seconds(3));
  EXPECT_EQ(Get(), "a");
  EXPECT_EQ(queue_.waiting_longest(), Duration()) << "the next one came just now";
  queue_.Done("a");
  queue_.AddAfterFailure("a");
  loop_.RunFor(Duration::Seconds(5));
  queue_.AddAfterFailure("b");
  queue_.AddAfterFailure("a");
  EXPECT_EQ(queue_.failing(), 2U);
  EXPECT_EQ(queue_.failures(), 3U);
  EXPECT_EQ(queue_.failing_longest(), Duration::Seconds(5)) << "since the first failure in a row";
  queue_.Forget("a");
  EXPECT_EQ(queue_.failing(), 1U);
  EXPECT_EQ(queue_.failing_longest(), Duration());
  EXPECT_EQ(queue_.failures(), 3U);
}

}  // namespace
}  // namespace berth::client
