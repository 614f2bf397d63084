// SPDX-License-Identifier: Apache-2.0
// A Loop runs functions one after another on one logical thread. It is the only clock, the only
// timer and the only source of randomness that components see, so the same code runs on AsioLoop
// (real time) and on SimLoop (a seed).
//
// A Loop is a capability: state that belongs to it is declared GUARDED_BY(loop_), and the compiler
// wants loop_.Assert() before it is touched.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/random.h"
#include "base/thread_annotations.h"
#include "base/time.h"

namespace berth::rt {

using Fn = std::move_only_function<void()>;

// Names a pending timer of one loop. Zero names none.
struct TimerId {
  uint64_t value = 0;
  bool operator==(const TimerId&) const = default;
};

class CAPABILITY("loop") Loop {
 public:
  virtual ~Loop() = default;

  // Runs fn later on the loop, in the order of posting (SimLoop may permute posts of different
  // origin by seed). May be called from any thread. `name` must be a literal: it feeds metrics and
  // traces.
  virtual void Post(std::string_view name, Fn fn) = 0;

  // Runs fn on the loop once `delay` has passed, not before. On-loop only.
  virtual TimerId After(std::string_view name, Duration delay, Fn fn) = 0;
  // Forgets a timer: its fn is destroyed without running. True if it was still pending. On-loop
  // only.
  virtual bool CancelTimer(TimerId timer) = 0;

  // Monotonic. Constant within one loop turn only on SimLoop.
  virtual Time Now() const = 0;
  // Civil time, for timestamps that people read. Never used to decide an order.
  virtual WallTime WallNow() const = 0;
  // On-loop only. Not for secrets.
  virtual Random& random() = 0;

  virtual bool IsOnLoop() const = 0;
  // CHECKs that the caller runs on this loop.
  void Assert() const ASSERT_CAPABILITY(this);
};

}  // namespace berth::rt
