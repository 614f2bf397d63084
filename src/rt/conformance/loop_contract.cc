// SPDX-License-Identifier: Apache-2.0
#include "rt/conformance/loop_contract.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "rt/channel.h"
#include "rt/deadline.h"
#include "rt/event.h"
#include "rt/gate.h"
#include "rt/join_all.h"
#include "rt/retry.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::rt {
namespace {

constexpr Duration kTick = Duration::Millis(1);

Task<Status> Forever() {
  Leaf<Status> never;
  co_return co_await never;
}

Task<Status> SleepInto(Duration duration, Status* out) {
  *out = co_await Sleep(duration);
  co_return *out;
}

Task<Status> Drain(Loop* loop) {
  // Two yields: what was posted before, and what that posted.
  CO_TRY_STATUS(co_await Yield());
  CO_TRY_STATUS(co_await Yield());
  CHECK(loop->IsOnLoop());
  co_return OkStatus();
}

Task<Status> CloseScope(TaskScope* scope) { co_return co_await scope->Close(); }

}  // namespace

void PostsRunInOrder(LoopUnderTest& t) {
  std::vector<int> order;
  struct Body {
    static Task<Status> Run(Loop* loop, std::vector<int>* seen) {
      for (int i = 0; i < 100; ++i) {
        loop->Post("test", [seen, i] { seen->push_back(i); });
      }
      co_return co_await Drain(loop);
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop(), &order)), OkStatus());
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

void PostNeverRunsInline(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Run(Loop* loop) {
      bool ran = false;
      loop->Post("test", [&ran] { ran = true; });
      EXPECT_FALSE(ran);
      CO_TRY_STATUS(co_await Drain(loop));
      EXPECT_TRUE(ran);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void TimersAreNeverEarly(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Run(Loop* loop) {
      for (int ms = 0; ms < 5; ++ms) {
        const Time start = loop->Now();
        CO_TRY_STATUS(co_await Sleep(kTick * ms));
        EXPECT_GE(loop->Now() - start, kTick * ms);
      }
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void TimersFireInTheOrderOfTheirTime(LoopUnderTest& t) {
  std::vector<int> order;
  struct Body {
    static Task<Status> Run(Loop* loop, std::vector<int>* seen) {
      for (const int ms : {5, 1, 3, 2, 4}) {
        loop->After("test", kTick * ms, [seen, ms] { seen->push_back(ms); });
      }
      co_return co_await Sleep(kTick * 8);
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop(), &order)), OkStatus());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 5}));
}

