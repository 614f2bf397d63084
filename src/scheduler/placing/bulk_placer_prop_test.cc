// SPDX-License-Identifier: Apache-2.0
// For all troubles in the midst of a set (hosts that refuse, are silent, answer late or lose their
// sessions, a store that refuses or loses answers): once they are over every copy gets a place
// soon, once, within what the pools have, and the board knows of exactly that.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "rt/sleep.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

using Verdict = fleet::Answer::Verdict;

constexpr int kCopies = 160;
constexpr int kPools = 8;
constexpr int64_t kCpus = 24;  // of each pool: a sixth of the room is to spare
constexpr Duration kTroubles = Duration::Seconds(8);
// Far below the time after which parked objects are looked at again without a reason.
constexpr Duration kAfterwards = Duration::Seconds(40);

class TroubledSet {
 public:
  explicit TroubledSet(uint64_t seed) : random_(seed), world_(seed) {
    for (int i = 0; i < kPools; ++i) {
      pools_.push_back(world_.MakePool("pool-" + std::to_string(i), kCpus));
    }
    world_.StartScheduler();
    for (const std::string& pool : pools_) {
      world_.Join(pool, kCpus);
      const auto says = [this](const fleet::Offer&) { return Say(); };
      world_.fleet().Answers(pool, says, Duration::Millis(random_.Between(0, 200)));
    }
    world_.RunFor(Duration::Millis(50));
  }

  void Run() {
    world_.api().SetFaults({.refuse = 0.1, .lose_answer = 0.15});
    rt::TaskScope scope(world_.api().loop());
    bool is_made = false;
    scope.Spawn("set", Make(&is_made));
    const Time calm = world_.Now() + kTroubles;
    while (world_.Now() < calm) {
      world_.RunFor(Duration::Millis(random_.Between(1, 100)));
      LoseOrFindAHost();
    }
    is_calm_ = true;
    world_.api().SetFaults({});
    for (const std::string& pool : std::exchange(away_, {})) world_.Join(pool, kCpus);
    const Time end = world_.Now() + kAfterwards;
    while (world_.Now() < end && !(is_made && Waiting() == 0)) {
      world_.RunFor(Duration::Millis(500));
    }
    ASSERT_TRUE(is_made);
    ASSERT_EQ(Waiting(), 0) << Reasons();
    ASSERT_TRUE(world_.Until([&] { return world_.scheduler().idle(); }, kAfterwards));
    Check();
    EXPECT_TRUE(world_.api().Run(scope.Close()).ok());
  }

 private:
  std::optional<fleet::Answer> Say() {
    const double dice = is_calm_ ? 1 : random_.Unit();
    if (dice < 0.1) return std::nullopt;
    return fleet::Answer{.verdict = dice < 0.3 ? Verdict::kRejected : Verdict::kAccepted};
  }
  void LoseOrFindAHost() {
    const std::string& pool = pools_[random_.Below(pools_.size())];
    if (away_.erase(pool) > 0) {
      world_.Join(pool, kCpus);
    } else if (random_.Chance(0.5)) {
      away_.insert(pool);
      world_.fleet().Leave(pool);
    }
  }
  // What fails is tried again with the same names, as by the controller of sets.
  rt::Task<Status> Make(bool* is_made) {
    apis::compute::Machine machine = world_.Machine("web");
    machine.spec.placement.emplace().policy = "spread";
    std::vector<std::string> names;
    for (int i = 0; i < kCopies; ++i) names.push_back("web-" + std::to_string(i));
    while (!names.empty()) {
      meta::Object model = meta::Object::Of(apis::compute::kMachineKind, machine);
      const auto made = co_await world_.scheduler().bulk().CreateBulk(std::move(model), names);
      std::vector<std::string> failed;
      for (size_t i = 0; i < made.size(); ++i) {
        const bool exists = made[i].ok() || made[i].status().Is(Reason::kAlreadyExists);
        if (!exists) failed.push_back(names[i]);
      }
      names = std::move(failed);
      CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(50)));
    }
    *is_made = true;
    co_return OkStatus();
  }
  std::vector<meta::Object> All() {
    auto all = world_.api().Run(world_.api().client().List(apis::compute::kMachineKind, {}));
    CHECK(all.ok()) << all.status();
    return std::move(all->items);
  }
  int Waiting() {
    int count = kCopies;
    for (const meta::Object& object : All()) count -= apis::IsBound(object) ? 1 : 0;
    return count;
  }
  // Of those that wait.
  std::string Reasons() {
    std::string text;
    for (const meta::Object& object : All()) {
      if (apis::IsBound(object)) continue;
      const std::string& name = object.metadata().name;
      text += name + ": " + world_.WhyNot(name) + '\n';
    }
    return text;
  }
  void Check() {
    std::map<std::string, int64_t> used;
    for (const meta::Object& object : All()) {
      const auto& placement = *apis::PlacementOf(object);
      EXPECT_EQ(placement.epoch, 1) << object.metadata().name;
      ++used[placement.pool];
      EXPECT_TRUE(world_.scheduler().board().IsConfirmed(ObjectKey::FromUid(object.metadata().uid)))
          << object.metadata().name << " is not on the board";
    }
    for (const auto& [pool, count] : used) EXPECT_LE(count, kCpus) << pool;
    EXPECT_EQ(world_.scheduler().board().object_count(), static_cast<size_t>(kCopies));
  }

  Random random_;
  SchedulerWorld world_;
  std::vector<std::string> pools_;
  std::set<std::string> away_;
  bool is_calm_ = false;
};

TEST(BulkPlacerProp, EveryCopyOfASetIsPlacedOnceTroublesAreOver) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    TroubledSet set(seed);
    set.Run();
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace berth::scheduler
