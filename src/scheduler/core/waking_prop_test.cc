// SPDX-License-Identifier: Apache-2.0
// For all sequences of events: whoever finds no place is woken by whatever gives it one.
#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/core/board_world.h"

namespace berth::scheduler {
namespace {

// A board that some wait for, who are told of every change.
class WaitingWorld : public BoardWorld {
 public:
  using BoardWorld::BoardWorld;
  int helped() const { return helped_; }
  int slept() const { return slept_; }

 private:
  static constexpr size_t kWaitersMax = 8;
  struct Waiter {
    Request request;
    Events waking = 0;
  };

  void Ask() override {
    const std::vector<Change> changes = board_.TakeChanges();
    std::vector<Waiter> waiters = std::exchange(waiters_, {});
    for (Waiter& waiter : waiters) {
      const bool is_woken = std::ranges::any_of(changes, [&](const Change& change) {
        return board_.Wakes(waiter.request, waiter.waking, change);
      });
      if (!board_.Decide(waiter.request, 1).ranked.empty()) {
        ASSERT_TRUE(is_woken) << "nobody told request " << waiter.request.key.low;
        ++helped_;
        continue;
      }
      // Its number may be another pool's from here on: whoever asks for it looks it up again.
      if (NamesALostPool(waiter.request, changes)) {
        ASSERT_TRUE(is_woken) << "nobody told request " << waiter.request.key.low;
        continue;
      }
      if (is_woken) waiter.waking = board_.WakingEvents(waiter.request);
      if (!is_woken && !changes.empty()) ++slept_;
      // Some would wait for ever.
      if (!random_.Chance(0.02)) waiters_.push_back(std::move(waiter));
    }
    if (waiters_.size() < kWaitersMax) Park();
    if (random_.Chance(0.2)) ChangeReach();
  }

  static bool NamesALostPool(const Request& request, const std::vector<Change>& changes) {
    std::vector<PoolIndex> named = request.among;
    named.insert(named.end(), request.bound_volumes.begin(), request.bound_volumes.end());
    if (request.pinned) named.push_back(*request.pinned);
    return std::ranges::any_of(changes, [&named](const Change& change) {
      return (change.events & ToEvents(Event::kLost)) != 0 &&
             std::ranges::find(named, change.pool) != named.end();
    });
  }

  void Park() {
    const Requirements requirements = NextRequirements();
    Waiter waiter{.request = DrawRequest(requirements)};
    // Of any object, also of one that asks for what no pool has: nothing that there could be.
    waiter.request.reservation.clear();
    if (!board_.Decide(waiter.request, 1).ranked.empty()) return;
    waiter.waking = board_.WakingEvents(waiter.request);
    waiters_.push_back(std::move(waiter));
  }

  void ChangeReach() {
    const auto pool = DrawPoolIndex();
    if (!pool || board_.pool(Index(*pool)).kind != PoolKind::kVolume) return;
    PoolSpec& spec = reference_.pools[*pool].spec;
    spec.reach = random_.Chance(0.5) ? Reach::kHost : Reach::kAny;
    board_.SetPool(spec);
  }

  std::vector<Waiter> waiters_;
  int helped_ = 0;
  int slept_ = 0;
};

TEST(WakingProperty, NobodySleepsThroughWhatGivesItAPlace) {
  int helped = 0;
  int slept = 0;
  for (uint64_t seed = 1; seed <= 40 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WaitingWorld world(
        seed,
        {.pools = 14, .steps = 250, .shapes = seed % 3 == 0 ? 9U : 0U, .volumes = seed % 2 == 0});
    world.Run();
    helped += world.helped();
    slept += world.slept();
  }
  EXPECT_GT(helped, 100);
  EXPECT_GT(slept, helped) << "most changes are not worth a try";
}

}  // namespace
}  // namespace berth::scheduler
