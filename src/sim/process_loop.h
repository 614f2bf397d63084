// SPDX-License-Identifier: Apache-2.0
// A ProcessLoop is the loop of one simulated process: its clock runs at a rate of its own, and the
// process can be paused, as SIGSTOP or a busy host pauses one. The clock goes on meanwhile; what
// was due in between happens at once when the process goes on, in the order in which it was due.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rt/loop.h"
#include "rt/sim/sim_loop.h"

namespace berth::sim {

class ProcessLoop final : public rt::Loop {
 public:
  // `parts_per_million` is how much faster than the world its clock runs.
  ProcessLoop(rt::SimLoop& world, std::string name, int64_t parts_per_million);

  void Post(std::string_view name, rt::Fn fn) override;
  rt::TimerId After(std::string_view name, Duration delay, rt::Fn fn) override;
  bool CancelTimer(rt::TimerId timer) override;
  Time Now() const override;
  WallTime WallNow() const override { return view_.WallNow(); }
  Random& random() override { return view_.random(); }
  bool IsOnLoop() const override { return view_.IsOnLoop(); }

  // Between runs of the world only.
  void Pause() { paused_ = true; }
  void Resume();
  bool paused() const { return paused_; }

 private:
  struct Held {
    std::string_view name;
    rt::Fn fn;
  };
  struct Timer {
    rt::TimerId of_view;
    rt::Fn fn;
  };
  // Runs it, or keeps it for later.
  void Meet(std::string_view name, rt::Fn fn);
  void Fire(uint64_t id);

  rt::SimLoop::View& view_;
  const int64_t rate_;  // local nanoseconds per million of the world's
  bool paused_ = false;
  std::deque<Held> held_;
  // A timer that came due in a pause can still be cancelled: ids are this loop's own.
  uint64_t last_timer_ = 0;
  std::unordered_map<uint64_t, Timer> timers_;
};

}  // namespace berth::sim
