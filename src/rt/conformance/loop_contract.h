// SPDX-License-Identifier: Apache-2.0
// What every Loop promises, and what tasks, scopes and channels promise on any Loop, as functions
// that every body of Loop passes. Uses gtest expectations.
#pragma once

#include <memory>
#include <span>

#include "rt/loop.h"
#include "rt/task.h"

namespace berth::rt {

// A loop under test and the way to run a task on it to its end.
class LoopUnderTest {
 public:
  virtual ~LoopUnderTest() = default;
  virtual Loop& loop() = 0;
  virtual Status Run(Task<Status> task) = 0;
};

void PostsRunInOrder(LoopUnderTest& under_test);
void PostNeverRunsInline(LoopUnderTest& under_test);
void TimersAreNeverEarly(LoopUnderTest& under_test);
void TimersFireInTheOrderOfTheirTime(LoopUnderTest& under_test);
void ACancelledTimerDoesNotRun(LoopUnderTest& under_test);
void ATimerCancelsAnotherThatIsDueToo(LoopUnderTest& under_test);
void SleepIsCancelled(LoopUnderTest& under_test);
void CancellationIsDeliveredOnce(LoopUnderTest& under_test);
void ACompletedLeafWinsOverCancellation(LoopUnderTest& under_test);
void ALeafNeverResumesItsTaskInline(LoopUnderTest& under_test);
void CloseJoinsEveryTask(LoopUnderTest& under_test);
void CloseIsNotCutShortByCancellation(LoopUnderTest& under_test);
void ATaskSpawnedAfterCancelStartsCancelled(LoopUnderTest& under_test);
void AMillionImmediateAwaitsDoNotGrowTheStack(LoopUnderTest& under_test);
void AHundredThousandYieldsLetOthersRun(LoopUnderTest& under_test);
void AChannelHoldsNoMoreThanItsCapacity(LoopUnderTest& under_test);
void AClosedChannelIsDrainedThenUnavailable(LoopUnderTest& under_test);
void ACancelledReceiverLosesNothing(LoopUnderTest& under_test);
void AGateAdmitsNoMoreThanItsLimit(LoopUnderTest& under_test);
void ADeadlineEndsAnEndlessTask(LoopUnderTest& under_test);
void ADeadlineKeepsAnAnswerInTime(LoopUnderTest& under_test);
void RetryStopsAtSuccessAndAtItsLimit(LoopUnderTest& under_test);
void JoinAllAnswersInOrder(LoopUnderTest& under_test);
void AnEventWakesEveryWaiter(LoopUnderTest& under_test);

struct LoopContract {
  const char* name;
  void (*run)(LoopUnderTest&);
};
// All of the above, by name.
std::span<const LoopContract> LoopContracts();

}  // namespace berth::rt