void ACancelledTimerDoesNotRun(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Run(Loop* loop) {
      bool ran = false;
      const TimerId timer = loop->After("test", kTick, [&ran] { ran = true; });
      EXPECT_TRUE(loop->CancelTimer(timer));
      EXPECT_FALSE(loop->CancelTimer(timer));
      EXPECT_FALSE(loop->CancelTimer(TimerId{}));
      CO_TRY_STATUS(co_await Sleep(kTick * 3));
      EXPECT_FALSE(ran);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void ATimerCancelsAnotherThatIsDueToo(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Run(Loop* loop) {
      int ran = 0;
      std::array<TimerId, 2> timers;
      for (size_t i = 0; i < 2; ++i) {
        timers[i] = loop->After("test", kTick, [&timers, &ran, loop, i] {
          ++ran;
          EXPECT_TRUE(loop->CancelTimer(timers[1 - i]));
        });
      }
      CO_TRY_STATUS(co_await Sleep(kTick * 3));
      EXPECT_EQ(ran, 1);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void SleepIsCancelled(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Run(Loop* loop) {
      TaskScope scope(*loop);
      Status ended;
      const Time start = loop->Now();
      scope.Spawn("test", SleepInto(Duration::Hours(1), &ended));
      CO_TRY_STATUS(co_await scope.Close());
      EXPECT_EQ(ended.reason(), Reason::kCancelled);
      EXPECT_LT(loop->Now() - start, Duration::Minutes(1));
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void CancellationIsDeliveredOnce(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Count(int* delivered) {
      const Status first = co_await Forever();
      if (first.Is(Reason::kCancelled)) ++*delivered;
      co_return first;
    }
    static Task<Status> Run(Loop* loop) {
      int delivered = 0;
      TaskScope scope(*loop);
      scope.Spawn("test", Count(&delivered));
      scope.Cancel();
      scope.Cancel();
      EXPECT_EQ(delivered, 0) << "cancellation resumes in a later turn";
      CO_TRY_STATUS(co_await scope.Close());
      EXPECT_EQ(delivered, 1);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void ACompletedLeafWinsOverCancellation(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Wait(Leaf<Result<int>>** place, Result<int>* out) {
      Leaf<Result<int>> leaf;
      *place = &leaf;
      *out = co_await leaf;
      co_return OkStatus();
    }
    static Task<Status> Run(Loop* loop) {
      Leaf<Result<int>>* leaf = nullptr;
      Result<int> got = 0;
      TaskScope scope(*loop);
      scope.Spawn("test", Wait(&leaf, &got));
      leaf->Complete(7);
      scope.Cancel();
      leaf->Complete(8);
      CO_TRY_STATUS(co_await scope.Join());
      EXPECT_EQ(*got, 7);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void ALeafNeverResumesItsTaskInline(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Wait(Leaf<Status>** place, bool* resumed) {
      Leaf<Status> leaf;
      *place = &leaf;
      const Status status = co_await leaf;
      *resumed = true;
      co_return status;
    }
    static Task<Status> Run(Loop* loop) {
      Leaf<Status>* leaf = nullptr;
      bool resumed = false;
      TaskScope scope(*loop);
      scope.Spawn("test", Wait(&leaf, &resumed));
      leaf->Complete(OkStatus());
      EXPECT_FALSE(resumed);
      CO_TRY_STATUS(co_await scope.Join());
      EXPECT_TRUE(resumed);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void CloseJoinsEveryTask(LoopUnderTest& t) {
  struct Body {
    // Goes on after its cancellation, as a task that cleans up does.
    static Task<Status> Linger(int* alive) {
      ++*alive;
      const Status status = co_await Forever();
      for (int i = 0; i < 10; ++i) {
        const Status yielded = co_await Yield();
        EXPECT_EQ(yielded.reason(), Reason::kCancelled);
      }
      --*alive;
      co_return status;
    }
    static Task<Status> Run(Loop* loop) {
      int alive = 0;
      TaskScope scope(*loop);
      for (int i = 0; i < 100; ++i) scope.Spawn("test", Linger(&alive));
      EXPECT_EQ(scope.size(), 100U);
      CO_TRY_STATUS(co_await scope.Close());
      EXPECT_EQ(alive, 0);
      EXPECT_EQ(scope.size(), 0U);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void CloseIsNotCutShortByCancellation(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Stubborn(bool* ended) {
      const Status cancelled = co_await Forever();
      for (int i = 0; i < 100; ++i) (void)co_await Yield();
      *ended = true;
      co_return cancelled;
    }
    static Task<Status> Run(Loop* loop) {
      bool ended = false;
      TaskScope inner(*loop);
      inner.Spawn("test", Stubborn(&ended));
      TaskScope outer(*loop);
      outer.Spawn("test", CloseScope(&inner));
      CO_TRY_STATUS(co_await outer.Close());
      EXPECT_TRUE(ended);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void ATaskSpawnedAfterCancelStartsCancelled(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Run(Loop* loop) {
      TaskScope scope(*loop);
      scope.Cancel();
      Status ended;
      scope.Spawn("test", SleepInto(Duration::Hours(1), &ended));
      EXPECT_EQ(ended.reason(), Reason::kCancelled);
      co_return co_await scope.Join();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void AMillionImmediateAwaitsDoNotGrowTheStack(LoopUnderTest& t) {
  struct Body {
    static Task<Result<int>> Immediate(int i) { co_return i; }
    static Task<Status> Run() {
      int64_t sum = 0;
      for (int i = 0; i < 1'000'000; ++i) {
        CO_TRY(const int got, co_await Immediate(i));
        sum += got;
      }
      EXPECT_EQ(sum, 499'999'500'000);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run()), OkStatus());
}

void AHundredThousandYieldsLetOthersRun(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Spin(int* steps) {
      for (int i = 0; i < 100'000; ++i) {
        CO_TRY_STATUS(co_await Yield());
        ++*steps;
      }
      co_return OkStatus();
    }
    static Task<Status> Run(Loop* loop) {
      int steps = 0;
      TaskScope scope(*loop);
      scope.Spawn("test", Spin(&steps));
      CO_TRY_STATUS(co_await Yield());
      CO_TRY_STATUS(co_await Yield());
      EXPECT_LT(steps, 100'000);
      CO_TRY_STATUS(co_await scope.Join());
      EXPECT_EQ(steps, 100'000);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void AChannelHoldsNoMoreThanItsCapacity(LoopUnderTest& t) {
  struct Body {
    static Task<Status> SendAll(Channel<int>* channel, int* sent) {
      for (int i = 0; i < 10; ++i) {
        CO_TRY_STATUS(co_await channel->Send(i));
        ++*sent;
      }
      co_return OkStatus();
    }
    static Task<Status> Run(Loop* loop) {
      Channel<int> channel(3);
      int sent = 0;
      TaskScope scope(*loop);
      scope.Spawn("test", SendAll(&channel, &sent));
      EXPECT_EQ(sent, 3);
      EXPECT_EQ(channel.size(), 3U);
      EXPECT_FALSE(channel.TrySend(99));
      for (int i = 0; i < 10; ++i) {
        CO_TRY(const int got, co_await channel.Receive());
        EXPECT_EQ(got, i);
        EXPECT_LE(channel.size(), 3U);
      }
      co_return co_await scope.Join();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void AClosedChannelIsDrainedThenUnavailable(LoopUnderTest& t) {
  struct Body {
    static Task<Status> SendOne(Channel<std::string>* channel, Status* out) {
      *out = co_await channel->Send("late");
      co_return OkStatus();
    }
    static Task<Status> Run(Loop* loop) {
      Channel<std::string> channel(1);
      EXPECT_TRUE(channel.TrySend("first"));
      Status late;
      TaskScope scope(*loop);
      scope.Spawn("test", SendOne(&channel, &late));
      channel.Close();
      CO_TRY_STATUS(co_await scope.Join());
      EXPECT_EQ(late.reason(), Reason::kUnavailable);
      CO_TRY(const std::string first, co_await channel.Receive());
      EXPECT_EQ(first, "first");
      const Result<std::string> end = co_await channel.Receive();
      EXPECT_EQ(end.status().reason(), Reason::kUnavailable);
      EXPECT_FALSE(channel.TrySend("after"));
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void ACancelledReceiverLosesNothing(LoopUnderTest& t) {
  struct Body {
    static Task<Status> ReceiveOne(Channel<int>* channel, Result<int>* out) {
      *out = co_await channel->Receive();
      co_return OkStatus();
    }
    static Task<Status> Run(Loop* loop) {
      Channel<int> channel(1);
      Result<int> cancelled = 0;
      Result<int> served = 0;
      TaskScope first(*loop);
      TaskScope second(*loop);
      first.Spawn("test", ReceiveOne(&channel, &cancelled));
      second.Spawn("test", ReceiveOne(&channel, &served));
      first.Cancel();  // it has not resumed yet: the value must pass it by
      EXPECT_TRUE(channel.TrySend(5));
      CO_TRY_STATUS(co_await first.Join());
      CO_TRY_STATUS(co_await second.Join());
      EXPECT_EQ(cancelled.status().reason(), Reason::kCancelled);
      EXPECT_EQ(*served, 5);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void AGateAdmitsNoMoreThanItsLimit(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Pass(Gate* gate, int* inside, int* most) {
      CO_TRY(const Gate::Permit permit, co_await gate->Enter());
      *most = std::max(*most, ++*inside);
      CO_TRY_STATUS(co_await Sleep(kTick));
      --*inside;
      co_return OkStatus();
    }
    static Task<Status> Run(Loop* loop) {
      Gate gate(3);
      int inside = 0;
      int most = 0;
      TaskScope scope(*loop);
      for (int i = 0; i < 12; ++i) scope.Spawn("test", Pass(&gate, &inside, &most));
      CO_TRY_STATUS(co_await scope.Join());
      EXPECT_EQ(most, 3);
      EXPECT_EQ(gate.inside(), 0U);
      // Waiters that were cancelled give their turn away.
      for (int i = 0; i < 12; ++i) scope.Spawn("test", Pass(&gate, &inside, &most));
      CO_TRY_STATUS(co_await scope.Close());
      EXPECT_EQ(gate.inside(), 0U);
      EXPECT_TRUE(gate.TryEnter().has_value());
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void ADeadlineEndsAnEndlessTask(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Run(Loop* loop) {
      const Time start = loop->Now();
      const Status status = co_await WithDeadline(Forever(), kTick * 3);
      EXPECT_EQ(status.reason(), Reason::kTimeout);
      EXPECT_GE(loop->Now() - start, kTick * 3);
      // The outer context was not cancelled by it.
      co_return co_await Sleep(kTick);
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

void ADeadlineKeepsAnAnswerInTime(LoopUnderTest& t) {
  struct Body {
    static Task<Result<int>> Answer() {
      CO_TRY_STATUS(co_await Sleep(kTick));
      co_return 42;
    }
    static Task<Status> Run() {
      CO_TRY(const int answer, co_await WithDeadline(Answer(), Duration::Minutes(1)));
      EXPECT_EQ(answer, 42);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run()), OkStatus());
}

void RetryStopsAtSuccessAndAtItsLimit(LoopUnderTest& t) {
  struct Body {
    static Task<Result<int>> FailUntil(int* calls, int good) {
      if (++*calls < good) co_return Unavailable("not yet");
      co_return *calls;
    }
    static Task<Status> Run() {
      RetryOptions options;
      options.backoff.initial = kTick;
      options.backoff.max = kTick;
      options.attempts_max = 4;
      int calls = 0;
      std::function<Task<Result<int>>()> attempt = [&calls] { return FailUntil(&calls, 3); };
      const Result<int> third = co_await Retry(options, attempt);
      EXPECT_EQ(*third, 3);
      calls = 0;
      attempt = [&calls] { return FailUntil(&calls, 100); };
      const Result<int> never = co_await Retry(options, attempt);
      EXPECT_EQ(never.status().reason(), Reason::kUnavailable);
      EXPECT_EQ(calls, 4);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run()), OkStatus());
}

void JoinAllAnswersInOrder(LoopUnderTest& t) {
  struct Body {
    static Task<Result<int>> After(int ms) {
      CO_TRY_STATUS(co_await Sleep(kTick * ms));
      if (ms == 2) co_return NotFound("two");
      co_return ms;
    }
    static Task<Status> Run() {
      std::vector<Task<Result<int>>> tasks;
      for (const int ms : {3, 2, 1}) tasks.push_back(After(ms));
      const auto answers = co_await JoinAll(std::move(tasks));
      EXPECT_EQ(*answers[0], 3);
      EXPECT_EQ(answers[1].status(), NotFound("two"));
      EXPECT_EQ(*answers[2], 1);
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run()), OkStatus());
}

void AnEventWakesEveryWaiter(LoopUnderTest& t) {
  struct Body {
    static Task<Status> Wait(Event* event, int* woken) {
      CO_TRY_STATUS(co_await event->Wait());
      ++*woken;
      co_return OkStatus();
    }
    static Task<Status> Run(Loop* loop) {
      Event event;
      int woken = 0;
      TaskScope scope(*loop);
      for (int i = 0; i < 5; ++i) scope.Spawn("test", Wait(&event, &woken));
      event.Set();
      EXPECT_EQ(woken, 0);
      CO_TRY_STATUS(co_await scope.Join());
      EXPECT_EQ(woken, 5);
      CO_TRY_STATUS(co_await event.Wait());
      co_return OkStatus();
    }
  };
  EXPECT_EQ(t.Run(Body::Run(&t.loop())), OkStatus());
}

std::span<const LoopContract> LoopContracts() {
#define BERTH_CONTRACT(name) \
  LoopContract { #name, name }
  static constexpr std::array kAll = {
      BERTH_CONTRACT(PostsRunInOrder),
      BERTH_CONTRACT(PostNeverRunsInline),
      BERTH_CONTRACT(TimersAreNeverEarly),
      BERTH_CONTRACT(TimersFireInTheOrderOfTheirTime),
      BERTH_CONTRACT(ACancelledTimerDoesNotRun),
      BERTH_CONTRACT(ATimerCancelsAnotherThatIsDueToo),
      BERTH_CONTRACT(SleepIsCancelled),
      BERTH_CONTRACT(CancellationIsDeliveredOnce),
      BERTH_CONTRACT(ACompletedLeafWinsOverCancellation),
      BERTH_CONTRACT(ALeafNeverResumesItsTaskInline),
      BERTH_CONTRACT(CloseJoinsEveryTask),
      BERTH_CONTRACT(CloseIsNotCutShortByCancellation),
      BERTH_CONTRACT(ATaskSpawnedAfterCancelStartsCancelled),
      BERTH_CONTRACT(AMillionImmediateAwaitsDoNotGrowTheStack),
      BERTH_CONTRACT(AHundredThousandYieldsLetOthersRun),
      BERTH_CONTRACT(AChannelHoldsNoMoreThanItsCapacity),
      BERTH_CONTRACT(AClosedChannelIsDrainedThenUnavailable),
      BERTH_CONTRACT(ACancelledReceiverLosesNothing),
      BERTH_CONTRACT(AGateAdmitsNoMoreThanItsLimit),
      BERTH_CONTRACT(ADeadlineEndsAnEndlessTask),
      BERTH_CONTRACT(ADeadlineKeepsAnAnswerInTime),
      BERTH_CONTRACT(RetryStopsAtSuccessAndAtItsLimit),
      BERTH_CONTRACT(JoinAllAnswersInOrder),
      BERTH_CONTRACT(AnEventWakesEveryWaiter),
  };
#undef BERTH_CONTRACT
  return kAll;
}

}  // namespace berth::rt
