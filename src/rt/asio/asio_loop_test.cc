// SPDX-License-Identifier: Apache-2.0
// What only the real loop has: other threads, signals, slow turns.
#include "rt/asio/asio_loop.h"

#include <gtest/gtest.h>

#include <csignal>
#include <ctime>
#include <thread>
#include <vector>

#include "rt/asio/loop_thread.h"
#include "rt/scope.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"

namespace berth::rt {
namespace {

TEST(AsioLoop, TakesPostsOfOtherThreadsInTheirOrder) {
  AsioLoop loop;
  constexpr int kThreads = 4;
  constexpr int kPosts = 5'000;
  std::vector<int> last(kThreads, -1);
  int left = kThreads * kPosts;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&loop, &last, &left, t] {
      for (int i = 0; i < kPosts; ++i) {
        loop.Post("test", [&loop, &last, &left, t, i] {
          EXPECT_EQ(last[static_cast<size_t>(t)], i - 1);
          last[static_cast<size_t>(t)] = i;
          if (--left == 0) loop.Stop();
        });
      }
    });
  }
  loop.Run();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(left, 0);
}

TEST(AsioLoop, KeepsTheOrderOfPostsAcrossAStop) {
  AsioLoop loop;
  std::vector<int> order;
  for (int i = 0; i < 4; ++i) {
    loop.Post("test", [&loop, &order, i] {
      order.push_back(i);
      if (i % 2 == 1) loop.Stop();
    });
  }
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(AsioLoop, DropsWhatIsQueuedWhenItGoes) {
  auto token = std::make_shared<int>(0);
  {
    AsioLoop loop;
    loop.Post("never", [token] { ++*token; });
    loop.After("never", Duration::Seconds(1), [token, &loop] { loop.Stop(); });
  }
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(*token, 0);
}

TEST(AsioLoop, DeliversSignals) {
  AsioLoop loop;
  std::vector<int> seen;
  loop.OnSignal({SIGUSR1, SIGUSR2}, [&](int signal) {
    seen.push_back(signal);
    if (signal == SIGUSR2) {
      loop.Stop();
    } else {
      std::raise(SIGUSR2);
    }
  });
  loop.Post("raise", [] { std::raise(SIGUSR1); });
  loop.Run();
  EXPECT_EQ(seen, (std::vector<int>{SIGUSR1, SIGUSR2}));
}

TEST(AsioLoop, CountsTurnsThatBurnTheCpu) {
  AsioLoop loop;
  loop.Post("slow", [] {
    const std::clock_t start = std::clock();
    while (std::clock() - start < CLOCKS_PER_SEC / 8) {
    }
  });
  loop.Post("stop", [&loop] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(loop.slow_turns(), 1U);
}

Task<Status> CheckHop(AsioLoop* loop, ThreadPool* pool) {
  std::thread::id ran_on;
  const auto note_thread = [&ran_on] {
    ran_on = std::this_thread::get_id();
    return OkStatus();
  };
  CO_TRY_STATUS(co_await pool->Run("job", note_thread));
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_TRUE(loop->IsOnLoop());
  const auto five = [] { return 5; };
  CO_TRY(const int answer, co_await pool->Run("job", five));
  EXPECT_EQ(answer, 5);
  const auto fail = [] { return NotFound("no such file"); };
  const Status failed = co_await pool->Run("job", fail);
  EXPECT_EQ(failed, NotFound("no such file"));
  co_return OkStatus();
}

TEST(ThreadPool, RunsJobsElsewhereAndAnswersOnTheLoop) {
  LoopThread thread("test");
  ThreadPool pool({.threads = 2, .queue_max = 8, .name = "pool"});
  EXPECT_EQ(thread.Await(CheckHop(&thread.loop(), &pool)), OkStatus());
}

Task<Status> Submit(ThreadPool* pool, std::atomic<bool>* go, int* refused) {
  const auto wait = [go] {
    go->wait(false);
    return OkStatus();
  };
  const Status status = co_await pool->Run("job", wait);
  if (status.Is(Reason::kTooManyRequests)) ++*refused;
  co_return OkStatus();
}

Task<Status> Overload(Loop* loop, ThreadPool* pool) {
  std::atomic<bool> go = false;
  int refused = 0;
  TaskScope scope(*loop);
  // One runs, two wait, or three wait: the fifth at the latest is refused.
  for (int i = 0; i < 5; ++i) scope.Spawn("job", Submit(pool, &go, &refused));
  EXPECT_GE(refused, 2);
  EXPECT_LE(refused, 3);
  scope.Cancel();  // running jobs are waited for all the same
  go = true;
  go.notify_all();
  co_return co_await scope.Join();
}

TEST(ThreadPool, RefusesJobsBeyondItsQueue) {
  LoopThread thread("test");
  ThreadPool pool({.threads = 1, .queue_max = 2, .name = "pool"});
  EXPECT_EQ(thread.Await(Overload(&thread.loop(), &pool)), OkStatus());
}

}  // namespace
}  // namespace berth::rt
