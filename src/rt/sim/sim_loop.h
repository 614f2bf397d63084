// SPDX-License-Identifier: Apache-2.0
// SimLoop runs any number of logical loops on one thread, in virtual time, from a seed. The same
// seed gives the same run, which the trace hash proves.
//
// Everything that happens at one instant happens in a seeded order: posts from one loop to another
// keep their order, timers and posts of different origin are permuted. Time moves only when nothing
// is left to do at an instant.
//
// A SimLoop is itself a Loop; NewLoop gives further ones. Code that runs on one of them may touch
// another only through Post. Between runs the driver (a test) counts as being on every loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rt/loop.h"

namespace berth::rt {

class SimLoop final : public Loop {
 public:
  class View;

  explicit SimLoop(uint64_t seed);
  // What is still queued is dropped, not run.
  ~SimLoop() override;
  SimLoop(const SimLoop&) = delete;
  SimLoop& operator=(const SimLoop&) = delete;

  // A further loop of this world; it lives as long as the world.
  View& NewLoop(std::string name);

  void Post(std::string_view name, Fn fn) override;
  TimerId After(std::string_view name, Duration delay, Fn fn) override;
  bool CancelTimer(TimerId timer) override;
  Time Now() const override { return now_; }
  // Starts at 2026-01-01T00:00:00Z.
  WallTime WallNow() const override;
  Random& random() override;
  bool IsOnLoop() const override;

  // Runs until nothing is queued and no timer is set. False if that takes more than `limit` of
  // virtual time.
  bool RunUntilIdle(Duration limit = Duration::Hours(24));
  // Runs what can run now, without moving time.
  void RunReady();
  // Runs everything due within `duration` and moves the clock there.
  void RunFor(Duration duration);
  // Runs until `done` holds (asked after every event). False if it does not within `limit`.
  bool RunUntil(const std::function<bool()>& done, Duration limit);

  uint64_t trace_hash() const { return hash_; }
  uint64_t events() const { return events_; }
  uint64_t seed() const { return seed_; }

 private:
  friend class View;
  struct Event {
    View* target;
    std::string_view name;
    Fn fn;
  };
  using Queue = std::deque<Event>;
  struct Timer {
    View* target;
    std::string_view name;
    Time due;
    Fn fn;
  };

  void PostTo(View& target, std::string_view name, Fn fn);
  TimerId AfterOn(View& target, std::string_view name, Duration delay, Fn fn);
  bool Cancel(TimerId timer);
  // Runs one event due no later than `limit`; false if there is none.
  bool Step(Time limit);
  bool PickReady();
  bool Advance(Time limit);
  void Run(Event event);

  const uint64_t seed_;
  Random order_;  // breaks ties; separate from what components draw
  Time now_;
  std::vector<std::unique_ptr<View>> views_;
  View* current_ = nullptr;  // whose function runs
  // Posts that can run now: one queue per pair (origin, target), and the pairs that have any.
  std::map<std::pair<uint32_t, uint32_t>, Queue> queues_;
  std::vector<Queue*> ready_;
  uint64_t last_timer_ = 0;
  std::unordered_map<uint64_t, Timer> timers_;
  std::set<std::pair<Time, uint64_t>> schedule_;  // timers of the future
  std::vector<uint64_t> due_;                     // timers due now, possibly cancelled since
  uint64_t hash_ = 0xcbf29ce484222325ULL;
  uint64_t events_ = 0;
  uint64_t events_this_instant_ = 0;
};

// One logical loop of a world.
class SimLoop::View final : public Loop {
 public:
  View(SimLoop& world, uint32_t index, std::string name);

  void Post(std::string_view name, Fn fn) override;
  TimerId After(std::string_view name, Duration delay, Fn fn) override;
  bool CancelTimer(TimerId timer) override;
  Time Now() const override { return world_.now_; }
  WallTime WallNow() const override;
  Random& random() override { return random_; }
  bool IsOnLoop() const override;

  const std::string& name() const { return name_; }
  // Makes this loop's civil clock wrong by `skew`.
  void SetWallSkew(Duration skew) { wall_skew_ = skew; }

 private:
  friend class SimLoop;
  SimLoop& world_;
  const uint32_t index_;
  const std::string name_;
  Random random_;
  Duration wall_skew_;
};

}  // namespace berth::rt
