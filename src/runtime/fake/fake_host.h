// SPDX-License-Identifier: Apache-2.0
// FakeHost is the runtime process of a fake host: the four runtime interfaces over a FakeHostState,
// with the time that calls take and what goes wrong on the way.
//
// It can die and come back (Crash, Restart) while callers hold on to the interfaces, as they would
// to a socket; the state stays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "iri/runtimes.h"
#include "rt/loop.h"
#include "rt/sleep.h"
#include "rt/task.h"
#include "rt/waiters.h"
#include "runtime/fake/fake_attach.h"
#include "runtime/fake/fake_host_state.h"
#include "runtime/fake/guest_processes.h"

namespace berth::runtime {

class FakeHost {
 public:
  enum class Memory : uint8_t { kKept, kLost };
  enum class CallKind : uint8_t { kCreate, kOther };

  // The loop and the host outlive all calls and all streams.
  FakeHost(rt::Loop& loop, std::shared_ptr<FakeHostState> state);
  ~FakeHost();
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  // `host` is null for FakeFlavor::kForeign. Valid as long as this.
  iri::Runtimes runtimes();
  FakeHostState& state() { return *state_; }
  FakeClock clock() const { return {.now = loop_.Now(), .wall = loop_.WallNow()}; }

  // The process dies: calls in progress and later ones end with Unavailable, watches too. What a
  // call in progress has done stays done. Idempotent.
  void Crash();
  // It is back. kLost: it knows nothing of its objects any more, and their guests are dead.
  void Restart(Memory memory = Memory::kKept);
  // To be called after something was done to the state from outside: watchers learn of it.
  void Refresh();

  // For the runtimes: one call, there and back. `act` runs once or not at all.
  template <class T>
  rt::Task<T> Call(std::function<T(const FakeClock&)> act, CallKind kind) {
    const uint64_t life = life_;
    const Status arrived = co_await Travel(life);
    if (arrived.Is(Reason::kCancelled) && kind == CallKind::kCreate) {
      LandLate(life, [act](const FakeClock& late) { static_cast<void>(act(late)); });
    }
    CO_TRY_STATUS(arrived);
    if (kind == CallKind::kCreate) CO_TRY_STATUS(co_await Queue(life));
    CO_TRY_STATUS(Refuse(kind));
    T answer = act(clock());
    Refresh();
    const bool lost = LosesAnswer(kind);
    CO_TRY_STATUS(co_await Travel(life));
    if (lost) co_return Unavailable("the answer was lost");
    co_return answer;
  }

 private:
  class Machines;
  class Volumes;
  class Buckets;
  class Host;
  class Stream;

  rt::Task<Status> Travel(uint64_t life);
  // What is on its way to a process gets there, whoever sent it.
  void LandLate(uint64_t life, std::function<void(const FakeClock&)> act);
  // Creates are done in the order in which they came.
  rt::Task<Status> Queue(uint64_t life);
  Status Refuse(CallKind kind);
  bool LosesAnswer(CallKind kind);
  bool lives(uint64_t life) const { return !crashed_ && life == life_; }
  std::string CursorAt(uint64_t change) const;
  void Arm();
  // Conversations with guests that are gone end.
  void EndConversations();

  rt::Loop& loop_;
  const std::shared_ptr<FakeHostState> state_;
  uint64_t life_ = 0;  // counts restarts
  bool crashed_ = false;
  std::string epoch_;  // of cursors: another one for every life
  rt::TimerId timer_;
  std::vector<rt::TimerId> late_;  // calls whose callers are gone
  Time late_until_;
  std::optional<Time> timer_due_;
  uint64_t told_ = 0;  // the last change that watchers were woken for
  rt::Waiters<Status> watchers_;
  std::unique_ptr<Machines> machines_;
  std::unique_ptr<Volumes> volumes_;
  std::unique_ptr<Buckets> buckets_;
  std::unique_ptr<Host> host_;
  std::vector<std::weak_ptr<FakeConversation>> conversations_;
  std::unique_ptr<GuestProcesses> processes_;  // if the guests have any
};

}  // namespace berth::runtime
