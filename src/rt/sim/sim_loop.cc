// SPDX-License-Identifier: Apache-2.0
#include "rt/sim/sim_loop.h"

#include "base/check.h"

namespace berth::rt {
namespace {

constexpr int64_t kWallStartSeconds = 1'767'225'600;  // 2026-01-01T00:00:00Z
// More than this without time passing is a livelock: a million-step test uses two million.
constexpr uint64_t kEventsPerInstantMax = 50'000'000;

void Mix(uint64_t& hash, uint64_t value) {
  hash = (hash ^ value) * 0x100000001b3ULL;
  hash ^= hash >> 29;
}

}  // namespace

SimLoop::View::View(SimLoop& world, uint32_t index, std::string name)
    : world_(world),
      index_(index),
      name_(std::move(name)),
      random_(world.seed_ * 0x9e3779b97f4a7c15ULL + index) {}

void SimLoop::View::Post(std::string_view name, Fn fn) {
  world_.PostTo(*this, name, std::move(fn));
}
TimerId SimLoop::View::After(std::string_view name, Duration delay, Fn fn) {
  return world_.AfterOn(*this, name, delay, std::move(fn));
}
bool SimLoop::View::CancelTimer(TimerId timer) {
  Assert();
  return world_.Cancel(timer);
}
WallTime SimLoop::View::WallNow() const {
  return WallTime::FromSeconds(kWallStartSeconds) + (world_.now_ - Time()) + wall_skew_;
}
bool SimLoop::View::IsOnLoop() const {
  return world_.current_ == this || world_.current_ == nullptr;
}

SimLoop::SimLoop(uint64_t seed) : seed_(seed), order_(seed) { NewLoop("main"); }

SimLoop::~SimLoop() {
  // Functions may own objects whose destructors post or cancel timers: empty the queues first, one
  // by one.
  while (!ready_.empty() || !timers_.empty()) {
    ready_.clear();
    auto queues = std::exchange(queues_, {});
    auto timers = std::exchange(timers_, {});
  }
}

SimLoop::View& SimLoop::NewLoop(std::string name) {
  const auto index = static_cast<uint32_t>(views_.size());
  views_.push_back(std::make_unique<View>(*this, index, std::move(name)));
  return *views_.back();
}

void SimLoop::Post(std::string_view name, Fn fn) { PostTo(*views_[0], name, std::move(fn)); }
TimerId SimLoop::After(std::string_view name, Duration delay, Fn fn) {
  return AfterOn(*views_[0], name, delay, std::move(fn));
}
bool SimLoop::CancelTimer(TimerId timer) { return views_[0]->CancelTimer(timer); }
WallTime SimLoop::WallNow() const { return views_[0]->WallNow(); }
Random& SimLoop::random() { return views_[0]->random(); }
bool SimLoop::IsOnLoop() const { return views_[0]->IsOnLoop(); }

void SimLoop::PostTo(View& target, std::string_view name, Fn fn) {
  // Origin 0 is the driver, view i is i + 1.
  const uint32_t origin = current_ == nullptr ? 0 : current_->index_ + 1;
  Queue& queue = queues_[{origin, target.index_}];
  if (queue.empty()) ready_.push_back(&queue);
  queue.push_back({.target = &target, .name = name, .fn = std::move(fn)});
}

TimerId SimLoop::AfterOn(View& target, std::string_view name, Duration delay, Fn fn) {
  target.Assert();
  const uint64_t id = ++last_timer_;
  const Time due = delay > Duration() ? now_ + delay : now_;
  timers_.emplace(id, Timer{.target = &target, .name = name, .due = due, .fn = std::move(fn)});
  if (due == now_) {
    due_.push_back(id);
  } else {
    schedule_.emplace(due, id);
  }
  return {id};
}

bool SimLoop::Cancel(TimerId timer) {
  const auto found = timers_.find(timer.value);
  if (found == timers_.end()) return false;
  schedule_.erase({found->second.due, timer.value});
  const Fn dropped = std::move(found->second.fn);  // destroyed last: it may come back to us
  timers_.erase(found);
  return true;
}

bool SimLoop::PickReady() {
  while (!ready_.empty() || !due_.empty()) {
    const size_t pick = order_.Below(ready_.size() + due_.size());
    if (pick < ready_.size()) {
      Queue& queue = *ready_[pick];
      Event event = std::move(queue.front());
      queue.pop_front();
      if (queue.empty()) {
        ready_[pick] = ready_.back();
        ready_.pop_back();
      }
      Run(std::move(event));
      return true;
    }
    const size_t place = pick - ready_.size();
    const uint64_t id = due_[place];
    due_[place] = due_.back();
    due_.pop_back();
    const auto found = timers_.find(id);
    if (found == timers_.end()) continue;  // cancelled
    Timer timer = std::move(found->second);
    timers_.erase(found);
    Run({.target = timer.target, .name = timer.name, .fn = std::move(timer.fn)});
    return true;
  }
  return false;
}

bool SimLoop::Advance(Time limit) {
  if (schedule_.empty() || schedule_.begin()->first > limit) return false;
  now_ = schedule_.begin()->first;
  events_this_instant_ = 0;
  while (!schedule_.empty() && schedule_.begin()->first == now_) {
    due_.push_back(schedule_.begin()->second);
    schedule_.erase(schedule_.begin());
  }
  return true;
}

void SimLoop::Run(Event event) {
  CHECK(current_ == nullptr) << "a simulated loop is run from inside itself";
  ++events_;
  CHECK(++events_this_instant_ <= kEventsPerInstantMax)
      << "time does not pass: last event " << event.name << " on " << event.target->name_;
  Mix(hash_, static_cast<uint64_t>(now_.nanos()));
  Mix(hash_, event.target->index_);
  for (const char c : event.name) Mix(hash_, static_cast<uint8_t>(c));
  current_ = event.target;
  event.fn();
  event.fn = nullptr;
  current_ = nullptr;
}

bool SimLoop::Step(Time limit) {
  while (!PickReady()) {
    if (!Advance(limit)) return false;
  }
  return true;
}

bool SimLoop::RunUntilIdle(Duration limit) {
  const Time end = now_ + limit;
  while (Step(end)) {
  }
  return ready_.empty() && timers_.empty();
}

void SimLoop::RunReady() {
  while (PickReady()) {
  }
}

void SimLoop::RunFor(Duration duration) {
  const Time end = now_ + duration;
  while (Step(end)) {
  }
  now_ = end;
}

bool SimLoop::RunUntil(const std::function<bool()>& done, Duration limit) {
  const Time end = now_ + limit;
  while (!done()) {
    if (!Step(end)) return false;
  }
  return true;
}

}  // namespace berth::rt
