// SPDX-License-Identifier: Apache-2.0
#include "rt/loop_lag.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "base/log.h"

namespace berth::rt {
namespace {

constexpr Duration kEvery = Duration::Millis(250);
constexpr Duration kHalf = Duration::Seconds(30);
// People notice this; hosts are given up after several times as much.
constexpr Duration kLogged = Duration::Seconds(1);
constexpr Duration kLoggedEvery = Duration::Seconds(10);

}  // namespace

void MinuteMax::Turn(Time now) {
  if (now - began_ < kHalf) return;
  before_ = now - began_ < kHalf + kHalf ? present_ : Duration();
  present_ = Duration();
  began_ = now;
}

void MinuteMax::Add(Time now, Duration value) {
  Turn(now);
  present_ = std::max(present_, value);
}

Duration MinuteMax::Get(Time now) {
  Turn(now);
  return std::max(present_, before_);
}

struct LoopLag::State {
  State(Loop& the_loop, std::string_view the_name, metrics::Registry& metrics)
      : loop(the_loop),
        name(the_name),
        lags(metrics.GetHistogram("berth_loop_lag_seconds",
                                  "How late a loop came to what was due.",
                                  metrics::LatencyBounds(),
                                  {{"loop", name}})),
        greatest(metrics.GetGauge("berth_loop_lag_max_seconds",
                                  "The greatest lag of a loop in the last minute.",
                                  {{"loop", name}})) {}

  Loop& loop;
  const std::string name;
  metrics::Histogram& lags;
  metrics::Gauge& greatest;
  std::atomic<bool> ended = false;
  // On the loop.
  Time due;
  Time logged;
  MinuteMax minute;
};

LoopLag::LoopLag(Loop& loop, std::string_view name, metrics::Registry& metrics)
    : state_(std::make_shared<State>(loop, name, metrics)) {
  state_->due = loop.Now();
  loop.Post("rt.loop_lag", [state = state_] { Tick(state); });
}

LoopLag::~LoopLag() { state_->ended = true; }

void LoopLag::Tick(const std::shared_ptr<State>& state) {
  if (state->ended) return;
  const Time now = state->loop.Now();
  const Duration lag = std::max(Duration(), now - state->due);
  state->lags.Observe(lag.to_seconds());
  state->minute.Add(now, lag);
  state->greatest.Set(state->minute.Get(now).to_seconds());
  if (lag > kLogged && now - state->logged > kLoggedEvery) {
    LOG_WARNING("loop {}: {} ms late: too little processor, or too much work at once",
                state->name,
                lag.millis());
    state->logged = now;
  }
  state->due = now + kEvery;
  state->loop.After("rt.loop_lag", kEvery, [state] { Tick(state); });
}

}  // namespace berth::rt
