// SPDX-License-Identifier: Apache-2.0
#include "sim/process_loop.h"

#include <utility>

namespace berth::sim {
namespace {

constexpr int64_t kMillion = 1'000'000;

// Exact for any simulated time: 2^63 nanoseconds times a million fit in 128 bits.
int64_t Scale(int64_t nanos, int64_t numerator, int64_t denominator) {
  __extension__ using Wide = __int128;
  return static_cast<int64_t>(static_cast<Wide>(nanos) * numerator / denominator);
}

}  // namespace

ProcessLoop::ProcessLoop(rt::SimLoop& world, std::string name, int64_t parts_per_million)
    : view_(world.NewLoop(std::move(name))), rate_(kMillion + parts_per_million) {}

void ProcessLoop::Post(std::string_view name, rt::Fn fn) {
  view_.Post(name, [this, name, fn = std::move(fn)]() mutable { Meet(name, std::move(fn)); });
}

rt::TimerId ProcessLoop::After(std::string_view name, Duration delay, rt::Fn fn) {
  // Rounded up: when it fires, the local clock shows at least the time that was asked for.
  const int64_t nanos = delay.nanos() <= 0 ? 0 : Scale(delay.nanos(), kMillion, rate_) + 1;
  const uint64_t id = ++last_timer_;
  const rt::TimerId of_view = view_.After(
      name, Duration::Nanos(nanos), [this, name, id] { Meet(name, [this, id] { Fire(id); }); });
  timers_.emplace(id, Timer{.of_view = of_view, .fn = std::move(fn)});
  return {id};
}

void ProcessLoop::Fire(uint64_t id) {
  const auto found = timers_.find(id);
  if (found == timers_.end()) return;  // cancelled after it came due
  rt::Fn fn = std::move(found->second.fn);
  timers_.erase(found);
  fn();
}

bool ProcessLoop::CancelTimer(rt::TimerId timer) {
  const auto found = timers_.find(timer.value);
  if (found == timers_.end()) return false;
  view_.CancelTimer(found->second.of_view);
  const rt::Fn dropped = std::move(found->second.fn);  // destroyed last: it may come back to us
  timers_.erase(found);
  return true;
}

Time ProcessLoop::Now() const {
  return Time::FromNanos(Scale(view_.Now().nanos(), rate_, kMillion));
}

void ProcessLoop::Meet(std::string_view name, rt::Fn fn) {
  if (paused_) {
    held_.push_back({.name = name, .fn = std::move(fn)});
  } else {
    fn();
  }
}

void ProcessLoop::Resume() {
  paused_ = false;
  for (Held& held : std::exchange(held_, {})) view_.Post(held.name, std::move(held.fn));
}

}  // namespace berth::sim
