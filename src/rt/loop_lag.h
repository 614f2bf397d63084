// SPDX-License-Identifier: Apache-2.0
// How late a loop comes to what is due: whatever it serves waits as long. Shown as metrics, and in
// the log when people feel it.
#pragma once

#include <memory>
#include <string_view>

#include "base/metrics.h"
#include "base/time.h"
#include "rt/loop.h"

namespace berth::rt {

// The greatest value of about the last minute: of the present half and the one before.
class MinuteMax {
 public:
  void Add(Time now, Duration value);
  Duration Get(Time now);

 private:
  void Turn(Time now);

  Time began_;
  Duration present_;
  Duration before_;
};

class LoopLag {
 public:
  // Begins to measure `loop`, from any thread. `metrics` outlives this.
  LoopLag(Loop& loop, std::string_view name, metrics::Registry& metrics);
  // REQUIRES: on the loop, or the loop runs no more.
  ~LoopLag();
  LoopLag(const LoopLag&) = delete;
  LoopLag& operator=(const LoopLag&) = delete;

 private:
  struct State;
  static void Tick(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
};

}  // namespace berth::rt
